//! What theory says of schemes in switches holds (OFAN §6).

use std::path::Path;

use spray_core::path::BalancerKind::{self, Ecmp, HostDr, Ops};
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;
use spray_fabric::{Scheme, Switching};

/// OFAN's setting (§5) with deep buffers: a random inter-pod permutation of `packets` packets a flow.
fn scenario(packets: u64) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/ofan.toml");
    let mut document = Document::load(&file).unwrap();
    document.assign("workload.bytes", &(packets * 4_096).to_string(), "bytes").unwrap();
    // Few ACKs: the theory is about data alone.
    document.assign("transport.ack_every", "64", "ack_every").unwrap();
    document.assign("queue.limit", "\"64 MB\"", "limit").unwrap();
    Scenario::read(&document).unwrap()
}

/// The largest queue in packets, averaged over seeds.
fn largest(scheme: Scheme, balancer: BalancerKind, packets: u64) -> f64 {
    const SEEDS: u64 = 3;
    let mut scenario = scenario(packets);
    scenario.network.switching = Switching::all(scheme);
    let simulation = Simulation::new(&scenario);
    let one = |seed| {
        let summary = simulation.run(balancer, seed, &[]).unwrap().summary();
        assert!(summary.is_complete());
        summary.queue_max_bytes as f64 / FRAME_BYTES
    };
    (1..=SEEDS).map(one).sum::<f64>() / SEEDS as f64
}

/// A full frame with the gap behind it.
const FRAME_BYTES: f64 = 4_178.0;

/// By how much the largest queue grows when messages of `from` packets become four times as long.
fn growth(scheme: Scheme, balancer: BalancerKind, from: u64) -> f64 {
    largest(scheme, balancer, 4 * from) / largest(scheme, balancer, from)
}

/// Senders stick to ports while only data travels, which is for some 78 packets (OFAN appendix B): ACKs move the pointers too.
#[test]
fn simple_round_robin_grows_with_the_message() {
    // OFAN §6.1, theorem 1.
    let growth = growth(Scheme::Rr, Ecmp, 16);
    assert!((3.8..4.1).contains(&growth), "{growth}");
}

#[test]
fn the_shortest_queue_grows_with_the_message() {
    // OFAN §6.1, theorem 1.
    let growth = growth(Scheme::Jsq, Ecmp, 64);
    assert!((3.2..6.0).contains(&growth), "{growth}");
}

#[test]
fn random_spraying_grows_with_the_square_root() {
    // OFAN §6.1, theorem 2.
    for (scheme, balancer) in [(Scheme::Random, Ecmp), (Scheme::Ecmp, Ops)] {
        let growth = growth(scheme, balancer, 64);
        assert!((1.6..2.6).contains(&growth), "{scheme}, {balancer}: {growth}");
    }
}

#[test]
fn destination_based_rotation_does_not_grow() {
    // OFAN §6.1, theorems 3 and 4.
    for (scheme, balancer, most) in [
        (Scheme::Ecmp, HostDr, 10.0),
        (Scheme::Ofan, Ecmp, 8.0),
        (Scheme::OfanFib, Ecmp, 8.0),
        (Scheme::OfanShortest, Ecmp, 8.0),
    ] {
        let queues = [64, 256, 1_024].map(|packets| largest(scheme, balancer, packets));
        assert!(queues.iter().all(|queue| *queue < most), "{scheme}, {balancer}: {queues:?}");
    }
}
