//! Reunion over each base, in the setting of its paper (Reunion §4): rings of elephants on a lossless leaf-spine.

use std::fmt::Write;
use std::path::Path;

use spray_core::path::BalancerKind;
use spray_core::rng::{below, stream};
use spray_fabric::{Network, Scheme};

use crate::results::{ConWeaveFigures, ReunionFigures, RunResult, Summary};
use crate::scenario::{Document, Scenario};
use crate::sim::{Simulation, over_cores};
use crate::workload::{Distribution, Flow, Partners, Pattern, Sizes};

/// What is run: how large flows are, at which loads, and with how many seeds, from 1 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rings {
    /// Payload of a flow in bytes; the paper's have 2 GB.
    pub bytes: u64,
    /// Shares of the hosts that send, in percent.
    pub loads: Vec<u64>,
    /// Runs of each.
    pub seeds: u64,
    /// The statistical interval in us; the paper's is 1000.
    pub interval_us: u64,
    /// Connections that a flow is sliced into, which is also the tolerance; 1 = none is.
    pub slices: u64,
    /// Schemes and their flowlet gaps in us.
    pub schemes: Vec<(Scheme, f64)>,
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ring {
    /// When the last flow had completed, in ms.
    pub tail_ms: f64,
    /// Mean completion time of flows, in ms.
    pub mean_ms: f64,
    /// Share of packets that came after later ones, in millionths.
    pub reordered_ppm: f64,
    /// What Reunion did.
    pub reunion: Option<ReunionFigures>,
    /// What ConWeave did.
    pub conweave: Option<ConWeaveFigures>,
}

impl Rings {
    /// Runs everything on `threads` threads; by scheme and load the runs of all seeds. `tell` hears of each.
    ///
    /// # Errors
    /// What the simulator refuses, and flows that do not complete.
    pub fn run(&self, threads: usize, tell: impl Fn(&str) + Sync) -> Result<Vec<Vec<Vec<Ring>>>, String> {
        let (loads, seeds) = (self.loads.len(), self.seeds as usize);
        let one = |job: usize| {
            let (seed, rest) = (job % seeds, job / seeds);
            let (load, (scheme, gap_us)) = (self.loads[rest % loads], self.schemes[rest / loads]);
            let seed = seed as u64 + 1;
            let ring = self.one(scheme, gap_us, load, seed)?;
            tell(&format!("{scheme} gap {gap_us} us, load {load} %, seed {seed}: {ring:?}"));
            Ok::<_, String>(ring)
        };
        let runs = over_cores(self.schemes.len() * loads * seeds, threads, one)?;
        Ok(runs.chunks(loads * seeds).map(|row| row.chunks(seeds).map(<[Ring]>::to_vec).collect()).collect())
    }

    fn one(&self, scheme: Scheme, gap_us: f64, load: u64, seed: u64) -> Result<Ring, String> {
        let mut scenario = self.scenario(scheme, gap_us);
        let pairs = ring(&scenario.network, load, seed);
        scenario.workloads[0].pattern = Pattern::Flows(self.flows(&pairs));
        let run = Simulation::new(&scenario).run(BalancerKind::Ecmp, seed, &[]).map_err(|error| error.to_string())?;
        self.figures(&run).ok_or_else(|| format!("{scheme}, load {load} %, seed {seed}: a flow did not complete"))
    }

    /// A flow is complete when its last slice is.
    fn figures(&self, run: &RunResult) -> Option<Ring> {
        let ends: Vec<f64> = run.flows.iter().map(|flow| flow.fct_us).collect::<Option<_>>()?;
        let ends: Vec<f64> =
            ends.chunks(self.slices as usize).map(|slices| slices.iter().fold(0.0, |a: f64, b| a.max(*b))).collect();
        let reordered: u64 = run.flows.iter().map(|flow| flow.receiver.order.reordered).sum();
        let packets: u64 = run.flows.iter().map(|flow| flow.bytes.div_ceil(PAYLOAD_BYTES)).sum();
        Some(Ring {
            tail_ms: ends.iter().fold(0.0, |a: f64, b| a.max(*b)) / 1e3,
            mean_ms: ends.iter().sum::<f64>() / ends.len() as f64 / 1e3,
            reordered_ppm: reordered as f64 * 1e6 / packets as f64,
            reunion: run.reunion,
            conweave: run.conweave,
        })
    }

