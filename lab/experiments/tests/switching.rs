//! Theoretical results about schemes in switches (OFAN §6).

use spray_core::path::BalancerKind::{self, Ecmp, HostDr, Ops};
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;
use spray_experiments::workload::{Flow, Pattern};
use spray_fabric::{Scheme, Switching};

/// Returns OFAN's setting (§5) with deep buffers: a random inter-pod permutation of `packets`
/// packets per flow.
fn scenario(packets: u64) -> Scenario {
    scenario_of(packets * 4_096, 4_096)
}

/// As [`scenario`], with `bytes` per flow, in packets of this payload.
fn scenario_of(bytes: u64, payload: u64) -> Scenario {
    let file = spray_test_support::root().join("tests/scenarios/ofan.toml");
    let mut document = Document::load(&file).unwrap();
    document.assign("workload.bytes", &bytes.to_string(), "bytes").unwrap();
    document.assign("transport.payload_bytes", &payload.to_string(), "payload_bytes").unwrap();
    // Few ACKs: the theory considers data alone.
    document.assign("transport.ack_every", "64", "ack_every").unwrap();
    document.assign("queue.limit", "\"64 MB\"", "limit").unwrap();
    Scenario::read(&document).unwrap()
}

/// Returns the maximum queue in packets, averaged over seeds.
fn largest(scheme: Scheme, balancer: BalancerKind, packets: u64) -> f64 {
    const SEEDS: u64 = 3;
    let mut scenario = scenario(packets);
    scenario.network.switching = Switching::all(scheme);
    let one = |seed| {
        let scenario = if scheme == Scheme::Rr { in_order(&scenario, seed) } else { scenario.clone() };
        let summary = Simulation::new(&scenario).run(balancer, seed, &[]).unwrap().summary();
        assert!(summary.is_complete());
        summary.fabric.queue_max_bytes as f64 / FRAME_BYTES
    };
    (1..=SEEDS).map(one).sum::<f64>() / SEEDS as f64
}

/// Returns the same flows, each starting an eighth of a nanosecond after that of the previous host:
/// in theorem 1 senders keep to ports, which they do while their frames arrive at a switch in the
/// same order. The order of simultaneous frames is random.
fn in_order(scenario: &Scenario, seed: u64) -> Scenario {
    let mut ordered = scenario.clone();
    let later = |flow: Flow| Flow { start_ps: flow.src as u64 * 125, ..flow };
    ordered.workloads[0].pattern = Pattern::Flows(scenario.flows(seed).into_iter().map(later).collect());
    ordered
}

/// A full frame and the gap after it.
const FRAME_BYTES: f64 = 4_178.0;

/// Returns the factor by which the maximum queue grows when messages of `from` packets become four
/// times as long.
fn growth(scheme: Scheme, balancer: BalancerKind, from: u64) -> f64 {
    largest(scheme, balancer, 4 * from) / largest(scheme, balancer, from)
}

/// Senders keep to ports while only data is in flight, for about 78 packets (OFAN appendix B): ACKs
/// advance the pointers too.
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

/// Returns the payload, of powers of two, with which messages of `bytes` complete first, and the
/// completion times in us.
fn best_payload(scheme: Scheme, balancer: BalancerKind, bytes: u64, payloads: &[u64]) -> (u64, Vec<f64>) {
    const SEEDS: u64 = 3;
    let time_us = |payload: &u64| {
        let mut scenario = scenario_of(bytes, *payload);
        scenario.network.switching = Switching::all(scheme);
        let simulation = Simulation::new(&scenario);
        let one = |seed| simulation.run(balancer, seed, &[]).unwrap().summary().flows.makespan_us.unwrap();
        (1..=SEEDS).map(one).sum::<f64>() / SEEDS as f64
    };
    let times: Vec<f64> = payloads.iter().map(time_us).collect();
    let best = times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    (payloads[best], times)
}

#[test]
fn the_best_packet_size_grows_with_the_square_root_of_the_message() {
    //= docs/specs/switching.md#SWC-40 the best packet size
    // OFAN §8.1, theorem 5: for a message sixteen times as long, the optimal payload is four times
    // as large.
    const SMALL: u64 = 256 << 10;
    let (small, small_us) = best_payload(Scheme::Ofan, Ecmp, SMALL, &[256, 512, 1_024, 2_048, 4_096, 8_192]);
    let (large, large_us) = best_payload(Scheme::Ofan, Ecmp, 16 * SMALL, &[1_024, 2_048, 4_096, 8_192, 16_384, 32_768]);
    println!("{small} of {small_us:.2?}, {large} of {large_us:.2?}");
    for (best, bytes) in [(small, SMALL), (large, 16 * SMALL)] {
        // Headers and gap of 82 bytes, and the paper's queues of ten packets.
        let theorem = (82.0 / 10.0 * bytes as f64).sqrt();
        assert!((0.5..2.0).contains(&(best as f64 / theorem)), "{best} for {bytes}, theorem 5 says {theorem}");
    }
    assert!((2..=8).contains(&(large / small)), "{small}, {large}");
}
