//! Somebody at the controls of a run on the xdp engine.

use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;
use spray_experiments::engine::{Engine, Observers};
use spray_experiments::live::{Live, NewFlows};
use spray_experiments::results::{EventKind, RunResult};
use spray_experiments::scenario::Scenario;
use spray_fabric::LinkAction;
use spray_fabric::live::{Answer, Operator, Order, Snapshot};
use spray_tests::{assert_sound, parse, shared_turn, small, testbed};

/// Does what `act` says, and notes what it sees.
struct Hands<'a> {
    act: &'a mut dyn FnMut(&Snapshot) -> Vec<Order>,
    seen: Vec<Snapshot>,
}

impl Operator for Hands<'_> {
    fn look(&mut self, run: &Snapshot) -> Answer {
        self.seen.push(run.clone());
        Answer { orders: if run.over { Vec::new() } else { (self.act)(run) }, ..Answer::default() }
    }
}

fn run(
    scenario: &Scenario,
    new_flows: &NewFlows,
    act: &mut dyn FnMut(&Snapshot) -> Vec<Order>,
) -> (RunResult, Vec<Snapshot>) {
    let testbed = testbed(scenario);
    let prepared = testbed.prepare(scenario, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let mut hands = Hands { act, seen: Vec::new() };
    let observers = Observers { frames: None, live: Some(Live { operator: &mut hands, new_flows }) };
    let job = (new_flows.get(), scenario.seed);
    let result = prepared.run_observed(job, observers, &mut |_| {}, &AtomicBool::new(false));
    (result.unwrap_or_else(|error| panic!("{error}")), hands.seen)
}

/// A cable fails, drops frames and is healed; the results tell of it, and everything arrives. REPS freezes; OPS, which learns nothing,
/// goes over the cable again.
#[test]
fn a_cable_fails_and_heals() {
    let Some(_turn) = shared_turn() else { return };
    for balancer in [BalancerKind::Reps, BalancerKind::Ops] {
        fail_and_heal(balancer);
    }
}

fn fail_and_heal(balancer: BalancerKind) {
    let scenario = small("32 MiB", "");
    let network = &scenario.network;
    let (cable, link) =
        (network.links_named("leaf0-spine0").unwrap(), network.links_named("leaf0->spine0").unwrap()[0]);
    let of = |run: &Snapshot| run.links[link].unwrap();
    let (mut failed, mut healed_at) = (false, None);
    let (result, seen) = run(&scenario, &NewFlows::new(balancer), &mut |run| {
        if run.now_ps > 0 && !failed {
            failed = true;
            let (name, links) = ("leaf0-spine0".into(), cable.clone());
            return vec![Order::Apply { name, links, action: LinkAction::SilentDrop }];
        }
        // Without trimming probes must stay unanswered before REPS freezes.
        let is_noticed = balancer == BalancerKind::Ops || run.hosts.iter().any(|host| host.frozen > 0);
        if failed && healed_at.is_none() && of(run).counters.drops_silent > 0 && is_noticed {
            healed_at = Some(of(run).counters.frames);
            return vec![Order::Heal { links: cable.clone() }];
        }
        Vec::new()
    });
    assert_sound(&result);
    let last = seen.last().unwrap();
    assert!(last.over && last.arrived == 4);
    assert_eq!(last.hosts.iter().map(|host| host.received_bytes).sum::<u64>(), 4 * (32 << 20));
    assert!(seen.iter().any(|run| of(run).state.silent_drop) && !of(last).state.silent_drop);
    let froze = seen.iter().any(|run| run.hosts.iter().any(|host| host.frozen > 0));
    assert_eq!(froze, balancer == BalancerKind::Reps);
    if balancer == BalancerKind::Ops {
        assert!(of(last).counters.frames > healed_at.unwrap(), "it carries frames again");
    }
    let of_kind = |kind| result.events.iter().find(|row| row.kind == kind && row.subject == "leaf0-spine0");
    let (fails, heals) = (of_kind(EventKind::Failure).unwrap(), of_kind(EventKind::Recovered).unwrap());
    assert!(fails.action == "silent-drop" && fails.time_us < heals.time_us, "{fails:?} {heals:?}");
}

/// Only flows that have yet to begin take the balancer that is chosen.
#[test]
fn new_flows_take_the_new_balancer() {
    let Some(_turn) = shared_turn() else { return };
    let scenario = parse(
        "name = \"later\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [[workload]]\nname = \"now\"\nhosts = [\"h0\", \"h2\"]\nkind = \"permutation\"\nbytes = \"16 MiB\"\n\
         [[workload]]\nname = \"later\"\nhosts = [\"h1\", \"h3\"]\nkind = \"permutation\"\nbytes = \"1 MiB\"\n\
         start_us = 1500\n",
    );
    let new_flows = NewFlows::new(BalancerKind::Reps);
    let mut chosen = false;
    let (result, _) = run(&scenario, &new_flows, &mut |run| {
        if chosen || run.hosts[2].received_bytes == 0 {
            return Vec::new();
        }
        chosen = true;
        new_flows.set(BalancerKind::Ops);
        vec![Order::Rechoose]
    });
    assert_sound(&result);
    let explored = |from: &str| {
        let of = result.evs.iter().find(|evs| evs.connection.starts_with(from)).unwrap();
        of.bins.iter().map(|bin| bin.packets[1]).sum::<u64>()
    };
    assert!(explored("h0->") > 0, "REPS explores");
    assert_eq!(explored("h1->"), 0, "OPS does not");
    let later = result.flows.iter().find(|flow| flow.src == "h1").unwrap();
    assert!(later.fct_us.is_some() && later.start_us >= 1500.0, "{later:?}");
}