    fn flows(&self, pairs: &[(usize, usize)]) -> Vec<Flow> {
        let slice = |(src, dst): &(usize, usize)| {
            (0..self.slices).map(|_| (*src, *dst, self.bytes / self.slices)).collect::<Vec<_>>()
        };
        let slices = pairs.iter().flat_map(slice);
        (0..)
            .zip(slices)
            .map(|(flow, (src, dst, bytes))| Flow { flow, src, dst, bytes, start_ps: 0, ..Flow::default() })
            .collect()
    }

    /// The paper's fabric under a scheme; the workload is another's.
    fn scenario(&self, scheme: Scheme, gap_us: f64) -> Scenario {
        let file = Path::new("tests/scenarios/reunion.toml");
        let text = include_str!("../../../tests/scenarios/reunion.toml");
        let mut document = Document::parse(file, text).expect("part of the program");
        let mut set = |path: &str, value: String| document.assign(path, &value, path).expect("part of the program");
        set("switch.scheme", format!("\"{scheme}\""));
        set("switch.flowlet_gap_us", gap_us.to_string());
        set("switch.reunion.interval_us", self.interval_us.to_string());
        set("switch.reunion.tolerance", self.slices.to_string());
        Scenario::read(&document).expect("part of the program")
    }
}

/// Of `tests/scenarios/reunion.toml`.
const PAYLOAD_BYTES: u64 = 4_096;

/// A ring of so many percent of the hosts, drawn from the seed, whose neighbours are under different leaves: who sends to whom.
fn ring(network: &Network, load: u64, seed: u64) -> Vec<(usize, usize)> {
    let mut rng = stream(seed, RING_STREAM);
    let mut below = |bound: usize| below(bound, &mut rng);
    let mut hosts: Vec<usize> = (0..network.hosts.len()).collect();
    for place in (1..hosts.len()).rev() {
        hosts.swap(place, below(place + 1));
    }
    let count = (hosts.len() * load as usize).div_ceil(100).max(2);
    hosts.truncate(count);
    let collides = |hosts: &[usize], place: usize| {
        network.leaf_of(hosts[place % count]) == network.leaf_of(hosts[(place + 1) % count])
    };
    for _ in 0..ROUNDS {
        let Some(place) = (0..count).find(|place| collides(&hosts, *place)) else { break };
        hosts.swap(place, below(count));
    }
    (0..count).map(|place| (hosts[place], hosts[(place + 1) % count])).collect()
}

const RING_STREAM: u64 = 0x0072_696e_6700;
/// Swaps that are tried at most: some dozens are enough.
const ROUNDS: usize = 100_000;

/// Messages in sizes of a published distribution in the fabric of `rings`, whose schemes, interval and seeds count: each host sends so many to
/// partners under other leaves, one after the other. Not in the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The fabric and its schemes.
    pub rings: Rings,
    /// Where sizes come from.
    pub sizes: Sizes,
    /// Messages of each host.
    pub messages: u32,
}

