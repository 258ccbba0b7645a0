//! `spray bench sim`: run time of the simulator by threads and size.

use serde_json::{Value, json};
use spray_experiments::results::{self, RunResult};
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
}

/// Sizes in ascending order, so that the peak memory of the process after a run is that of the run.
const SIZES: [Size; 4] = [
    Size { hosts: 128, topology: "leaf-spine:16x8x8", matrix: "permutation:8MiB" },
    Size { hosts: 1_024, topology: "leaf-spine:32x32x32", matrix: "permutation:4MiB" },
    Size { hosts: 8_192, topology: "fat-tree:32x16x16x256x16", matrix: "permutation:1MiB" },
    Size { hosts: 65_536, topology: "fat-tree:64x32x32x1024x32", matrix: "permutation:256KiB" },
];

/// One time per round.
struct Measured {
    size: &'static Size,
    last: RunResult,
    one_s: Vec<f64>,
    many_s: Vec<f64>,
}

/// Fails with 1 when a run does not complete.
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
    let mut found = Measured { size, last: RunResult::default(), one_s: vec![], many_s: vec![] };
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
        if !found.last.summary().is_complete() {
            return Err(Failure::failed(format!("{}: not every flow completed", size.topology)));
        }
    }
    Ok(found)
}

impl Measured {
    fn packet_hops(&self) -> u64 {
        self.last.sim.map_or(0, |sim| sim.packet_hops)
    }

    fn hop_ns(&self) -> f64 {
        median(&self.one_s) * 1e9 / self.packet_hops().max(1) as f64
    }

    /// Speed-up by threads: the median over the rounds.
    fn speed_up(&self) -> Option<f64> {
        let each: Vec<f64> = self.one_s.iter().zip(&self.many_s).map(|(one, many)| one / many).collect();
        (!each.is_empty()).then(|| median(&each))
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
    let Measured { size, last, one_s, many_s } = measured;
    let [wall_s, least, most] = spread(one_s);
    json!({
        "hosts": size.hosts,
        "topology": size.topology,
        "matrix": size.matrix,
        "packet_hops": measured.packet_hops(),
        "wall_s": wall_s,
        "wall_s_least": least,
        "wall_s_most": most,
        "wall_s_threads": (!many_s.is_empty()).then(|| median(many_s)),
        "ratio_threads": measured.speed_up(),
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
        "peak MB",
    ];
    let row = |measured: &Measured| {
        let [wall_s, least, most] = spread(&measured.one_s);
        vec![
            measured.size.topology.into(),
            measured.size.matrix.into(),
            measured.packet_hops().to_string(),
            format!("{wall_s:.3}"),
            format!("{least:.3}"),
            format!("{most:.3}"),
            format!("{:.1}", measured.hop_ns()),
            format!("{:.2}", growth(all, measured)),
            measured.speed_up().map_or("-".into(), |ratio| format!("{ratio:.2} x")),
            format!("{:.0}", measured.last.sim.map_or(0.0, |sim| sim.peak_rss_mb)),
        ]
    };
    results::align(&header, 2, &all.iter().map(row).collect::<Vec<_>>())
}
