//! Flows that hashes put on the same links, with ConWeave: what its switches do shows at the hosts.

use super::*;
use spray_fabric::{FatTree, Scheme, Switching, conweave};

const BYTES: u64 = 6_000_000;

fn switching(scheme: Scheme, conweave: conweave::Settings) -> Switching {
    let reunion = spray_fabric::reunion::Settings { interval_ps: 20 * US, timeout_ps: 100 * US, ..Default::default() };
    Switching { reunion, conweave, flowlet_gap_ps: US, ..Switching::all(scheme) }
}

/// Flows from each host to that `step` further on.
fn ring(network: &Network, scheme: Scheme, step: usize, seed: u64, conweave: conweave::Settings) -> SimOutcome {
    let mut network = network.clone();
    network.switching = switching(scheme, conweave);
    let hosts = network.hosts.len();
    let flows: Vec<_> = (0..hosts)
        .map(|src| SimFlow { path_seed: Some(seed * 100 + src as u64), ..flow(src, (src + step) % hosts, BYTES) })
        .collect();
    let config = |_, _| flow_config(BalancerKind::Ecmp);
    simulate(&SimSpec { seed, until_ps: 100_000 * US, ..spec(&network, &flows, &config) }).unwrap()
}

fn end_us(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.received_ps.expect("every flow ends")).max().unwrap_or(0) / US
}

fn reordered(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.receiver.order.reordered).sum()
}

#[test]
fn probe() {
    for (name, network, step) in
        [("2", leaf_spine(4, 4, 4), 4), ("3", FatTree::uniform([4, 2, 2, 4, 2], BPS, US).network(), 4)]
    {
        for scheme in
            [Scheme::Ecmp, Scheme::LetFlow, Scheme::Conga, Scheme::ConWeave, Scheme::Reunion, Scheme::ReunionConWeave]
        {
            let outcome = ring(&network, scheme, step, 1, conweave::Settings::default());
            println!(
                "{name} {scheme} {} us, reordered {}, {:?}",
                end_us(&outcome),
                reordered(&outcome),
                outcome.conweave
            );
        }
    }
}