impl Messages {
    /// Runs every scheme with each seed on `threads` threads: a line of a table for each.
    ///
    /// # Errors
    /// What the simulator refuses, and messages that do not arrive.
    pub fn run(&self, threads: usize) -> Result<String, String> {
        let (schemes, seeds) = (&self.rings.schemes, self.rings.seeds as usize);
        let one = |job: usize| {
            let ((scheme, gap_us), seed) = (schemes[job / seeds], job as u64 % self.rings.seeds + 1);
            let mut scenario = self.rings.scenario(scheme, gap_us);
            let (sizes, messages) = (self.sizes, self.messages);
            let partners = Partners {
                messages,
                sizes: Distribution::published(sizes, MOST_BYTES),
                cross_leaf: true,
                start_ps: 0,
                until_ps: None,
            };
            scenario.workloads[0].pattern = Pattern::PartnerAfterPartner(partners);
            scenario.time_limit_ps = Some(LIMIT_PS);
            let run =
                Simulation::new(&scenario).run(BalancerKind::Ecmp, seed, &[]).map_err(|error| error.to_string())?;
            let summary = run.summary();
            let moved = run.reunion.map_or(0, |figures| figures.rerouted);
            summary.is_complete().then_some((summary, moved)).ok_or(format!("{scheme}, seed {seed}: a message is lost"))
        };
        let runs = over_cores(schemes.len() * seeds, threads, one)?;
        let mut text = format!("| {} | p99 | mean | runtime | out of order | rerouted |\n", self.sizes.name());
        text += "|---|--:|--:|--:|--:|--:|\n";
        for ((scheme, _), runs) in schemes.iter().zip(runs.chunks(seeds)) {
            let mean = |of: &dyn Fn(&(Summary, u64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            let _ = writeln!(
                text,
                "| `{scheme}` | {:.0} | {:.0} | {:.0} | {:.3} % | {:.0} |",
                mean(&|(run, _)| run.flows.fct_p99_us.unwrap_or(f64::NAN)),
                mean(&|(run, _)| run.flows.fct_mean_us.unwrap_or(f64::NAN)),
                mean(&|(run, _)| run.flows.makespan_us.unwrap_or(f64::NAN)),
                mean(&|(run, _)| run.flows.reordered_percent),
                mean(&|(_, moved)| *moved as f64),
            );
        }
        Ok(text)
    }
}

/// Several times what any run takes.
const LIMIT_PS: u64 = 2_000_000_000_000;

/// The largest message: with fewer than a hundred of each host larger ones would decide alone.
const MOST_BYTES: u64 = 32 << 20;

/// The comparison as a section of the document. Of the schemes, each Reunion has its base right before it.
#[must_use]
pub fn markdown(rings: &Rings, rows: &[Vec<Vec<Ring>>]) -> String {
    let mut text = String::from("| switches |");
    for load in &rings.loads {
        let _ = write!(text, " {load} % |");
    }
    text += " out of order | rerouted |\n|---|";
    rings.loads.iter().for_each(|_| text += "--:|");
    text += "--:|--:|\n";
    for ((scheme, _), row) in rings.schemes.iter().zip(rows) {
        let _ = write!(text, "| {scheme} |");
        for runs in row {
            let _ = write!(text, " {:.0} |", mean(runs, |ring| ring.tail_ms));
        }
        let all = row.concat();
        let moved = |ring: &Ring| ring.reunion.map_or(0.0, |figures| figures.rerouted as f64);
        let moved = if scheme.reunion_base().is_some() { format!("{:.0}", mean(&all, moved)) } else { String::new() };
        let _ = writeln!(text, " {:.0} ppm | {moved} |", mean(&all, |ring| ring.reordered_ppm));
    }
    text
}

fn mean(runs: &[Ring], of: impl Fn(&Ring) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_fabric::LeafSpine;
    use std::collections::HashSet;

    #[test]
    fn a_ring_crosses_leaves_and_visits_each_host_once() {
        let network = LeafSpine::uniform([8, 8, 8], 100_000_000_000, 1).network();
        for (load, seed) in [(10, 1), (40, 2), (75, 3), (90, 4), (100, 5)] {
            let pairs = ring(&network, load, seed);
            assert_eq!(pairs.len(), (64 * load as usize).div_ceil(100));
            assert!(pairs.iter().all(|(src, dst)| network.leaf_of(*src) != network.leaf_of(*dst)));
            let sources: HashSet<_> = pairs.iter().map(|(src, _)| src).collect();
            let targets: HashSet<_> = pairs.iter().map(|(_, dst)| dst).collect();
            assert_eq!((sources.len(), sources), (pairs.len(), targets));
            assert!(pairs.windows(2).all(|pair| pair[0].1 == pair[1].0), "one ring");
        }
    }
}
