//! Random histories.

use rand_core::RngCore;

use super::model::Model;
use super::*;

/// Transcriptions of the published rules in floating point, compared with the implementation over
/// random histories.
//= docs/specs/flowcut.md#FLC-12 average against threshold
//= docs/specs/flowcut.md#FLC-50 the published artifact's rule
#[test]
fn random_histories_agree_with_the_published_rules() {
    let mut compared = 0;
    for seed in 0..300 {
        let mut draw = stream(seed, 77);
        let simple = seed % 2 == 1;
        let config = config(|own| {
            own.rule = if simple { FlowcutRule::Simple } else { FlowcutRule::Paper };
            own.rtt_ratio = Ratio::permille(1_000 + draw.next_u64() % 5_000);
            own.weight = Ratio::permille(1 + draw.next_u64() % 1_000);
            own.trend = Ratio::permille([0, 20, 50, 200][draw.next_u64() as usize % 4]);
            own.trend_weight = Ratio::permille(1 + draw.next_u64() % 1_000);
            own.dead_timeouts = 0;
            own.drain_timeout_us = Some(Micros::from_ps(1 << 60));
        });
        let mut rig = Rig::new(&config);
        let mut model = Model::new(own(&config), BASE_RTT_PS);
        let mut rtt_ps = BASE_RTT_PS;
        for _ in 0..600 {
            if draw.next_u32().is_multiple_of(2) {
                let may = rig.send().is_some();
                assert_eq!(may, model.send(rig.open.last().copied()), "seed {seed}");
            } else if !rig.open.is_empty() {
                // A queue that fills and empties.
                let step = draw.next_u64() % (BASE_RTT_PS / 2);
                rtt_ps = if draw.next_u32() % 5 < 3 { rtt_ps + step } else { rtt_ps.saturating_sub(step) };
                rtt_ps = rtt_ps.clamp(BASE_RTT_PS, 12 * BASE_RTT_PS);
                rig.ack(rtt_ps);
                model.ack(rtt_ps, rig.open.len());
                if model.is_close_call() {
                    // Where rounding decides, either result is correct.
                    break;
                }
                assert_eq!(rig.flowcut.is_draining(), model.is_stopped(), "seed {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20_000, "{compared}");
}

#[test]
fn no_history_causes_a_panic() {
    for seed in 0..200 {
        let mut draw = stream(seed, 78);
        let mut odd = || match draw.next_u64() % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => draw.next_u64() % 5,
            _ => draw.next_u64(),
        };
        let own = FlowcutConfig {
            rule: if odd() == 0 { FlowcutRule::Simple } else { FlowcutRule::Paper },
            rtt_ratio: Ratio::from_ppm(odd()),
            weight: Ratio::from_ppm(odd()),
            trend: Ratio::from_ppm(odd()),
            trend_weight: Ratio::from_ppm(odd()),
            link_rate_gbps: Some(Gbps::from_bps(odd())),
            tail_bytes: Some(ByteSize::new(odd())),
            drain_timeout_us: Some(Micros::from_ps(odd())),
            resume_packets: odd() as u16,
            credit_bytes: ByteSize::new(odd()),
            dead_timeouts: odd() as u8,
        };
        let path = Setup { evs: odd() as u16, ..Setup::new(BalancerKind::Flowcut, odd(), odd() as u32) }.path();
        let mut rng = stream(seed, 79);
        let mut flowcut = Flowcut::make(&own, &path, &mut rng);
        for _ in 0..300 {
            let info = SendInfo {
                psn: odd(),
                bytes: odd() as u32,
                retransmit: odd() == 0,
                in_flight_bytes: odd(),
                unacked_packets: odd(),
                unsent_bytes: odd(),
            };
            let now = path.at(at_step(odd()));
            if flowcut.admit(now, &info) != Admission::Wait {
                let ev = flowcut.next_ev(now, &info, &mut rng);
                assert!(ev.index() < path.evs);
            }
            let ack = AckInfo {
                ev: Ev::new(odd() as u16),
                rtt_ps: odd(),
                hops: odd() as u8,
                packet_bytes: odd() as u32,
                unacked_packets: odd(),
                unsent_bytes: odd(),
                ..AckInfo::default()
            };
            flowcut.on_ack(path.at(at_step(odd())), &ack, &mut ());
            let cause = [LossCause::Timeout, LossCause::SackGap, LossCause::Trimmed][odd() as usize % 3];
            flowcut.on_loss(
                path.at(at_step(odd())),
                &LossInfo { ev: flowcut.ev(), cause, sent_at: at_step(odd()), ..LossInfo::default() },
                &mut (),
            );
            let _ = (flowcut.poll_timeout(&path), flowcut.allowed_bytes(), flowcut.is_draining());
        }
    }
}
