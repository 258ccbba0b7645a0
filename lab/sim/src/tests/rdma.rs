//! RDMA NIC receivers under DCQCN: on one path and over many, with and without losses.

use spray_core::cc::CcKind;
use spray_core::loss::{IrnConfig, ReceiverConfig, ReceiverKind};

use super::*;

const PACKETS: u64 = 256;

/// Each of 16 hosts sends to one of the next leaf; links between switches lose `ppm`, and nothing
/// is trimmed.
fn permutation(receiver: ReceiverConfig, balancer: BalancerKind, ppm: u32, seed: u64) -> SimOutcome {
    let network = leaf_spine(4, 4, 4);
    let links = network.links.iter().enumerate();
    let between = links.filter(|(_, link)| !link.name.contains('h')).map(|(index, _)| index).collect();
    let action = LinkAction::Loss { ppm };
    let event = LinkEvent { name: "all".into(), links: between, at_ps: 0, until_ps: None, action };
    let flows: Vec<_> = (0..16).map(|src| flow(src, (src + 4) % 16, PACKETS * PAYLOAD)).collect();
    let mut config = FlowConfig { receiver, ..flow_config(balancer) };
    (config.cc, config.path.trimming) = (CcKind::Dcqcn.into(), false);
    // Queues that do not overflow: losses are those of links only.
    let queue = |_| Thresholds { limit_bytes: 1 << 28, mark_min_bytes: 83_000, mark_max_bytes: 332_000, ..queue(0) };
    let events: &[LinkEvent] = if ppm > 0 { &[event] } else { &[] };
    let outcome = simulate(&SimSpec { events, queue: &queue, seed, ..spec(&network, &flows, &|_| config) }, 1).unwrap();
    for flow in &outcome.flows {
        assert!(flow.acked_ps.is_some(), "{receiver:?} {balancer}: {:?}", flow.sender);
        assert_eq!(
            (flow.receiver.bytes, flow.receiver.packets),
            (PACKETS * PAYLOAD, PACKETS),
            "each byte is delivered once"
        );
    }
    outcome
}

fn sum(outcome: &SimOutcome, of: impl Fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(of).sum()
}

fn again(outcome: &SimOutcome) -> u64 {
    sum(outcome, |flow| flow.sender.retransmits)
}

#[test]
fn spraying_causes_spurious_retransmissions_with_go_back_n() {
    let allowing = ReceiverConfig::Irn(IrnConfig { nacks: 200, ..IrnConfig::default() });
    for seed in 1..4 {
        let run = |receiver, balancer| permutation(receiver, balancer, 0, seed);
        let back = run(ReceiverKind::GoBackN.into(), BalancerKind::Ops);
        let irn = run(ReceiverKind::Irn.into(), BalancerKind::Ops);
        let patient = run(allowing, BalancerKind::Ops);
        assert!(sum(&back, |flow| flow.receiver.out_of_order) > 1_000, "otherwise the test is void");
        assert!(again(&back) > 1_000 && again(&back) > 2 * again(&irn), "{} against {}", again(&back), again(&irn));
        assert_eq!((again(&patient), sum(&patient, |flow| flow.sender.timeouts)), (0, 0));
        let order = |outcome: &SimOutcome| sum(outcome, |flow| flow.receiver.order.reordered);
        assert!(order(&patient) > 500 && sum(&patient, |flow| flow.receiver.order.unexpected) > order(&patient));
        let degrees = sum(&patient, |flow| flow.receiver.order.degrees.counts().iter().sum());
        assert_eq!(degrees, order(&patient));
    }
}

#[test]
fn one_path_causes_no_retransmissions() {
    for kind in [ReceiverKind::GoBackN, ReceiverKind::Irn] {
        let outcome = permutation(kind.into(), BalancerKind::Ecmp, 0, 7);
        let order = sum(&outcome, |flow| flow.receiver.order.reordered + flow.receiver.order.unexpected);
        assert_eq!((again(&outcome), order), (0, 0), "{kind:?}");
    }
}

#[test]
fn losses_on_links_are_repaired_and_cost_go_back_n_more() {
    for seed in 1..4 {
        let run = |kind: ReceiverKind| permutation(kind.into(), BalancerKind::Ecmp, 2_000, seed);
        let (back, irn) = (run(ReceiverKind::GoBackN), run(ReceiverKind::Irn));
        let lost = |outcome: &SimOutcome| outcome.ports.iter().map(|port| port.counters.drops_random).sum::<u64>();
        assert!(lost(&back) > 3 && lost(&irn) > 3, "otherwise the test is void");
        assert!(again(&irn) <= lost(&irn) && again(&back) > 5 * lost(&back), "{} and {}", again(&irn), again(&back));
    }
}
