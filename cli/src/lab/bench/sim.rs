//! `spray bench sim`: run time of the simulator by threads and size, and of another simulator.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use spray_experiments::results::{self, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::say;

use super::median::{median, spread};
use crate::lab::args;
use crate::lab::settings;

struct Size {
    hosts: u32,
    topology: &'static str,
    matrix: &'static str,
    /// The tiers for the `.topo` file of the other simulator; empty if it is not run.
    tiers: &'static [Tier],
}

struct Tier {
    down: u32,
    up: u32,
}

/// Sizes in ascending order, so that the peak memory of the process after a run is that of the run.
const SIZES: [Size; 4] = [
    Size {
        hosts: 128,
        topology: "leaf-spine:16x8x8",
        matrix: "permutation:8MiB",
        tiers: &[Tier { down: 8, up: 8 }, Tier { down: 16, up: 0 }],
    },
    Size {
        hosts: 1_024,
        topology: "leaf-spine:32x32x32",
        matrix: "permutation:4MiB",
        tiers: &[Tier { down: 32, up: 32 }, Tier { down: 32, up: 0 }],
    },
    Size { hosts: 8_192, topology: "fat-tree:32x16x16x256x16", matrix: "permutation:1MiB", tiers: &[] },
    Size { hosts: 65_536, topology: "fat-tree:64x32x32x1024x32", matrix: "permutation:256KiB", tiers: &[] },
];

/// One time per round.
struct Measured {
    size: &'static Size,
    last: RunResult,
    one_s: Vec<f64>,
    many_s: Vec<f64>,
    reference_s: Vec<f64>,
}

/// Fails with 1 when a run does not complete, 2 when the other simulator cannot be run.
pub fn sim(arguments: &args::BenchSim) -> Outcome {
    let mut progress = Progress::on_stderr();
    let mut all = Vec::new();
    for size in SIZES.iter().filter(|size| size.hosts <= arguments.hosts) {
        all.push(measure(arguments, size, &mut progress)?);
    }
    progress.clear();
    say::object(&object(arguments, &all))?;
    let threads = arguments.threads;
    say!("{} on one thread and on {threads}, medians of {}\n", arguments.balancer, arguments.repeat);
    say!("{}", table(&all));
    Ok(())
}

