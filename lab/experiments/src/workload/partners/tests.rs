use super::*;
use crate::workload::Sizes;
use spray_fabric::LeafSpine;

fn partners() -> Partners {
    let sizes = Distribution::published(Sizes::Hadoop, 1 << 40);
    Partners { messages: 50, sizes, cross_leaf: false, start_ps: 7, until_ps: None }
}

fn network(leaves: usize, hosts_per_leaf: usize) -> Network {
    LeafSpine::uniform([leaves, 2, hosts_per_leaf], 1_000_000_000, 0).network()
}

fn flows(partners: Partners, network: &Network, seed: u64) -> Vec<Flow> {
    partners.flows(network, &(0..network.hosts.len()).collect::<Vec<_>>(), seed)
}

//= docs/specs/closed-loop.md#CL-3 follow from the seed alone
#[test]
fn messages_depend_on_the_seed_and_not_on_their_number() {
    let network = network(3, 4);
    let all = flows(partners(), &network, 1);
    assert_eq!(all, flows(partners(), &network, 1));
    assert_ne!(all, flows(partners(), &network, 2));
    assert_eq!(all[..120], flows(Partners { messages: 10, ..partners() }, &network, 1));
    assert!(all.iter().enumerate().all(|(number, flow)| (flow.flow, flow.src) == (number as u32, number % 12)));
}

//= docs/specs/closed-loop.md#CL-4 with equal probability
#[test]
fn all_partners_are_equally_frequent() {
    const MESSAGES: u32 = 6_000;
    let network = network(3, 4);
    for cross_leaf in [false, true] {
        let all = flows(Partners { messages: MESSAGES, cross_leaf, ..partners() }, &network, 3);
        for src in 0..12 {
            let may = |dst: usize| dst != src && !(cross_leaf && dst / 4 == src / 4);
            let partners = (0..12).filter(|dst| may(*dst)).count() as f64;
            for dst in 0..12 {
                let found = all.iter().filter(|flow| (flow.src, flow.dst) == (src, dst)).count() as f64;
                let expected = if may(dst) { f64::from(MESSAGES) / partners } else { 0.0 };
                // Four standard deviations.
                assert!((found - expected).abs() <= 4.0 * expected.sqrt(), "{src} {dst}: {found} {expected}");
            }
        }
    }
}
