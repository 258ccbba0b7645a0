//! All balancers under the conditions that their papers evaluate, on the reference fabric.
//!
//! `cargo xtask results` writes the outcome to `docs/results/host-schemes.md`.

mod report;

use spray_core::path::BalancerKind;

pub use report::{Costs, markdown};

use crate::results::measures::named;
use crate::results::{Spread, Summary};
use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores, published};
use spray_fabric::{LinkAction, LinkEvent};

const TOPOLOGY: &str = include_str!("../../../../tests/reference/leafspine_128_400g.topo");
const PERMUTATION: &str = include_str!("../../../../tests/reference/perm_n128_s8388608.cm");
const TORNADO: &str = include_str!("../../../../tests/reference/tornado_n128_s8388608.cm");
const INCAST: &str = include_str!("../../../../tests/reference/incast_n128_d16_s4194304.cm");
/// The uplink that is slow or dead.
const UPLINK: &str = "leaf0->spine0";

/// A workload, and what is wrong with the fabric.
#[derive(Debug, PartialEq)]
pub struct Condition {
    /// Its name in tables.
    pub name: &'static str,
    /// Its description, a sentence.
    pub about: &'static str,
    matrix: &'static str,
    fault: Fault,
    trimming: bool,
    evs: u32,
    ack_every: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The uplink has half of its rate.
    Slow,
    /// The uplink drops every frame from the start, and routing does not learn of it.
    Dead,
    /// Every cable between switches loses one frame in a hundred.
    Lossy,
}

const fn condition(name: &'static str, matrix: &'static str, fault: Fault, about: &'static str) -> Condition {
    Condition { name, about, matrix, fault, trimming: true, evs: 65_535, ack_every: 1 }
}

/// The conditions, in the order of the tables.
pub static CONDITIONS: [Condition; 10] = [
    condition("permutation", PERMUTATION, Fault::None, "Every host sends 8 MiB to one other."),
    condition("incast", INCAST, Fault::None, "16 hosts send 4 MiB each to one."),
    condition("tornado", TORNADO, Fault::None, "Every host sends 8 MiB to the one half of the hosts further on."),
    condition("slow uplink", PERMUTATION, Fault::Slow, "Permutation; leaf 0's uplink to spine 0 has half of its rate."),
    condition(
        "dead cable",
        PERMUTATION,
        Fault::Dead,
        "Permutation; leaf 0's uplink to spine 0 silently drops everything, from the start.",
    ),
    Condition {
        trimming: false,
        ..condition(
            "dead cable, no trimming",
            PERMUTATION,
            Fault::Dead,
            "The same; full queues drop, as in the published comparison.",
        )
    },
    condition(
        "1 % loss",
        PERMUTATION,
        Fault::Lossy,
        "Permutation; every cable between switches loses 1 % of its frames.",
    ),
    Condition {
        trimming: false,
        ..condition(
            "1 % loss, no trimming",
            PERMUTATION,
            Fault::Lossy,
            "The same; full queues drop, as in the published comparison.",
        )
    },
    Condition {
        ack_every: 8,
        ..condition("8:1 ACKs", PERMUTATION, Fault::None, "Permutation; an ACK per eight packets.")
    },
    Condition { evs: 32, ..condition("32 EVs", PERMUTATION, Fault::None, "Permutation; 32 entropy values.") },
];

/// The runs of one balancer under one condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its runs, by seed.
    pub runs: Vec<Summary>,
}

impl Cell {
    /// Mean and spread over the seeds of the measure with this key.
    pub fn spread(&self, key: &'static str) -> Spread {
        let [measure] = named([key]);
        Spread::of(&self.runs.iter().filter_map(|run| measure.of(run)).collect::<Vec<_>>())
    }

    /// Whether every flow of every run completed.
    pub fn is_complete(&self) -> bool {
        self.runs.iter().all(Summary::is_complete)
    }
}

impl Condition {
    /// The scenario of this condition, for any balancer.
    ///
    /// # Panics
    /// When the built-in files do not fit together, which a test rules out.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = published(self.name, TOPOLOGY, self.matrix);
        (scenario.transport.evs, scenario.transport.ack_every) = (self.evs, self.ack_every);
        scenario.queue.trimming = self.trimming;
        let (name, links, action) = match self.fault {
            Fault::None => return scenario,
            Fault::Slow => (UPLINK, uplink(&scenario), LinkAction::Rate { ppm: 500_000 }),
            Fault::Dead => (UPLINK, uplink(&scenario), LinkAction::SilentDrop),
            Fault::Lossy => ("all cables", between_switches(&scenario), LinkAction::Loss { ppm: 10_000 }),
        };
        scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
        scenario
    }

    /// Runs the condition under each of `balancers` with seeds 1 to `seeds`, on `threads` threads. Returns a cell for each
    /// balancer.
    ///
    /// # Errors
    /// What the simulator refuses.
    pub fn run(&self, balancers: &[BalancerKind], seeds: u64, threads: usize) -> Result<Vec<Cell>, String> {
        let scenario = self.scenario();
        let simulation = Simulation::new(&scenario);
        let jobs: Vec<(BalancerKind, u64)> =
            balancers.iter().flat_map(|balancer| (1..=seeds).map(|seed| (*balancer, seed))).collect();
        let one = |job: usize| {
            let (balancer, seed) = jobs[job];
            let run =
                simulation.run(balancer, seed, &[]).map_err(|error| format!("{}, {balancer}: {error}", self.name))?;
            Ok::<_, String>(run.summary())
        };
        let runs = over_cores(jobs.len(), threads, one)?;
        Ok(runs.chunks(seeds as usize).map(|runs| Cell { runs: runs.to_vec() }).collect())
    }
}

fn uplink(scenario: &Scenario) -> Vec<usize> {
    scenario.network.links_named(UPLINK).expect("an uplink of the reference topology")
}

fn between_switches(scenario: &Scenario) -> Vec<usize> {
    let links = scenario.network.links.iter().enumerate();
    links.filter(|(_, link)| link.is_uplink()).map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_what_they_say() {
        for condition in &CONDITIONS {
            let scenario = condition.scenario();
            assert!(spray_fabric::preload(&scenario.network, &scenario.link_events).is_ok(), "{}", condition.name);
            assert_eq!(scenario.queue.trimming, !condition.name.contains("no trimming"));
            assert_eq!(scenario.network.hosts.len(), 128);
        }
        let lossy = &CONDITIONS[6].scenario().link_events[0];
        assert_eq!((lossy.links.len(), lossy.action), (2 * 16 * 8, LinkAction::Loss { ppm: 10_000 }));
    }

    #[test]
    fn a_condition_runs_and_counts() {
        let cells = CONDITIONS[1].run(&[BalancerKind::Ops, BalancerKind::Reps], 2, 2).unwrap();
        assert_eq!(cells.iter().map(|cell| cell.runs.len()).collect::<Vec<_>>(), [2, 2]);
        assert!(cells.iter().all(|cell| cell.is_complete() && cell.spread("fct_mean_us").mean > 1000.0));
        let names = ["ops", "reps"];
        assert!(cells.iter().zip(names).all(|(cell, name)| cell.runs.iter().all(|run| run.balancer == name)));
    }
}
