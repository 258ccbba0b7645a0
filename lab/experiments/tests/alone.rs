//! A message alone in the fabric has a slowdown of 1, for all sizes, rates, latencies and headers,
//! measured at either end of a flow.

use rand_core::RngCore;
use spray_core::path::BalancerKind;
use spray_core::rng::{Rng, stream};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;

/// Draws a number from `least` to `most`, uniformly in its logarithm.
fn drawn(rng: &mut Rng, least: f64, most: f64) -> f64 {
    let share = rng.next_u64() as f64 / 2f64.powi(64);
    least * (most / least).powf(share)
}

fn one_of<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    all[(rng.next_u64() % all.len() as u64) as usize]
}

/// Returns a random fabric of two or three tiers with messages of various sizes, one after another.
fn scenario(seed: u64) -> String {
    let rng = &mut stream(seed, 0);
    let host = drawn(rng, 0.5, 120.0);
    let [uplink, core] = [0; 2].map(|_| host * drawn(rng, 1.0, 8.0));
    let [latency, switch] =
        [0; 2].map(|_| if rng.next_u64().is_multiple_of(4) { 0.0 } else { drawn(rng, 0.001, 20.0) });
    let shape = if rng.next_u64().is_multiple_of(2) {
        format!("kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nuplink_gbps = {uplink:.3}")
    } else {
        format!(
            "kind = 'fat-tree'\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\ncores = 4\nhosts_per_tor = 2\n\
             uplink_gbps = {uplink:.3}\ncore_gbps = {core:.3}"
        )
    };
    let payload = drawn(rng, 64.0, 9_000.0) as u64;
    let flow = |number: u64, rng: &mut Rng| {
        let near = [0, 1, payload - 1][(rng.next_u64() % 3) as usize];
        let bytes = (drawn(rng, 1.0, 300.0) as u64 - 1) * payload + near.max(1);
        let dst = one_of(rng, &["h1", "h2", "h3"]);
        format!("{{ src = 'h0', dst = '{dst}', bytes = {bytes}, start_us = {} }}", number * 400_000)
    };
    let flows: Vec<String> = (0..6).map(|number| flow(number, rng)).collect();
    let header = (drawn(rng, 40.0, 120.0) as u64, drawn(rng, 40.0, 120.0) as u64);
    format!(
        "name = 'alone'\n[topology]\n{shape}\nhost_gbps = {host:.3}\nlatency_us = {latency:.3}\n\
         switch_latency_us = {switch:.3}\n[workload]\nkind = 'flows'\nflow = [{}]\n[transport]\nip = '{}'\n\
         payload_bytes = {payload}\n[simulation]\nfct_end = '{}'\n{}",
        flows.join(", "),
        one_of(rng, &["4", "6"]),
        one_of(rng, &["received", "acked"]),
        if rng.next_u64().is_multiple_of(2) {
            format!("header_bytes = {}\ncontrol_bytes = {}", header.0, header.1)
        } else {
            String::new()
        },
    )
}

//= docs/specs/open-loop.md#OL-3 alone in the fabric
#[test]
fn a_message_alone_has_a_slowdown_of_1() {
    for seed in 0..150 {
        let text = scenario(seed);
        let scenario = Scenario::parse("alone.toml".as_ref(), &text).unwrap();
        for balancer in [BalancerKind::Ecmp, BalancerKind::Flowcut, BalancerKind::Reps] {
            for flow in Simulation::new(&scenario).run(balancer, seed, &[]).unwrap().flows {
                let slowdown = flow.fct_us.unwrap() / flow.unloaded_fct_us;
                // Times of hosts are rounded to eighths of a nanosecond.
                let allowed = 0.000_5 / flow.fct_us.unwrap();
                let case = format!("seed {seed}, {balancer}, {} bytes to {}: {slowdown}\n{text}", flow.bytes, flow.dst);
                // With several paths the short last packet may arrive first.
                let least = if balancer == BalancerKind::Reps { 0.5 } else { 1.0 - allowed };
                assert!((least..=1.0 + allowed).contains(&slowdown), "{case}");
            }
        }
    }
}

/// Packet sizes and rates of an earlier bug: sizes near that of a packet, and rates that are no
/// multiples of each other.
#[test]
fn the_last_short_packet_waits_for_the_one_before() {
    let text = "name = 'alone'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_gbps = 25\n\
                uplink_gbps = 33.3\nlatency_us = 0.7\nswitch_latency_us = 0.3\n[workload]\nkind = 'flows'\nflow = [\n\
                { src = 'h0', dst = 'h2', bytes = 1 }, { src = 'h0', dst = 'h2', bytes = 3001, start_us = 2000 },\n\
                { src = 'h0', dst = 'h1', bytes = 6000, start_us = 3000 }, { src = 'h0', dst = 'h2', bytes = 1000000, start_us = 4000 }]\n";
    let scenario = Scenario::parse("alone.toml".as_ref(), text).unwrap();
    let flows = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap().flows;
    let slowdowns: Vec<String> =
        flows.iter().map(|flow| format!("{:.5}", (flow.fct_us.unwrap() / flow.unloaded_fct_us))).collect();
    assert_eq!(slowdowns, ["1.00000"; 4]);
}
