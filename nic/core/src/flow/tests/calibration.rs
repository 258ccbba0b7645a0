//! A sender that learns its path, as a whole.

use spray_wire::{Ack, Echoes, EvPort};

use super::*;
use crate::event::{Choice, Event, Publisher};
use crate::feedback::Ev;
use crate::rng::{Rng, stream};

const RTT_PS: u64 = 100 * US;

/// Settings for a path with a configured round-trip time of `typed_ps`.
fn typed(typed_ps: u64) -> FlowConfig {
    let path = Path { bdp_packets: 12, ..Path::new(typed_ps, 10_000_000_000, PAYLOAD + HEADER) };
    FlowConfig {
        rto: RtoConfig { initial_ps: 10 * typed_ps, min_ps: 50 * US, max_ps: 800 * US },
        sack_gap_packets: None,
        ..FlowConfig::new(BalancerKind::Ecmp, path, HEADER)
    }
    .learning()
}

/// A sender with its first 20 packets acknowledged after a round-trip time.
fn calibrated(config: &FlowConfig) -> (Sender, Rng) {
    let mut rng = stream(1, 1);
    let mut sender = Sender::new(config, 64, u64::MAX, &mut rng);
    sender.send_message(1, 20_000).unwrap();
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(at(US), &mut rng, &mut ())).count(), 20);
    for psn in 1..=20 {
        let ack = Ack { cumulative: psn, sack_base: psn, timestamp_echo: at(US), packets: 1, ..Ack::default() };
        sender.on_ack(at(US + RTT_PS), &Ack { port: EvPort::new(7), ..ack }, &mut ());
    }
    (sender, rng)
}

#[test]
fn the_timeout_follows_the_measured_round_trip_time() {
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    let timeout_ps = |typed_ps, min_ps| {
        let mut config = typed(typed_ps);
        config.rto.min_ps = min_ps;
        let (mut sender, mut rng) = calibrated(&config);
        sender.send_message(2, 1_000).unwrap();
        assert!(sender.poll_transmit(at(300 * US), &mut rng, &mut ()).is_some());
        sender.poll_timeout().unwrap().since(at(300 * US))
    };
    for typed_ps in [RTT_PS / 10, RTT_PS, RTT_PS * 10] {
        // The base round-trip time and four full queues.
        assert_eq!(timeout_ps(typed_ps, 50 * US), 5 * RTT_PS, "{typed_ps}");
        // The settings may request more.
        assert_eq!(timeout_ps(typed_ps, 700 * US), 700 * US, "{typed_ps}");
    }
}

#[test]
fn the_best_round_is_forgotten_by_and_by() {
    //= docs/specs/calibration.md#CAL-2 rounds
    let (mut sender, mut rng) = calibrated(&typed(RTT_PS));
    let mut psn = 20;
    let mut bdp_after = |round: u64, packets: u64| {
        let sent_at = at(US + (round - 1) * RTT_PS);
        sender.send_message(round as u32, packets * u64::from(PAYLOAD)).unwrap();
        psn += core::iter::from_fn(|| sender.poll_transmit(sent_at, &mut rng, &mut ())).count() as u64;
        let ack = Ack { cumulative: psn, sack_base: psn, timestamp_echo: sent_at, packets: 1, ..Ack::default() };
        sender.on_ack(at(US + round * RTT_PS), &Ack { port: EvPort::new(7), ..ack }, &mut ());
        sender.path().bdp_packets
    };
    let many = (2..10).map(|round| bdp_after(round, 20)).last().unwrap();
    assert!((20..=22).contains(&many), "a round trip brings 20 packets: {many}");
    assert!(bdp_after(10, 10) > 15, "one round with less");
    let few = (11..20).map(|round| bdp_after(round, 10)).last().unwrap();
    assert!((10..=11).contains(&few), "{few}");
}

#[test]
fn no_window_is_larger_than_the_largest() {
    //= docs/specs/calibration.md#CAL-3 slow start
    let mut config = typed(RTT_PS);
    config.path.max_window_bytes = 24 * u64::from(PAYLOAD + HEADER);
    let (mut sender, mut rng) = calibrated(&config);
    assert_eq!(sender.window_bytes(), 24 * u64::from(PAYLOAD + HEADER));
    sender.send_message(2, 100_000).unwrap();
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(at(300 * US), &mut rng, &mut ())).count(), 24);
}

#[test]
fn what_was_typed_is_not_kept() {
    //= docs/specs/calibration.md#CAL-5 initial estimates
    let settings = |typed_ps| FlowConfig { rto: config().rto, ack_delay_ps: 0, window_packets: 256, ..typed(typed_ps) };
    let kept = settings(RTT_PS).learning();
    assert_eq!(settings(RTT_PS / 10).learning(), kept);
    assert_eq!(settings(RTT_PS * 10).learning(), kept);
    let mut other = settings(RTT_PS);
    other.path.bdp_packets = 5_000;
    assert_eq!(other.learning(), kept);
    // But for a rate that the control is to keep.
    let mut paced = fixed(typed(RTT_PS), 1 << 20, 1);
    paced.path.link_bps = 7_000_000_000;
    assert_eq!(paced.learning().cc, paced.cc);
    let cc = ControlConfig::FixedRate(FixedRateConfig { rate_gbps: None });
    let told = FlowConfig { cc, ..paced }.learning();
    let rate_gbps = Some(Gbps::from_bps(7_000_000_000));
    assert_eq!(told.cc, ControlConfig::FixedRate(FixedRateConfig { rate_gbps }));
}

/// Counts the packets that go where others came back from.
#[derive(Default)]
struct Recycled(usize);

impl Publisher for Recycled {
    fn on_event(&mut self, _now: Time, _event: Event) {}

    fn wants_choices(&self) -> bool {
        true
    }

    fn on_choice(&mut self, _now: Time, _ev: Ev, _evs: u32, choice: Choice) {
        self.0 += usize::from(choice == Choice::Recycled);
    }
}

#[test]
fn of_eight_marks_without_a_queue_the_balancer_sees_one() {
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    let mut echoes = Echoes::default();
    (10..17).for_each(|port| echoes.push(EvPort::new(port), true, 7));
    for (misrouted, recycled) in [(false, 7), (true, 0)] {
        let config = FlowConfig { balancer: BalancerKind::RepsPlus.into(), ..typed(RTT_PS) };
        let mut rng = stream(1, 1);
        let mut sender = Sender::new(&config, 64, u64::MAX, &mut rng);
        sender.send_message(1, 40_000).unwrap();
        (0..8).for_each(|_| assert!(sender.poll_transmit(at(US), &mut rng, &mut ()).is_some()));
        let told = Ack {
            cumulative: 8,
            sack_base: 8,
            timestamp_echo: at(US),
            packets: 8,
            marked_packets: 8,
            ..Ack::default()
        };
        let told = Ack { marked: true, port: EvPort::new(7), echoes, misrouted, ..told };
        sender.on_ack(at(US + RTT_PS), &told, &mut ());
        let mut choices = Recycled::default();
        (0..16).for_each(|_| assert!(sender.poll_transmit(at(US + RTT_PS), &mut rng, &mut choices).is_some()));
        assert_eq!(choices.0, recycled, "{misrouted}");
    }
}
