//! Somebody at the controls of a simulation does what a scenario does by itself.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;
use spray_experiments::engine::{Engine, Observers};
use spray_experiments::live::{Live, NewFlows};
use spray_experiments::results::{EngineFigures, EventKind, RunResult};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Sim;
use spray_fabric::LinkAction;
use spray_fabric::live::{Answer, Operator, Order, Snapshot};

const SCENARIO: &str = r#"
name = "live"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_gbps = 100
latency_us = 1
[workload]
kind = "cross-leaf-permutation"
bytes = "2 MiB"
[transport]
balancer = "reps"
"#;

const FAILURE: &str = r#"
[[link_event]]
link = "leaf0-spine0"
at_us = 50
until_us = 120
action = "silent-drop"
"#;

/// Gives orders at times of scenario time, the next one last, and notes what it sees.
struct Script<'a> {
    orders: Vec<(u64, Order)>,
    change: &'a dyn Fn(&Order),
    seen: Vec<Snapshot>,
}

impl Operator for Script<'_> {
    fn look(&mut self, run: &Snapshot) -> Answer {
        self.seen.push(run.clone());
        let mut orders = Vec::new();
        let now_ps = run.now_ps.cast_unsigned();
        while let Some((_, order)) = self.orders.pop_if(|(at_ps, _)| *at_ps <= now_ps) {
            (self.change)(&order);
            orders.push(order);
        }
        let next_ps = self.orders.last().map_or(u64::MAX, |(at_ps, _)| *at_ps).min(now_ps + 10_000_000);
        Answer { orders, next_ps, stop: false }
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(Path::new("live.toml"), text).unwrap()
}

/// Runs `text` under REPS; `orders` are given at their times in us.
fn run(text: &str, threads: usize, orders: &[(u64, Order)]) -> (RunResult, Vec<Snapshot>) {
    run_changing(text, threads, orders, BalancerKind::Reps)
}

