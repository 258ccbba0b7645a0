//! A search for scenarios in which a balancer is behind others: draws random ones, runs them in the simulator, and makes the worst
//! as small as they can be.
//!
//! `cargo xtask search` does this for `reps-plus`. What it found stands in `tests/worst`, and a test runs it.

use std::path::Path;

use spray_core::path::BalancerKind;
use spray_core::rng::{Rng, below};

use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores};

/// The balancers that another is held against.
const OTHERS: [BalancerKind; 3] = [BalancerKind::Ops, BalancerKind::Reps, BalancerKind::HostDr];
/// Runs of each balancer, of whose figures the mean counts, where a case is drawn.
const FEW_SEEDS: u64 = 3;
/// Runs of each balancer where a case must hold: what three runs show may be luck.
const SEEDS: u64 = 10;
/// A case that is made smaller keeps this share of what it showed.
const KEPT: f64 = 0.7;
/// KiB of a flow, at least.
const LEAST_KIB: u32 = 256;

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    fabric: Fabric,
    pattern: &'static str,
    kib: u32,
    /// Lines of TOML that can be left out.
    settings: Vec<String>,
    /// Inline tables of link events.
    events: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fabric {
    LeafSpine {
        leaves: u32,
        spines: u32,
        hosts_per_leaf: u32,
        gbps: u32,
    },
    /// Four pods of two edge and two aggregation switches, four cores, two hosts at an edge switch.
    FatTree,
}

/// Completion times as ratios to those of the best balancer: 1 is the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// Of their mean.
    pub mean: f64,
    /// Of the largest.
    pub largest: f64,
}

impl Lag {
    /// By how much it is worse than 1 % behind in the mean or 3 % in the largest; not positive where it is not.
    pub fn excess(self) -> f64 {
        (self.mean - 1.01).max(self.largest - 1.03)
    }
}

fn one<T: Copy>(of: &[T], rng: &mut Rng) -> T {
    of[below(of.len(), rng)]
}

fn percent(share: usize, rng: &mut Rng) -> bool {
    below(100, rng) < share
}

impl Fabric {
    fn draw(rng: &mut Rng) -> Self {
        if percent(15, rng) {
            return Self::FatTree;
        }
        Self::LeafSpine {
            leaves: one(&[2, 4, 8], rng),
            spines: one(&[2, 4, 8], rng),
            hosts_per_leaf: one(&[4, 8], rng),
            gbps: one(&[100, 400], rng),
        }
    }

    fn hosts(self) -> u32 {
        match self {
            Self::LeafSpine { leaves, hosts_per_leaf, .. } => leaves * hosts_per_leaf,
            Self::FatTree => 16,
        }
    }

    fn toml(self) -> String {
        match self {
            Self::LeafSpine { leaves, spines, hosts_per_leaf, gbps } => format!(
                "kind = 'leaf-spine', leaves = {leaves}, spines = {spines}, hosts_per_leaf = {hosts_per_leaf}, \
                 host_gbps = {gbps}"
            ),
            Self::FatTree => {
                "kind = 'fat-tree', pods = 4, tors_per_pod = 2, aggs_per_pod = 2, cores = 4, hosts_per_tor = 2".into()
            }
        }
    }

    /// An uplink of an edge switch, one direction of it or both.
    fn uplink(self, rng: &mut Rng) -> String {
        let direction = one(&["->", "-"], rng);
        match self {
            Self::LeafSpine { leaves, spines, .. } => {
                format!("leaf{}{direction}spine{}", below(leaves as usize, rng), below(spines as usize, rng))
            }
            Self::FatTree => {
                let pod = below(4, rng);
                format!("tor{}{direction}agg{}", 2 * pod + below(2, rng), 2 * pod + below(2, rng))
            }
        }
    }

    /// An uplink fails, for good or for a while, or slows down, or every link loses frames.
    fn event(self, rng: &mut Rng) -> String {
        let (link, at_us) = (self.uplink(rng), one(&[0, 20, 40, 80], rng));
        match below(5, rng) {
            0 => format!("link = '{link}', at_us = {at_us}, action = 'rate', factor = {}", one(&[0.1, 0.25, 0.5], rng)),
            1 => format!("link = '*->*', action = 'loss', probability = {}", one(&[0.001, 0.01, 0.03], rng)),
            2 => {
                let until_us = at_us + one(&[10, 40, 100], rng);
                format!("link = '{link}', at_us = {at_us}, until_us = {until_us}, action = 'silent-drop'")
            }
            _ => format!("link = '{link}', at_us = {at_us}, action = 'silent-drop'"),
        }
    }

    fn fewer_hosts(self) -> Option<Self> {
        match self {
            Self::LeafSpine { leaves, spines, hosts_per_leaf, gbps } if hosts_per_leaf > 2 => {
                Some(Self::LeafSpine { leaves, spines, hosts_per_leaf: hosts_per_leaf / 2, gbps })
            }
            Self::LeafSpine { .. } | Self::FatTree => None,
        }
    }
}

