//! Freezing without trimming, where losses are detected before their timeouts (REPS-27, RPP-10 to
//! 12): after each failure, and in no other case.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use spray_core::path::BalancerKind::{self, Reps, RepsNoFreezing, RepsPlus};
use spray_experiments::results::EventKind::FreezeEntered;
use spray_experiments::results::{EventRow, Summary};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;

/// The number of runs in a mean. Single runs of an incast vary by 2 %, means of 16 by less than 1
/// %.
const SEEDS: u64 = 16;
/// Time of a failure.
const FAILS_AT_US: f64 = 300.0;
/// The retransmission timeout of these connections.
const TIMEOUT_US: f64 = 143.0;
const FABRIC: &str = "kind = 'leaf-spine', leaves = 2, spines = 4, hosts_per_leaf = 4, host_gbps = 100";
const PERMUTATION: &str = "kind = 'cross-leaf-permutation', bytes = '16 MiB'";

fn scenario(fabric: &str, workload: &str, events: &str) -> Scenario {
    let text = format!(
        "name = 'untrimmed'\ntopology = {{ {fabric} }}\nworkload = {{ {workload} }}\nqueue.trimming = false\nlink_event = [{events}]\n"
    );
    Scenario::parse(Path::new("untrimmed.toml"), &text).unwrap()
}

fn run(scenario: &Scenario, balancer: BalancerKind, seed: u64) -> Summary {
    let summary = Simulation::new(scenario).run(balancer, seed, &[]).unwrap().summary();
    assert!(summary.is_complete(), "{balancer}, seed {seed}");
    summary
}

/// Four connections use each link of leaf 0, all eight each spine.
//= docs/specs/reps.md#REPS-27 evidence by EV
//= docs/specs/reps-plus.md#RPP-12 freezing
#[test]
fn every_connection_that_loses_packets_on_a_failed_link_freezes() {
    let table = [
        ("link = 'leaf0->spine1', action = 'silent-drop'", 4),
        ("node = 'spine1', action = 'silent-drop'", 8),
        ("link = 'leaf0->spine1', action = 'loss', probability = 0.5", 4),
    ];
    for (event, connections) in table {
        let scenario = scenario(FABRIC, PERMUTATION, &format!("{{ {event}, at_us = {FAILS_AT_US} }}"));
        let half_lost = event.contains("loss");
        for (balancer, seed) in
            [Reps, RepsPlus].into_iter().flat_map(|balancer| (1..=8).map(move |seed| (balancer, seed)))
        {
            let result = Simulation::new(&scenario).run(balancer, seed, &[]).unwrap();
            let within = |row: &&EventRow| row.kind == FreezeEntered && row.time_us < FAILS_AT_US + 2.0 * TIMEOUT_US;
            let froze: HashSet<_> = result.events.iter().filter(within).map(|row| &row.subject).collect();
            let summary = result.summary();
            let freezing = &summary.engine_figures;
            let place = format!("{balancer}, {event}, seed {seed}: {freezing:?}");
            assert!(summary.is_complete() && froze.len() == connections, "{place}: {froze:?}");
            // Relative to the duration of the failure, four fifths of the run.
            assert!(summary.flows.resent_percent / 0.8 < 1.0, "{place}: {} %", summary.flows.resent_percent);
            if !half_lost {
                assert_eq!((freezing.freeze_precision, freezing.freeze_recall), (Some(1.0), Some(1.0)), "{place}");
                let lost_us = summary.fabric.loss_duration_us.unwrap();
                assert!(lost_us < 2.0 * TIMEOUT_US, "{place}: {lost_us} us");
            }
        }
    }
}

/// Congestion, random losses and bursts of losses: no connection freezes, and completion times
/// equal those without freezing.
//= docs/specs/reps.md#REPS-27 evidence by EV
#[test]
fn nothing_else_freezes_a_connection() {
    const WIDE: &str = "kind = 'leaf-spine', leaves = 8, spines = 8, hosts_per_leaf = 8, host_gbps = 100";
    const NARROW: &str = "kind = 'leaf-spine', leaves = 4, spines = 2, hosts_per_leaf = 8, host_gbps = 100";
    let table = [
        ("incast", WIDE, "kind = 'incast', senders = 32, bytes = '256 KiB'", ""),
        ("full queues", NARROW, "kind = 'permutation', bytes = '1 MiB'", ""),
        (
            "bursts",
            FABRIC,
            PERMUTATION,
            "{ link = 'leaf0->spine1', action = 'silent-drop', at_us = 300, until_us = 320 }",
        ),
        (
            "1 % loss",
            FABRIC,
            PERMUTATION,
            "{ link = 'leaf*->spine*', action = 'loss', probability = 0.01 }, { link = 'spine*->leaf*', action = 'loss', probability = 0.01 }",
        ),
        ("slow paths", FABRIC, PERMUTATION, "{ link = 'leaf0->spine1', action = 'rate', factor = 0.25 }"),
    ];
    let mut found = String::new();
    for (name, fabric, workload, events) in table {
        let scenario = scenario(fabric, workload, events);
        let mean = |balancer| {
            let runs = (1..=SEEDS).map(|seed| run(&scenario, balancer, seed)).collect::<Vec<_>>();
            let freezes: u64 = runs.iter().map(|summary| summary.engine_figures.freeze_entries).sum();
            (freezes, runs.iter().map(|summary| summary.flows.fct_mean_us.unwrap()).sum::<f64>() / SEEDS as f64)
        };
        let ((_, without_us), (freezes, with_us), (of_plus, _)) = (mean(RepsNoFreezing), mean(Reps), mean(RepsPlus));
        writeln!(found, "{name}: {freezes} and {of_plus} freezes, {with_us:.0} us, {without_us:.0} without").unwrap();
        assert!(freezes == 0 && of_plus == 0 && (with_us / without_us - 1.0) * 100.0 <= 1.0, "{found}");
    }
    println!("{found}");
}
