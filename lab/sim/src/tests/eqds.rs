//! EQDS in whole fabrics: its guarantees for the last hop, and that no loss stops a flow.

use spray_core::cc::CcKind;

use super::*;

/// A bandwidth-delay product in packets, sent without credit.
const SPECULATIVE: u64 = 101;

fn simulate_with(
    network: &Network,
    flows: &[FlowSpec],
    events: &[LinkEvent],
    (balancer, trim, seed): (BalancerKind, bool, u64),
) -> SimOutcome {
    // With losses on every link, many attempts in a row may fail.
    let give_up_ps =
        if events.iter().any(|event| matches!(event.action, LinkAction::Loss { .. })) { 1_000_000 } else { 50_000 }
            * US;
    let config = |_| {
        let mut config = flow_config(balancer);
        config.cc = CcKind::Eqds.into();
        config.path.trimming = trim;
        config.give_up_ps = give_up_ps;
        config
    };
    let spec = SimSpec {
        events,
        queue: &|rate| Thresholds { trim, ..queue(rate) },
        seed,
        until_ps: 2_000_000 * US,
        sample_ps: 10 * US,
        ..spec(network, flows, &config)
    };
    simulate(&spec, 1).unwrap()
}

fn sum(outcome: &SimOutcome, count: impl Fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(count).sum()
}

/// Returns (us, maximum waiting packets) of a port by bin.
fn queue_of(outcome: &SimOutcome, name: &str) -> Vec<(u64, u64)> {
    let port = outcome.ports.iter().position(|port| port.name == name).unwrap();
    let samples = outcome.samples.iter().find(|samples| samples.port == port).unwrap();
    (0..).zip(&samples.bins).map(|(bin, counted)| (bin * samples.bin_ps / US, counted.queue_max / 4_150)).collect()
}

fn last_ps(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).max().unwrap()
}

/// Time of `packets` full packets through one link at 99 % of its rate, plus two round trips.
fn paced_ps(packets: u64) -> u64 {
    packets * PACKET_PS * 100 / 99 + 2 * 8_337_000
}

fn incast() -> (Network, Vec<FlowSpec>) {
    (leaf_spine(5, 4, 4), (4..20).map(|src| flow(src, 0, 1_000 * PAYLOAD)).collect())
}

//= docs/specs/eqds.md#EQDS-2 speculation
//= docs/specs/eqds.md#EQDS-11 one queue
//= docs/specs/eqds.md#EQDS-12 spacing of pulls
#[test]
fn an_incast_keeps_its_last_link_busy_and_trims_only_speculative_packets() {
    let (network, flows) = incast();
    let outcome = simulate_with(&network, &flows, &[], (BalancerKind::Ops, true, 3));
    assert_eq!(sum(&outcome, |flow| flow.sender.timeouts), 0);
    let trims = sum(&outcome, |flow| flow.receiver.trimmed);
    assert!((1_000..16 * SPECULATIVE).contains(&trims), "{trims}");
    assert_eq!(sum(&outcome, |flow| flow.sender.retransmits), trims);
    let (last, most) = (last_ps(&outcome), paced_ps(16 * 1_000));
    assert!(last < most, "{last} ps, above {most}");
    // Fair shares: all senders end together, except for the effect of their first windows.
    let first = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).min().unwrap();
    assert!(last - first < last / 40, "{first} to {last}");
    // The queue left by the first window drains at the pacer's one per cent, and nothing is added:
    // after the second round trip it never grows by more than a packet per sender.
    let queue: Vec<_> = queue_of(&outcome, "leaf0->h0").into_iter().filter(|(us, _)| *us > 20).collect();
    let rise = queue.iter().scan(u64::MAX, |least, (_, waiting)| {
        *least = (*least).min(*waiting);
        Some(*waiting - *least)
    });
    assert!(rise.max().unwrap() <= 16, "{queue:?}");
    assert!(queue.last().unwrap().1 < queue[0].1 / 2, "{queue:?}");
}

#[test]
fn without_trimming_an_incast_takes_a_timeout_longer() {
    let (network, flows) = incast();
    let outcome = simulate_with(&network, &flows, &[], (BalancerKind::Ops, false, 3));
    assert!(sum(&outcome, |flow| flow.sender.timeouts) > 0);
    assert!(last_ps(&outcome) < paced_ps(16 * 1_000) + 2 * 41_500_000);
}

//= docs/specs/eqds.md#EQDS-8 size of a request
#[test]
fn a_permutation_runs_near_the_rate_of_its_links() {
    let network = leaf_spine(4, 8, 8);
    let flows: Vec<_> = (0..32).map(|src| flow(src, (src + 8) % 32, 2_000 * PAYLOAD)).collect();
    let outcome = simulate_with(&network, &flows, &[], (BalancerKind::Reps, true, 1));
    let mean = outcome.flows.iter().map(|flow| flow.received_ps.unwrap()).sum::<u64>() / 32;
    let alone = 2_003 * PACKET_PS + 4 * US;
    assert!(mean < alone * 107 / 100, "{mean} against {alone}");
    assert_eq!(sum(&outcome, |flow| flow.sender.timeouts), 0);
}

//= docs/specs/eqds.md#EQDS-11 one queue
#[test]
fn a_late_flow_gets_its_share_immediately() {
    let network = leaf_spine(2, 4, 4);
    let mut flows = [flow(4, 0, 4_000 * PAYLOAD), flow(5, 0, 1_000 * PAYLOAD)];
    flows[1].start = Start::At(100 * US);
    let outcome = simulate_with(&network, &flows, &[], (BalancerKind::Reps, true, 1));
    let took = outcome.flows[1].received_ps.unwrap() - 100 * US;
    let half = 2 * 1_000 * PACKET_PS;
    assert!(took < half + 3 * 8_337_000 && took > half * 8 / 10, "{took} against {half}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Loses data, ACKs, NACKs, pulls and requests: every flow completes, and frames are conserved.
    //= docs/specs/eqds.md#EQDS-14 A sender without credit
    #[test]
    fn every_flow_completes_despite_losses(
        seed in 0u64..1000,
        loss in 0u32..150_000,
        trim: bool,
        sources in 1usize..8,
        packets in 1u64..300,
        kind in 0usize..3,
    ) {
        let network = leaf_spine(3, 2, 4);
        let links: Vec<_> = (0..network.links.len()).collect();
        let action = LinkAction::Loss { ppm: loss.max(1) };
        let event = LinkEvent { name: String::new(), links, at_ps: 0, until_ps: None, action };
        let flows: Vec<_> = (0..sources).map(|src| flow(4 + src, src % 3, packets * PAYLOAD)).collect();
        let balancer = [BalancerKind::Reps, BalancerKind::Ops, BalancerKind::Ecmp][kind];
        let outcome = simulate_with(&network, &flows, &[event], (balancer, trim, seed));
        for flow in &outcome.flows {
            prop_assert!(flow.acked_ps.is_some(), "{:?}", flow);
        }
    }
}