impl Case {
    /// Draws one.
    pub fn draw(rng: &mut Rng) -> Self {
        let fabric = Fabric::draw(rng);
        let pattern = one(&["permutation", "cross-leaf-permutation", "tornado", "incast", "all-to-all"], rng);
        let kib = if pattern == "all-to-all" { LEAST_KIB } else { one(&[256, 1024, 2048, 4096, 8192], rng) };
        let settings = [
            (40, format!("transport.ack_every = {}", one(&[2, 4, 8, 16], rng))),
            (30, format!("transport.evs = {}", one(&[32, 256], rng))),
            (20, format!("transport.cc = '{}'", one(&["nscc", "eqds", "mswift"], rng))),
            (20, "transport.payload_bytes = 4086".into()),
            (20, "transport.ack_marked = true".into()),
            (20, "transport.sack_gap_packets = 0".into()),
            (40, "queue.trimming = false".into()),
            (20, "routing.convergence_us = 'never'".into()),
            (50, "transport.reps-plus.known_paths = false".into()),
        ];
        let settings = settings.into_iter().filter(|(share, _)| percent(*share, rng)).map(|(_, line)| line).collect();
        let events = (0..below(3, rng)).map(|_| fabric.event(rng)).collect();
        Self { fabric, pattern, kib, settings, events }
    }

    /// The scenario as TOML.
    pub fn toml(&self) -> String {
        let mut workload = format!("kind = '{}', bytes = '{} KiB'", self.pattern, self.kib);
        if self.pattern == "incast" {
            workload += &format!(", senders = {}", (self.fabric.hosts() - 1).min(8));
        }
        let mut text = format!("name = 'case'\ntopology = {{ {} }}\nworkload = {{ {workload} }}\n", self.fabric.toml());
        self.settings.iter().for_each(|line| text += &format!("{line}\n"));
        let events: String = self.events.iter().map(|event| format!("    {{ {event} }},\n")).collect();
        if !events.is_empty() {
            text += &format!("link_event = [\n{events}]\n");
        }
        text
    }

    /// Cases with one thing less, or half as much of one.
    fn smaller(&self) -> impl Iterator<Item = Self> {
        let without = |list: &[String], index: usize| {
            let mut list = list.to_vec();
            list.remove(index);
            list
        };
        let events = (0..self.events.len()).map(move |at| Self { events: without(&self.events, at), ..self.clone() });
        let settings =
            (0..self.settings.len()).map(move |at| Self { settings: without(&self.settings, at), ..self.clone() });
        let hosts = self.fabric.fewer_hosts().map(|fabric| Self { fabric, ..self.clone() });
        let bytes = (self.kib > LEAST_KIB).then(|| Self { kib: self.kib / 2, ..self.clone() });
        events.chain(settings).chain(hosts).chain(bytes)
    }

    /// How far `balancer` is behind in a few runs; see [`behind`].
    ///
    /// # Errors
    /// What the simulator refuses.
    pub fn glance(&self, balancer: BalancerKind, threads: usize) -> Result<Option<Lag>, String> {
        lag(&self.toml(), balancer, FEW_SEEDS, threads)
    }

    /// The smallest case that still shows most of what this one does, and what it shows; nothing where the balancer is not behind. Runs
    /// on `threads` threads.
    ///
    /// # Errors
    /// What the simulator refuses.
    pub fn shrink(self, balancer: BalancerKind, threads: usize) -> Result<Option<(Self, Lag)>, String> {
        let Some(lag) = behind(&self.toml(), balancer, threads)?.filter(|lag| lag.excess() > 0.0) else {
            return Ok(None);
        };
        let (mut best, least) = ((self, lag), lag.excess() * KEPT);
        loop {
            let mut found = None;
            for case in best.0.smaller() {
                if let Some(lag) = behind(&case.toml(), balancer, threads)?.filter(|lag| lag.excess() >= least) {
                    found = Some((case, lag));
                    break;
                }
            }
            match found {
                Some(smaller) => best = smaller,
                None => return Ok(Some(best)),
            }
        }
    }
}

/// How far `balancer` is behind the best of those that complete all flows of the scenario `toml`, itself among them: without limit where
/// only others do, nothing where none does. Runs on `threads` threads.
///
/// # Errors
/// Mistakes in the scenario, and what the simulator refuses.
pub fn behind(toml: &str, balancer: BalancerKind, threads: usize) -> Result<Option<Lag>, String> {
    lag(toml, balancer, SEEDS, threads)
}

/// Sums of the completion times' mean and of the largest, in us.
type Sums = (f64, f64);

fn lag(toml: &str, balancer: BalancerKind, seeds: u64, threads: usize) -> Result<Option<Lag>, String> {
    let scenario = Scenario::parse(Path::new("case.toml"), toml).map_err(|mistake| mistake.to_string())?;
    let simulation = Simulation::new(&scenario);
    let all: Vec<BalancerKind> = [balancer].into_iter().chain(OTHERS).collect();
    let run = |job: usize| {
        let (balancer, seed) = (all[job / seeds as usize], job as u64 % seeds + 1);
        let summary = simulation.run(balancer, seed, &[]).map_err(|error| format!("{balancer}: {error}"))?.summary();
        let times = summary.flows.fct_mean_us.zip(summary.flows.fct_max_us);
        Ok::<_, String>(times.filter(|_| summary.is_complete()))
    };
    let runs = over_cores(all.len() * seeds as usize, threads, run)?;
    let sum = |runs: &[Option<Sums>]| {
        runs.iter().try_fold((0.0, 0.0), |sum, run| run.map(|run| (sum.0 + run.0, sum.1 + run.1)))
    };
    let sums: Vec<Option<Sums>> = runs.chunks(seeds as usize).map(sum).collect();
    let least = |figure: fn(&Sums) -> f64| sums.iter().flatten().map(figure).fold(f64::INFINITY, f64::min);
    let own = match (sums[0], sums.iter().any(Option::is_some)) {
        (None, false) => return Ok(None),
        (own, _) => own.unwrap_or((f64::INFINITY, f64::INFINITY)),
    };
    Ok(Some(Lag { mean: own.0 / least(|sum| sum.0), largest: own.1 / least(|sum| sum.1) }))
}