/// As [`run`]; [`Order::Rechoose`] is for this balancer.
fn run_changing(text: &str, threads: usize, orders: &[(u64, Order)], to: BalancerKind) -> (RunResult, Vec<Snapshot>) {
    let (scenario, engine, new_flows) = (scenario(text), Sim { threads }, NewFlows::new(BalancerKind::Reps));
    let change = |order: &Order| {
        if *order == Order::Rechoose {
            new_flows.set(to);
        }
    };
    let orders = orders.iter().rev().map(|(at_us, order)| (at_us * 1_000_000, order.clone())).collect();
    let mut script = Script { orders, change: &change, seen: Vec::new() };
    let live = Some(Live { operator: &mut script, new_flows: &new_flows });
    let prepared = engine.prepare(&scenario, &mut |_| {}).unwrap();
    let observers = Observers { frames: None, live };
    let job = (BalancerKind::Reps, 1);
    let result = prepared.run_observed(job, observers, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    (result, script.seen)
}

fn alone(text: &str, balancer: BalancerKind) -> RunResult {
    let (scenario, engine) = (scenario(text), Sim::default());
    let prepared = engine.prepare(&scenario, &mut |_| {}).unwrap();
    prepared.run(balancer, 1, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// Whether two runs found the same, but for the time and the memory that they took, and for what their scenarios say of failures.
fn same(one: RunResult, other: RunResult) -> bool {
    let found = |run: RunResult| RunResult {
        engine_figures: EngineFigures { wall_s: 0.0, ..run.engine_figures },
        sim: None,
        condition: String::new(),
        ..run
    };
    found(one) == found(other)
}

/// When flows ended.
fn ends(run: &RunResult) -> Vec<Option<f64>> {
    run.flows.iter().map(|flow| flow.end_us).collect()
}

fn fail_and_heal() -> Vec<(u64, Order)> {
    let links = scenario(SCENARIO).network.links_named("leaf0-spine0").unwrap();
    let apply = Order::Apply { name: "leaf0-spine0".into(), links: links.clone(), action: LinkAction::SilentDrop };
    vec![(50, apply), (120, Order::Heal { links })]
}

/// To look on changes nothing, on however many threads.
#[test]
fn who_orders_nothing_changes_nothing() {
    for threads in [1, 2] {
        let (result, seen) = run(SCENARIO, threads, &[]);
        assert!(same(result, alone(SCENARIO, BalancerKind::Reps)));
        let last = seen.last().unwrap();
        assert!(last.over && !seen[0].over);
        assert_eq!(last.hosts.iter().map(|host| host.received_bytes).sum::<u64>(), 8 * (2 << 20));
        assert_eq!(last.arrived, 8);
        assert!(seen.windows(2).all(|pair| pair[0].now_ps < pair[1].now_ps));
        let middle = &seen[seen.len() / 2];
        assert!(middle.hosts.iter().all(|host| host.sending == 1 && host.frozen == 0), "{middle:?}");
    }
}

/// A link that an operator fails and heals is one that the scenario fails and heals at these times.
#[test]
fn an_order_is_as_good_as_the_scenario() {
    let planned = alone(&format!("{SCENARIO}{FAILURE}"), BalancerKind::Reps);
    let (steered, seen) = run(SCENARIO, 1, &fail_and_heal());
    assert!(planned.events.iter().any(|row| row.kind == EventKind::FreezeEntered));
    assert!(same(steered, planned));
    let link = scenario(SCENARIO).network.links_named("leaf0->spine0").unwrap()[0];
    let state = |us: i64| {
        let look = seen.iter().find(|look| look.now_ps > us * 1_000_000).unwrap();
        (look.links[link].unwrap().state.silent_drop, look.hosts.iter().map(|host| host.frozen).sum::<u32>())
    };
    assert!(!state(20).0 && state(100).0 && !state(121).0);
    assert!(state(110).1 > 0, "frozen");
}

/// Healing ends early what the scenario would have ended late.
#[test]
fn healing_ends_what_the_scenario_began() {
    let late = FAILURE.replace("120", "100000");
    let (_, heal) = fail_and_heal().pop().unwrap();
    let (steered, _) = run(&format!("{SCENARIO}{late}"), 1, &[(120, heal)]);
    assert!(same(steered, alone(&format!("{SCENARIO}{FAILURE}"), BalancerKind::Reps)));
}

/// Flows that have not begun take the new balancer; those that have keep theirs.
#[test]
fn new_flows_take_the_new_balancer() {
    let (at_once, _) = run_changing(SCENARIO, 1, &[(0, Order::Rechoose)], BalancerKind::Ecmp);
    let ecmp = alone(SCENARIO, BalancerKind::Ecmp);
    assert_eq!(ends(&at_once), ends(&ecmp));
    let (late, _) = run_changing(SCENARIO, 1, &[(50, Order::Rechoose)], BalancerKind::Ecmp);
    let reps = alone(SCENARIO, BalancerKind::Reps);
    assert_eq!(ends(&late), ends(&reps));
    assert_ne!(ends(&reps), ends(&ecmp));
}

/// Whoever ends a run gets what was found by then.
#[test]
fn a_run_ends_when_told_to() {
    struct End;
    impl Operator for End {
        fn look(&mut self, run: &Snapshot) -> Answer {
            Answer { orders: Vec::new(), next_ps: 60_000_000, stop: run.now_ps >= 60_000_000 }
        }
    }
    let (scenario, engine, new_flows) = (scenario(SCENARIO), Sim::default(), NewFlows::new(BalancerKind::Reps));
    let live = Some(Live { operator: &mut End, new_flows: &new_flows });
    let prepared = engine.prepare(&scenario, &mut |_| {}).unwrap();
    let observers = Observers { frames: None, live };
    let result =
        prepared.run_observed((BalancerKind::Reps, 1), observers, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let summary = result.summary();
    assert_eq!((summary.flows.flows_completed, summary.flows.flows_total), (0, 8));
}
