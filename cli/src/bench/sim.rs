//! `spray bench sim`: how fast the simulator is, and how that changes with the size of the fabric.

use spray_experiments::results::{self, RunResult};
use spray_experiments::sim::Simulation;

use super::median;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::say::say;
use crate::settings::Overrides;

/// A fabric and its flows, as `spray sim` takes them.
struct Size {
    hosts: u32,
    topology: &'static str,
    matrix: &'static str,
}

/// They are in ascending order, so that the process' peak memory after each run is that of the run.
const SIZES: [Size; 3] = [
    Size { hosts: 128, topology: "leaf-spine:16x8x8", matrix: "permutation:8MiB" },
    Size { hosts: 1_024, topology: "leaf-spine:32x32x32", matrix: "permutation:4MiB" },
    Size { hosts: 8_192, topology: "fat-tree:32x16x16x256x16", matrix: "permutation:1MiB" },
];
const HEADER: [&str; 8] =
    ["topology", "flows", "packet-hops", "median s", "million/s", "ns/hop", "of smallest", "peak MB"];

/// Measures permutations of growing size, one thread, and prints medians.
///
/// # Errors
/// 1 when a run does not complete.
pub fn sim(arguments: &args::BenchSim) -> Outcome {
    let mut progress = Progress::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut smallest_ns = None;
    for size in SIZES.iter().filter(|size| size.hosts <= arguments.hosts) {
        let scenario = crate::sim::published(&Overrides::fabric(size.topology, size.matrix)?)?;
        let simulation = Simulation::new(&scenario).on_threads(arguments.threads as usize);
        let mut walls = Vec::new();
        let mut last = RunResult::default();
        for round in 1..=arguments.repeat {
            progress.phase(&format!("{}: {round}/{}", size.topology, arguments.repeat));
            last = simulation.run(arguments.balancer, scenario.seed, &[]).map_err(Failure::failed)?;
            walls.push(last.wall_s);
        }
        if !last.summary().is_complete() {
            return Err(Failure::failed(format!("{}: not every flow completed", size.topology)));
        }
        let (wall_s, sim) = (median(&walls), last.sim.unwrap_or_default());
        let hop_ns = wall_s * 1e9 / sim.packet_hops.max(1) as f64;
        let growth = hop_ns / *smallest_ns.get_or_insert(hop_ns);
        rows.push(vec![
            size.topology.into(),
            size.matrix.into(),
            sim.packet_hops.to_string(),
            format!("{wall_s:.3}"),
            format!("{:.1}", 1e3 / hop_ns),
            format!("{hop_ns:.1}"),
            format!("{growth:.2}"),
            format!("{:.0}", sim.peak_rss_mb),
        ]);
    }
    progress.clear();
    say!("{} on one thread, medians of {}\n", arguments.balancer, arguments.repeat);
    say!("{}", results::align(&HEADER, 2, &rows));
    Ok(())
}