/// Large sizes run once.
fn measure(arguments: &args::BenchSim, size: &'static Size, progress: &mut Progress) -> Outcome<Measured> {
    let scenario = crate::lab::sim::published(&settings::fabric(size.topology, size.matrix)?)?;
    let on = |threads| Simulation::new(&scenario).on_threads(threads);
    let (one, many) = (on(1), on(arguments.threads as usize));
    let mut found = Measured { size, last: RunResult::default(), one_s: vec![], many_s: vec![], reference_s: vec![] };
    let rounds = if size.hosts > 1_024 { 1 } else { arguments.repeat };
    for round in 1..=rounds {
        progress.phase(&format!("{}: {round}/{rounds}", size.topology));
        let run = |simulation: &Simulation<'_>| {
            simulation.run(arguments.balancer, scenario.seed, &[]).map_err(Failure::failed)
        };
        found.last = run(&one)?;
        found.one_s.push(found.last.engine_figures.wall_s);
        if arguments.threads > 1 {
            found.many_s.push(run(&many)?.engine_figures.wall_s);
        }
        if let Some(command) = arguments.reference.as_deref().filter(|_| !size.tiers.is_empty()) {
            found.reference_s.push(reference_s(command, &scenario, size)?);
        }
        if !found.last.summary().is_complete() {
            return Err(Failure::failed(format!("{}: not every flow completed", size.topology)));
        }
    }
    Ok(found)
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn reference_s(command: &str, scenario: &Scenario, size: &Size) -> Outcome<f64> {
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let [topology, matrix] = ["fabric.topo", "flows.cm"].map(|name| folder.path().join(name));
    std::fs::write(&topology, topo(size)).map_err(Failure::failed)?;
    std::fs::write(&matrix, cm(scenario)).map_err(Failure::failed)?;
    let fill = |word: &str| {
        word.replace("{topology}", &topology.to_string_lossy()).replace("{matrix}", &matrix.to_string_lossy())
    };
    let mut words = command.split_whitespace().map(fill);
    let program = words.next().unwrap_or_default();
    let begun = Instant::now();
    let ended = Command::new(&program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = ended.map_err(|error| Failure::refused(format!("--reference: `{program}`: {error}")))?;
    if !status.success() {
        return Err(Failure::failed(format!("--reference: `{program}` ended with {status}")));
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn topo(size: &Size) -> String {
    let mut out = format!("Nodes {0}\nTiers {1}\nPodsize {0}\n", size.hosts, size.tiers.len());
    for (number, Tier { down, up }) in size.tiers.iter().enumerate() {
        let _ = write!(out, "\nTier {number}\nDownlink_speed_Gbps 400\nRadix_Down {down}\n");
        if *up > 0 {
            let _ = writeln!(out, "Radix_Up {up}");
        }
        out += "Downlink_Latency_ns 1000\nSwitch_Latency_ns 0\n";
    }
    out
}

fn cm(scenario: &Scenario) -> String {
    let flows = scenario.flows(scenario.seed);
    let mut out = format!("Nodes {}\nConnections {}\n", scenario.network.hosts.len(), flows.len());
    for (id, flow) in (1..).zip(&flows) {
        let _ = writeln!(out, "{}->{} id {id} start {} size {}", flow.src, flow.dst, flow.start_ps, flow.bytes);
    }
    out
}

impl Measured {
    fn packet_hops(&self) -> u64 {
        self.last.sim.map_or(0, |sim| sim.packet_hops)
    }

    fn hop_ns(&self) -> f64 {
        median(&self.one_s) * 1e9 / self.packet_hops().max(1) as f64
    }

    /// Speed-up by threads, and the other simulator's relative time: medians over the rounds.
    fn ratios(&self) -> [Option<f64>; 2] {
        let ratio = |above: &[f64], below: &[f64]| {
            let each: Vec<f64> = above.iter().zip(below).map(|(above, below)| above / below).collect();
            (!each.is_empty()).then(|| median(&each))
        };
        [ratio(&self.one_s, &self.many_s), ratio(&self.reference_s, &self.one_s)]
    }
}

fn growth(all: &[Measured], measured: &Measured) -> f64 {
    measured.hop_ns() / all.first().map_or(1.0, Measured::hop_ns)
}

fn object(arguments: &args::BenchSim, all: &[Measured]) -> Value {
    json!({
        "balancer": arguments.balancer.to_string(),
        "threads": arguments.threads,
        "repeat": arguments.repeat,
        "sizes": all.iter().map(|measured| row(all, measured)).collect::<Vec<_>>(),
    })
}

fn row(all: &[Measured], measured: &Measured) -> Value {
    let Measured { size, last, one_s, many_s, reference_s } = measured;
    let some = |list: &[f64]| (!list.is_empty()).then(|| median(list));
    let [wall_s, least, most] = spread(one_s);
    let [ratio_threads, ratio_reference] = measured.ratios();
    json!({
        "hosts": size.hosts,
        "topology": size.topology,
        "matrix": size.matrix,
        "packet_hops": measured.packet_hops(),
        "wall_s": wall_s,
        "wall_s_least": least,
        "wall_s_most": most,
        "wall_s_threads": some(many_s),
        "reference_s": some(reference_s),
        "ratio_threads": ratio_threads,
        "ratio_reference": ratio_reference,
        "packet_hops_per_s": (1e9 / measured.hop_ns()).round() as u64,
        "hop_ns": measured.hop_ns(),
        "growth": growth(all, measured),
        "peak_rss_mb": last.sim.map_or(0.0, |sim| sim.peak_rss_mb),
    })
}

fn table(all: &[Measured]) -> String {
    let header = [
        "topology",
        "flows",
        "packet-hops",
        "median s",
        "least",
        "most",
        "ns/hop",
        "of smallest",
        "threads",
        "reference",
        "peak MB",
    ];
    let row = |measured: &Measured| {
        let times = |ratio: Option<f64>| ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2} x"));
        let [wall_s, least, most] = spread(&measured.one_s);
        let [threads, reference] = measured.ratios();
        vec![
            measured.size.topology.into(),
            measured.size.matrix.into(),
            measured.packet_hops().to_string(),
            format!("{wall_s:.3}"),
            format!("{least:.3}"),
            format!("{most:.3}"),
            format!("{:.1}", measured.hop_ns()),
            format!("{:.2}", growth(all, measured)),
            times(threads),
            times(reference),
            format!("{:.0}", measured.last.sim.map_or(0.0, |sim| sim.peak_rss_mb)),
        ]
    };
    results::align(&header, 2, &all.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_experiments::workload::parse_matrix;
    use spray_fabric::TopoFile;

    #[test]
    fn another_simulator_gets_the_same_fabric_and_flows() {
        for size in SIZES.iter().filter(|size| !size.tiers.is_empty()) {
            let overrides = settings::fabric(size.topology, size.matrix).ok().unwrap();
            let scenario = crate::lab::sim::published(&overrides).ok().unwrap();
            let network = TopoFile::parse(&topo(size)).unwrap().network();
            let shape = |network: &spray_fabric::Network| {
                let rates: Vec<_> = network.links.iter().map(|link| (link.rate_bps, link.latency_ps)).collect();
                (network.hosts.len(), network.switches.len(), rates)
            };
            assert!(shape(&network) == shape(&scenario.network), "{}", size.topology);
            assert!(parse_matrix(&cm(&scenario), network.hosts.len()).is_ok(), "{}", size.matrix);
        }
    }
}
