//! Completion time over packet size, as OFAN's figure 11: by how much a permutation lasts longer than its payload takes at the line rate.
//!
//! `cargo run --release -p spray-experiments --example packet_size -- tests/scenarios/ofan.toml`

use std::path::Path;

use spray_core::path::BalancerKind::{self, Ecmp, HostDr, Ops};
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::{Simulation, over_cores};
use spray_fabric::{Scheme, Switching};

const PAYLOADS: [u64; 7] = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];
const MESSAGES: [u64; 2] = [1 << 20, 8 << 20];
const SCHEMES: [(&str, BalancerKind, Scheme); 4] = [
    ("ofan", Ecmp, Scheme::Ofan),
    ("host-dr", HostDr, Scheme::Ecmp),
    ("ops", Ops, Scheme::Ecmp),
    ("rr-permuted", Ecmp, Scheme::RrPermuted),
];
const SEEDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file =
        std::env::args().nth(1).ok_or("which scenario? one with `header_bytes`, as tests/scenarios/ofan.toml")?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for bytes in MESSAGES {
        println!("{bytes} bytes a flow: per cent above the payload's time, mean over {SEEDS} seeds\n");
        println!("| payload | {} |\n|--:|{}", SCHEMES.map(|(name, ..)| name).join(" | "), "--:|".repeat(SCHEMES.len()));
        for payload in PAYLOADS {
            let scenarios: Vec<Scenario> = SCHEMES
                .iter()
                .map(|(_, _, scheme)| scenario(&file, bytes, payload, *scheme))
                .collect::<Result<_, _>>()?;
            let simulations: Vec<_> = scenarios.iter().map(Simulation::new).collect();
            let one = |job: usize| {
                let run = simulations[job / SEEDS].run(SCHEMES[job / SEEDS].1, (job % SEEDS) as u64 + 1, &[]);
                Ok::<_, String>(run.map_err(|error| error.to_string())?.summary().makespan_us)
            };
            let times_us = over_cores(SCHEMES.len() * SEEDS, threads, one)?;
            let least_us = bytes as f64 * 8e6 / scenarios[0].network.links[0].rate_bps as f64;
            let cell =
                |runs: &[f64]| format!("{:.1}", 100.0 * (runs.iter().sum::<f64>() / SEEDS as f64 / least_us - 1.0));
            println!("| {payload} | {} |", times_us.chunks(SEEDS).map(cell).collect::<Vec<_>>().join(" | "));
        }
        println!();
    }
    Ok(())
}

fn scenario(file: &str, bytes: u64, payload: u64, scheme: Scheme) -> Result<Scenario, Box<dyn std::error::Error>> {
    let mut document = Document::load(Path::new(file))?;
    document.assign("workload.bytes", &bytes.to_string(), "bytes")?;
    document.assign("transport.payload_bytes", &payload.to_string(), "payload")?;
    document.assign("transport.ack_every", "64", "ack_every")?;
    document.assign("queue.limit", "\"64 MB\"", "limit")?;
    let mut scenario = Scenario::read(&document)?;
    scenario.network.switching = Switching::all(scheme);
    Ok(scenario)
}
