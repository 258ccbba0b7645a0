//! Switches that choose, alone and under hosts that choose too: in OFAN's setting, against the bound, and in the published
//! simulations of REPS.
//!
//! `cargo xtask results` writes the outcome to `docs/results/switch-schemes.md`.

pub mod adaptive_roce;
pub mod dragonfly;
pub mod flowcut;
mod report;
pub mod reunion;

use std::path::Path;

use spray_core::path::BalancerKind::{self, Ecmp, Flowcut, HostDr, Ops, Plb, Reps, RepsPlus, Subflow};
use spray_core::units::Gbps;
use spray_fabric::{Scheme, Switching};

pub use dragonfly::dragonfly;
pub use report::markdown;

use crate::comparison::CONDITIONS;
use crate::results::Summary;
use crate::scenario::{Document, Scenario};
use crate::sim::{Simulation, over_cores};

/// A balancer at the hosts over a scheme in the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// What OFAN calls it.
    pub paper: &'static str,
    /// At the hosts.
    pub balancer: BalancerKind,
    /// In the switches that have hosts.
    pub edge: Scheme,
    /// In the switches above.
    pub scheme: Scheme,
}

impl Pairing {
    /// What switches run, in words.
    pub fn switches(&self) -> String {
        if self.edge == self.scheme {
            self.scheme.to_string()
        } else {
            format!("{} below, {} above", self.edge, self.scheme)
        }
    }
}

const fn host(paper: &'static str, balancer: BalancerKind) -> Pairing {
    Pairing { paper, balancer, edge: Scheme::Ecmp, scheme: Scheme::Ecmp }
}

const fn switch(paper: &'static str, scheme: Scheme) -> Pairing {
    Pairing { paper, balancer: Ecmp, edge: scheme, scheme }
}

/// All of OFAN's, this project's own, and both together.
pub const PAIRINGS: [Pairing; 18] = [
    host("Flow", Ecmp),
    host("Subflow", Subflow),
    host("Host Flowlet AR", Plb),
    host("Host Pkt", Ops),
    host("Host Pkt AR", Reps),
    host("Host DR", HostDr),
    host("", RepsPlus),
    switch("RSQ", Scheme::Random),
    switch("Simple RR", Scheme::Rr),
    switch("Switch Pkt", Scheme::RrPermuted),
    switch("JSQ", Scheme::Jsq),
    switch("Switch Pkt AR", Scheme::Adaptive),
    switch("OFAN", Scheme::Ofan),
    switch("OFAN, FIB only", Scheme::OfanFib),
    switch("OFAN, shortest queue", Scheme::OfanShortest),
    hybrid(Reps, Scheme::Ofan),
    hybrid(RepsPlus, Scheme::Ofan),
    hybrid(RepsPlus, Scheme::Ecmp),
];

/// A balancer over OFAN, where entropy values choose nothing, or only what the first switch does.
const fn hybrid(balancer: BalancerKind, edge: Scheme) -> Pairing {
    Pairing { paper: "", balancer, edge, scheme: Scheme::Ofan }
}

/// Those that are compared while links fail.
pub const UNDER_FAILURES: [Pairing; 9] = [
    PAIRINGS[3],
    PAIRINGS[4],
    PAIRINGS[6],
    PAIRINGS[9],
    PAIRINGS[11],
    PAIRINGS[12],
    PAIRINGS[13],
    PAIRINGS[16],
    PAIRINGS[17],
];

/// A workload in OFAN's setting, and when routing learns of failed cables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Its name in tables.
    pub name: &'static str,
    kind: &'static str,
    packets: u64,
    /// Seeds that it is run with, from 1 on.
    seeds: u64,
    /// Every cable between switches may fail; when routing learns of it, as a scenario says it.
    convergence_us: Option<&'static str>,
}

/// Runs with many short flows take long and differ little.
const fn seeds(packets: u64) -> u64 {
    if packets < 100 { 3 } else { 10 }
}

const fn healthy(name: &'static str, kind: &'static str, packets: u64) -> Condition {
    Condition { name, kind, packets, seeds: seeds(packets), convergence_us: None }
}

const fn failing(name: &'static str, kind: &'static str, packets: u64, convergence_us: &'static str) -> Condition {
    Condition { name, kind, packets, seeds: seeds(packets), convergence_us: Some(convergence_us) }
}

/// Without failures.
pub const HEALTHY: [Condition; 3] = [
    healthy("permutation, 1 MiB", "permutation", 256),
    healthy("inter-pod permutation, 1 MiB", "cross-pod-permutation", 256),
    healthy("all to all, 64 KiB", "all-to-all", 16),
];

/// Each cable between switches fails with a probability of 1 %. A round trip takes 6.25 us here.
pub const FAILING: [Condition; 8] = [
    failing("permutation, G = 0", "permutation", 256, "0"),
    failing("G = 1 RTT", "permutation", 256, "6.25"),
    failing("G = 3 RTT", "permutation", 256, "18.75"),
    failing("G = ∞", "permutation", 256, NEVER),
    failing("all to all, G = 0", "all-to-all", 16, "0"),
    failing("G = 3 RTT", "all-to-all", 16, "18.75"),
    failing("G = 10 RTT", "all-to-all", 16, "62.5"),
    failing("G = ∞", "all-to-all", 16, NEVER),
];

