//! OFAN's ideal erasure code compared with timers alone, under random loss between switches.

use spray_core::cc::CcKind;
use spray_core::loss::SackRule;

use super::*;

const PACKETS: u64 = 256;

/// Each of 32 hosts sends to one of the next leaf at its link's rate; cables between switches lose
/// `ppm`.
fn lossy(ppm: u32, seed: u64, ideal_code: bool, change: impl Fn(&mut FlowConfig)) -> SimOutcome {
    let network = leaf_spine(4, 8, 8);
    let links = network.links.iter().enumerate();
    let between = links.filter(|(_, link)| !link.name.contains("host")).map(|(index, _)| index).collect();
    let action = LinkAction::Loss { ppm };
    let event = LinkEvent { name: "all".into(), links: between, at_ps: 0, until_ps: None, action };
    let flows: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, PACKETS * PAYLOAD)).collect();
    let mut config = flow_config(BalancerKind::Ops);
    (config.cc, config.path.max_window_bytes) = (CcKind::FixedRate.into(), u64::MAX);
    change(&mut config);
    simulate(&SimSpec { events: &[event], ideal_code, seed, ..spec(&network, &flows, &|_| config) }, 1).unwrap()
}

fn slowest_us(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.acked_ps.expect("a complete flow")).max().unwrap_or(0) / US
}

#[test]
fn random_loss_causes_no_timeouts_with_an_ideal_code() {
    //= docs/specs/erasure.md#ERA-1 fresh coded packets
    //= docs/specs/erasure.md#ERA-4
    for (ppm, seed) in [(0, 1), (10_000, 2), (50_000, 3)] {
        let coded = lossy(ppm.max(1), seed, true, |_| ());
        let timed = lossy(ppm.max(1), seed, false, |_| ());
        let timeouts: u64 = coded.flows.iter().map(|flow| flow.sender.timeouts).sum();
        assert_eq!(timeouts, 0, "{ppm}");
        for flow in &coded.flows {
            let (sent, got) = (flow.sender, flow.receiver);
            assert!(got.packets >= PACKETS && sent.packets_sent >= PACKETS, "{sent:?} {got:?}");
            assert_eq!(got.bytes, PACKETS * PAYLOAD);
            assert_eq!(got.frames, got.packets + got.duplicates + got.trimmed + got.out_of_window + got.invalid);
            assert_eq!(sent.packets_sent - sent.retransmits + sent.packets_spared, PACKETS);
        }
        let (coded_us, timed_us) = (slowest_us(&coded), slowest_us(&timed));
        assert!(coded_us <= timed_us, "{ppm}: {coded_us} us with a code, {timed_us} without");
        if ppm > 0 {
            let timers: u64 = timed.flows.iter().map(|flow| flow.sender.timeouts).sum();
            assert!(timers > 0 && coded_us * 5 < timed_us * 4, "{ppm}: {coded_us} us with a code, {timed_us} without");
        }
        let all = coded.frames_delivered + coded.frames_dropped + coded.frames_in_flight;
        assert_eq!(coded.frames_sent, all);
    }
}

#[test]
fn the_plain_gap_rule_detects_losses_sooner_and_has_spurious_losses() {
    //= docs/specs/transport.md#TRN-39 plain gap rule
    let run = |rule, gap| {
        let change = |config: &mut FlowConfig| (config.sack_rule, config.sack_gap_packets) = (rule, Some(gap));
        (4..9).map(|seed| lossy(10_000, seed, false, change)).fold((0, 0), |(time_us, resent), outcome| {
            let acked_us = outcome.flows.iter().map(|flow| flow.acked_ps.unwrap() / US).sum::<u64>();
            (time_us + acked_us, resent + outcome.flows.iter().map(|flow| flow.sender.retransmits).sum::<u64>())
        })
    };
    let (patient, plain32, plain3) = (run(SackRule::Patient, 8), run(SackRule::Plain, 32), run(SackRule::Plain, 3));
    assert!(plain32.0 <= patient.0, "{plain32:?} against {patient:?}");
    assert!(plain3.1 > 2 * plain32.1, "{plain3:?} against {plain32:?}");
}
