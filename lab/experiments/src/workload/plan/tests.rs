use std::collections::HashSet;

use super::*;
use crate::workload::{Algorithm, Collective, FlowTemplate, Operation, Overrides, Partners, Pattern, WorkloadPart};
use crate::workload::{Distribution, Sizes, classes};
use spray_core::path::BalancerKind;
use spray_fabric::LeafSpine;

fn network() -> Network {
    LeafSpine::uniform([4, 2, 4], 1_000_000_000, 0).network()
}

const EACH: FlowTemplate = FlowTemplate { bytes: 1_000, start_ps: 3 };

fn named(name: &str, pattern: Pattern) -> Workload {
    Workload { name: name.into(), ..Workload::new(pattern) }
}

fn rounds() -> Collective {
    Collective {
        operation: Operation::AllReduce,
        algorithm: Algorithm::Ring,
        bytes: 4_096,
        groups: 1,
        rounds: 2,
        compute_ps: 1_000,
        start_ps: 0,
        persistent: true,
    }
}

//= docs/specs/workloads.md#WL-1 several at once
#[test]
fn flows_of_all_workloads_are_numbered_consecutively_and_keep_their_triggers() {
    let sizes = Distribution::published(Sizes::Hadoop, 1 << 20);
    let partners = Partners { messages: 3, sizes, cross_leaf: false, start_ps: 0, until_ps: Some(9) };
    let list = [
        named("p", Pattern::Permutation(EACH)),
        named("c", Pattern::Collective(rounds())),
        named("w", Pattern::ClosedLoop(partners)),
        named("t", Pattern::Tornado(EACH)),
    ];
    let plan = Plan::new(&list, &network(), 1);
    assert!(plan.flows.iter().enumerate().all(|(number, flow)| flow.flow as usize == number));
    let count = |class: u16| plan.flows.iter().filter(|flow| flow.class == class).count();
    assert_eq!([0, 1, 2, 3].map(count), [16, 2 * 2 * 15 * 16, 48, 16]);
    let triggers = plan.triggers.as_ref().unwrap();
    assert_eq!((triggers.of_flow.len(), triggers.never_started()), (plan.flows.len(), None));
    // Each workload refers only to its own triggers.
    let used = |class: u16| -> HashSet<usize> {
        let own = plan.flows.iter().filter(|flow| flow.class == class);
        let named = own.map(|flow| triggers.of_flow[flow.flow as usize]);
        named.flat_map(|own| [own.start, own.on_sent, own.on_received]).flatten().collect()
    };
    assert!(used(0).is_empty() && used(3).is_empty() && used(1).is_disjoint(&used(2)));
    let late = |flow: &Flow| plan.may_be_left_out(flow.flow as usize);
    assert_eq!(plan.flows.iter().filter(|flow| late(flow)).map(|flow| flow.class).collect::<HashSet<_>>(), [2].into());
    assert_eq!(plan.compute_ps, 2_000);
    let specs = plan.specs(1);
    spray_fabric::check_flows(&specs, plan.trigger_list(), 16).unwrap();
    assert!(specs.iter().any(|spec| spec.connection.is_some()));
    // A workload has the same flows when it is alone.
    assert_eq!(Plan::new(&list[..1], &network(), 1).flows, plan.flows[..16]);
}

#[test]
fn workloads_of_one_kind_draw_differently() {
    let two = ["a", "b"].map(|name| named(name, Pattern::Permutation(EACH)));
    let plan = Plan::new(&two, &network(), 1);
    let pairs = |class: u16| -> Vec<_> {
        plan.flows.iter().filter(|flow| flow.class == class).map(|flow| (flow.src, flow.dst)).collect()
    };
    assert_ne!(pairs(0), pairs(1));
}

//= docs/specs/workloads.md#WL-2 hosts that are drawn
#[test]
fn workloads_draw_disjoint_hosts() {
    let job =
        |name, hosts: Option<Vec<usize>>, drawn| Workload { hosts, drawn, ..named(name, Pattern::Permutation(EACH)) };
    let list = [job("a", None, Some(6)), job("b", Some((0..12).collect()), Some(4)), job("c", Some(vec![3, 1]), None)];
    let mut orders = HashSet::new();
    for seed in 0..20 {
        let [a, b, c] = &members(&list, 16, seed)[..] else { panic!("three") };
        assert_eq!((a.len(), b.len(), c.as_slice()), (6, 4, &[3, 1][..]));
        let all: HashSet<usize> = a.iter().chain(b).copied().collect();
        assert!(all.len() == 10 && b.iter().all(|host| *host < 12));
        orders.insert(a.clone());
        let flows = Plan::new(&list, &network(), seed).flows;
        let within = |class: u16, members: &[usize]| {
            let mut own = flows.iter().filter(|flow| flow.class == class);
            own.all(|flow| members.contains(&flow.src) && members.contains(&flow.dst))
        };
        assert!(within(0, a) && within(1, b) && within(2, c));
    }
    assert_eq!(orders.len(), 20);
}

//= docs/specs/workloads.md#WL-3 shares of the hosts
#[test]
fn a_larger_share_has_the_hosts_of_a_smaller_one() {
    let with = |ppm: u32| {
        let own = Overrides { balancer: Some(BalancerKind::Ecmp), cc: None, dscp: None };
        let part = WorkloadPart { name: "old".into(), ppm, own };
        Workload { parts: vec![part], ..named("new", Pattern::Permutation(EACH)) }
    };
    let hosts = |ppm: u32| -> HashSet<usize> {
        let flows = Plan::new(&[with(ppm)], &network(), 5).flows;
        flows.iter().filter(|flow| flow.class == 1).map(|flow| flow.src).collect()
    };
    let shares = [0, 100_000, 500_000, 1_000_000].map(hosts);
    assert_eq!(shares.each_ref().map(HashSet::len), [0, 2, 8, 16]);
    assert!(shares.windows(2).all(|pair| pair[0].is_subset(&pair[1])));
    let names: Vec<_> = classes(&[with(1)]).into_iter().map(|class| (class.name, class.own.balancer)).collect();
    assert_eq!(names, [("new".to_string(), None), ("old".to_string(), Some(BalancerKind::Ecmp))]);
}