const NEVER: &str = "\"never\"";

/// What one run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Completion time of the whole above the bound of the same seed, in percent.
    pub above_percent: f64,
    /// Its other figures.
    pub summary: Summary,
}

impl Condition {
    /// Runs every pairing with each seed, on `threads` threads; the runs of each.
    ///
    /// # Errors
    /// What the simulator refuses.
    ///
    /// # Panics
    /// When the built-in scenario is wrong, which a test rules out.
    pub fn run(&self, pairings: &[Pairing], threads: usize) -> Result<Vec<Vec<Run>>, String> {
        let seeds = self.seeds;
        let one = |job: usize| {
            let (pairing, seed) = (pairings[job / seeds as usize], job as u64 % seeds + 1);
            self.one(pairing, seed).map_err(|error| format!("{}, {pairing:?}: {error}", self.name))
        };
        let runs = over_cores(pairings.len() * seeds as usize, threads, one)?;
        Ok(runs.chunks(seeds as usize).map(<[Run]>::to_vec).collect())
    }

    /// At the rate that all flows can have at once: OFAN's ideal congestion control.
    fn one(&self, pairing: Pairing, seed: u64) -> Result<Run, String> {
        let mut scenario = self.scenario();
        scenario.network.switching.schemes = vec![pairing.edge, pairing.scheme];
        let failed = scenario.drawn_failures(seed, u64::MAX).map_err(|error| error.to_string())?;
        let bound = scenario.bound(seed, &failed);
        scenario.transport.cc_schemes.fixed_rate.rate_gbps = Some(Gbps::from_bps(bound.rate_bps as u64));
        let run = Simulation::new(&scenario).run(pairing.balancer, seed, &[]).map_err(|error| error.to_string())?;
        let summary = run.summary();
        let above_percent = 100.0 * (summary.makespan_us * 1e6 / bound.completion_ps as f64 - 1.0);
        Ok(Run { above_percent, summary })
    }

    fn scenario(&self) -> Scenario {
        let file = Path::new("tests/scenarios/ofan.toml");
        let mut document =
            Document::parse(file, include_str!("../../../../tests/scenarios/ofan.toml")).expect("part of the program");
        let mut set = |path: &str, value: String| document.assign(path, &value, path).expect("part of the program");
        set("workload.kind", format!("\"{}\"", self.kind));
        set("workload.bytes", (self.packets * 4_096).to_string());
        // A connection that hears nothing for this long is given up.
        set("transport.give_up_us", "1000000".into());
        if let Some(convergence) = self.convergence_us {
            set("routing.convergence_us", convergence.into());
            set("failure.+", "{what = \"links\", probability = 0.01, action = \"down\"}".into());
        }
        Scenario::read(&document).expect("part of the program")
    }
}

/// Balancers at the hosts that are run over every scheme in the switches.
pub const AT_HOSTS: [BalancerKind; 5] = [Ecmp, Ops, Reps, RepsPlus, Flowcut];

/// The permutation of the published simulations, with their congestion control and queues, healthy and with the slow uplink: every
/// balancer of [`AT_HOSTS`] over every scheme. Returns, for each scheme and each balancer, the runs of both.
///
/// # Errors
/// What the simulator refuses.
pub fn over_every_scheme(seeds: u64, threads: usize) -> Result<Vec<Vec<[Vec<Summary>; 2]>>, String> {
    let conditions = ["permutation", "slow uplink"];
    let of =
        |name: &str| CONDITIONS.iter().find(|condition| condition.name == name).expect("one of the list").scenario();
    let scenarios = conditions.map(of);
    let (schemes, hosts) = (Scheme::anywhere().collect::<Vec<_>>(), AT_HOSTS.len());
    let one = |job: usize| {
        let (seed, rest) = (job as u64 % seeds + 1, job / seeds as usize);
        let (condition, rest) = (rest % 2, rest / 2);
        let mut scenario = scenarios[condition].clone();
        let paths = scenario.paths();
        let (gap_ps, longest_ps) = (scenario.base_rtt_ps(&paths) / 2, scenario.longest_ps(&paths));
        let scheme = Switching::all(schemes[rest / hosts]);
        scenario.network.switching = Switching { flowlet_gap_ps: gap_ps, longest_ps, ..scheme };
        let run = Simulation::new(&scenario).run(AT_HOSTS[rest % hosts], seed, &[]);
        Ok::<_, String>(run.map_err(|error| error.to_string())?.summary())
    };
    let runs = over_cores(schemes.len() * hosts * 2 * seeds as usize, threads, one)?;
    let cell = |runs: &[Summary]| [runs[..seeds as usize].to_vec(), runs[seeds as usize..].to_vec()];
    let row = |runs: &[Summary]| runs.chunks(2 * seeds as usize).map(cell).collect();
    Ok(runs.chunks(hosts * 2 * seeds as usize).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_a_scenario_with_its_failures() {
        for condition in HEALTHY.iter().chain(&FAILING) {
            let scenario = condition.scenario();
            let failed =
                |seed| scenario.drawn_failures(seed, u64::MAX).unwrap().iter().any(|event| !event.links.is_empty());
            assert_eq!((1..20).any(failed), condition.convergence_us.is_some(), "{}", condition.name);
        }
    }
}
