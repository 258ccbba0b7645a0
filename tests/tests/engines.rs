//! One scenario on both engines, which run the same hosts and switches and so give the same
//! completion times.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_experiments::workload::{Pattern, parse_matrix};
use spray_fabric::Scheme;
use spray_tests::{in_time, parse, scenarios, testbed, turn};

/// The maximum difference of the engines in completion times, in per cent: of the mean, and of the
/// slowest flows.
const MEAN_PERCENT: f64 = 5.0;
const SLOW_PERCENT: f64 = 10.0;
/// The maximum difference in the number of reordered packets with `ops`, in per cent. Other
/// balancers adapt to the order of packets, and vary with every seed on either engine.
const REORDERED_PERCENT: f64 = 10.0;
/// The maximum difference in the number of frames that a port trims, in per cent.
const TRIMS_PERCENT: f64 = 4.0;

#[test]
fn packets_and_the_simulator_agree_on_a_healthy_fabric() {
    agree("demo-healthy.toml");
}

#[test]
fn packets_and_the_simulator_agree_on_a_slow_uplink() {
    agree("demo-slow-uplink.toml");
}

/// Switches that select by a pointer or by queues process the frames of all hosts in the order of
/// virtual time. On this fabric hosts send in lockstep: in the simulator almost no packet is
/// reordered, while a few frames out of order would reorder half of them.
//= docs/specs/emulation.md#EMU-5 order of sending
#[test]
fn adaptive_switches_reorder_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let mut scenario = Scenario::load(&scenarios().join("demo-healthy.toml")).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    for scheme in [Scheme::Rr, Scheme::Jsq, Scheme::Ofan, Scheme::Adaptive] {
        scenario.network.switching.schemes = vec![scheme];
        let simulated = Simulation::new(&scenario).run(BalancerKind::Ecmp, scenario.seed, &[]).unwrap();
        let emulated = in_time(&testbed, &scenario, BalancerKind::Ecmp);
        let [(mean, slow), (sim_mean, sim_slow)] = [&emulated, &simulated].map(completion);
        assert!(within(mean, sim_mean, LOCKSTEP_PERCENT), "{scheme}: mean {mean:.1} us, simulated {sim_mean:.1}");
        assert!(within(slow, sim_slow, LOCKSTEP_PERCENT), "{scheme}: slowest {slow:.1} us, simulated {sim_slow:.1}");
        let [reordered, sim_reordered] = [&emulated, &simulated].map(reordered);
        let excess = reordered - sim_reordered;
        assert!(excess <= FEW_REORDERED, "{scheme}: {reordered} packets reordered, simulated {sim_reordered}");
    }
}

/// The differences of the engines on a fabric in lockstep: completion times in per cent, and
/// packets of about 45,000. On an idle machine there are almost none; frames made late by a busy
/// machine disturb the lockstep.
const LOCKSTEP_PERCENT: f64 = 1.0;
const FEW_REORDERED: f64 = 1_000.0;

fn agree(file: &str) {
    let Some(_turn) = turn() else { return };
    let scenario = Scenario::load(&scenarios().join(file)).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    let simulation = Simulation::new(&scenario);
    for balancer in [BalancerKind::Ecmp, BalancerKind::Ops, BalancerKind::Reps] {
        let simulated = simulation.run(balancer, scenario.seed, &[]).unwrap();
        let emulated = in_time(&testbed, &scenario, balancer);
        let [(mean, slow), (sim_mean, sim_slow)] = [&emulated, &simulated].map(completion);
        assert!(within(mean, sim_mean, MEAN_PERCENT), "{balancer}: mean {mean:.1} us, simulated {sim_mean:.1}");
        assert!(within(slow, sim_slow, SLOW_PERCENT), "{balancer}: slowest {slow:.1} us, simulated {sim_slow:.1}");
        let [reordered, sim_reordered] = [&emulated, &simulated].map(reordered);
        let agree = balancer != BalancerKind::Ops || within(reordered, sim_reordered, REORDERED_PERCENT);
        assert!(agree, "{balancer}: {reordered} packets reordered, simulated {sim_reordered}");
    }
}

/// Returns whether two figures differ by at most `percent`.
fn within(ours: f64, other: f64, percent: f64) -> bool {
    (ours / other - 1.0).abs() * 100.0 <= percent
}

/// The last port is emulated by its host in the order of time: simultaneous arrivals find the same
/// queue as in the simulator.
//= docs/specs/virtual-queue.md#VQ-13 the host emulates the last port
#[test]
fn an_incast_is_trimmed_and_dropped_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let mut scenario = Scenario::load(&scenarios().join("incast.toml")).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    for trimming in [true, false] {
        scenario.queue.trimming = trimming;
        let simulated = Simulation::new(&scenario).run(BalancerKind::Ops, scenario.seed, &[]).unwrap();
        let emulated = in_time(&testbed, &scenario, BalancerKind::Ops);
        let at_port = |result: &RunResult| {
            let port = result.ports.iter().find(|port| port.name == "leaf0->h0").expect("the receiver's port");
            let counters = &port.counters;
            // Every data packet reached the port, and those trimmed or dropped there were
            // retransmitted.
            assert_eq!(counters.trims == 0, !trimming);
            assert_eq!(counters.drops_queue == 0, trimming);
            assert!(counters.frames > 7 * 349, "{counters:?}");
            (counters.trims + counters.drops_queue) as f64
        };
        let [cut, sim_cut] = [&emulated, &simulated].map(at_port);
        assert!(within(cut, sim_cut, TRIMS_PERCENT), "{cut} frames trimmed or dropped, simulated {sim_cut}");
    }
}

/// Two synchronised senders over one port that drops: which frame gets the last free space is
/// random each time, on either engine.
//= docs/specs/emulation.md#EMU-9 equal senders get equal shares
#[test]
fn synchronised_senders_have_equal_losses_on_both_engines() {
    let Some(_turn) = turn() else { return };
    let mut scenario = parse(IN_STEP);
    let testbed = testbed(&scenario);
    let mut seen = Vec::new();
    for seed in 1..=2 {
        scenario.seed = seed;
        let simulated = Simulation::new(&scenario).run(BalancerKind::Ecmp, seed, &[]).unwrap();
        for result in [in_time(&testbed, &scenario, BalancerKind::Ecmp), simulated] {
            let [one, other] = [0, 1].map(|flow: usize| result.flows[flow].sender.retransmits as f64);
            assert!(one + other > 2_000.0 && within(one, other, ALIKE_PERCENT), "{}: {one} and {other}", result.engine);
            seen.push(one as u64);
        }
    }
    assert!(seen[0] != seen[2] && seen[1] != seen[3], "seeds differ: {seen:?}");
}

/// The maximum difference in the losses of synchronised senders, in per cent.
const ALIKE_PERCENT: f64 = 10.0;

const IN_STEP: &str = r#"
name = "in-step"
[topology]
kind = "leaf-spine"
leaves = 1
spines = 1
hosts_per_leaf = 3
host_gbps = 100
[workload]
kind = "flows"
flow = [{ src = "h1", dst = "h0", bytes = "8 MiB" }, { src = "h2", dst = "h0", bytes = "8 MiB" }]
[queue]
limit = "50 packets"
mark_min = "100 %"
mark_max = "100 %"
trimming = false
[transport]
balancer = "ecmp"
cc = "fixed-rate"
"#;

/// In an incast almost no packet is reordered except frames that leave two queues in the same
/// picosecond, where the order is random. In the order of sending there were half as many as in the
/// simulator at 400 Gb/s.
//= docs/specs/emulation.md#EMU-9 ties
#[test]
fn an_incast_is_reordered_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let text = std::fs::read_to_string(scenarios().join("incast.toml")).unwrap();
    let mut scenario = parse(&text.replace("host_gbps = 100", "host_gbps = 400"));
    let testbed = testbed(&scenario);
    for balancer in [BalancerKind::Ops, BalancerKind::Reps] {
        let (mut packets, mut simulated) = (0.0, 0.0);
        for seed in 1..=20 {
            scenario.seed = seed;
            packets += reordered(&in_time(&testbed, &scenario, balancer));
            simulated += reordered(&Simulation::new(&scenario).run(balancer, seed, &[]).unwrap());
        }
        assert!(within(packets, simulated, INCAST_PERCENT), "{balancer}: {packets} reordered, simulated {simulated}");
    }
}

/// The maximum difference in the number of reordered packets of 20 incasts, in per cent: three
/// standard deviations of about 500, and 10.
const INCAST_PERCENT: f64 = 25.0;

/// Frames arrive at each switch in the order of their virtual times, including those from other
/// switches: an ACK that overtook data at the previous port arrives first. When frames crossed all
/// switches at once, in the order of sending, the fat tree reordered 11 % fewer packets than the
/// simulator, and two hosts against two 42 % fewer.
//= docs/specs/emulation.md#EMU-10 frames between switches
#[test]
fn packets_from_several_switches_are_reordered_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let fat_tree = Scenario::load(&scenarios().join("fat-tree.toml")).unwrap_or_else(|error| panic!("{error}"));
    let switches_remember = {
        let mut scenario = fat_tree.clone();
        scenario.network.switching.schemes = vec![Scheme::Conga];
        scenario
    };
    for (mut scenario, seeds, percent) in
        [(fat_tree, 4, 5.0), (switches_remember, 4, 5.0), (parse(TWO_AGAINST_TWO), 40, 15.0)]
    {
        let testbed = testbed(&scenario);
        let (mut packets, mut simulated) = (0.0, 0.0);
        for seed in 1..=seeds {
            scenario.seed = seed;
            packets += reordered(&in_time(&testbed, &scenario, BalancerKind::Ops));
            simulated += reordered(&Simulation::new(&scenario).run(BalancerKind::Ops, seed, &[]).unwrap());
        }
        let name = &scenario.name;
        // Three standard deviations.
        assert!(within(packets, simulated, percent), "{name}: {packets} reordered, simulated {simulated}");
    }
}

/// A seed gives the same run each time, to the picosecond, because every frame is processed by
/// switches and hosts in the order of virtual times.
//= docs/specs/emulation.md#EMU-3 deterministic results
#[test]
fn a_seed_determines_the_packets() {
    let Some(_turn) = turn() else { return };
    let scenario = Scenario::load(&scenarios().join("fat-tree.toml")).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    let runs = [(); 3].map(|()| in_time(&testbed, &scenario, BalancerKind::Reps));
    let seen = |run: &RunResult| run.flows.iter().map(|flow| (flow.fct_us, flow.receiver.order)).collect::<Vec<_>>();
    for run in &runs[1..] {
        assert_eq!(seen(run), seen(&runs[0]));
    }
}

/// Both hosts of a leaf exchange messages with those of the other, over four spines.
const TWO_AGAINST_TWO: &str = r#"
name = "two-against-two"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 2
host_gbps = 100
latency_us = 1
[workload]
kind = "flows"
flow = [
  { src = "h0", dst = "h2", bytes = "1 MiB" },
  { src = "h2", dst = "h0", bytes = "1 MiB" },
  { src = "h1", dst = "h3", bytes = "1 MiB" },
  { src = "h3", dst = "h1", bytes = "1 MiB" },
]
"#;

/// Hosts proceed from partner to partner independently on both engines: the next message starts
/// when the previous one is acknowledged.
//= docs/specs/closed-loop.md#CL-1 at most one open message
#[test]
fn hosts_send_messages_in_sequence_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let mut scenario = Scenario::load(&scenarios().join("partners.toml")).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    let ops = BalancerKind::Ops;
    let simulated = Simulation::new(&scenario).run(ops, scenario.seed, &[]).unwrap();
    let emulated = in_time(&testbed, &scenario, ops);
    assert_eq!((emulated.payload_verified, emulated.flows.len()), (Some(true), 80));
    let [(mean, slow), (sim_mean, sim_slow)] = [&emulated, &simulated].map(completion);
    assert!(within(mean, sim_mean, MEAN_PERCENT), "mean {mean:.1} us, simulated {sim_mean:.1}");
    assert!(within(slow, sim_slow, SLOW_PERCENT), "slowest {slow:.1} us, simulated {sim_slow:.1}");
    for host in &scenario.network.hosts {
        let own: Vec<_> = emulated.flows.iter().filter(|flow| flow.src == *host).collect();
        assert!(own.windows(2).all(|pair| Some(pair[1].start_us) >= pair[0].end_us), "{host}");
    }
    let Pattern::ClosedLoop(partners) = &mut scenario.workloads[0].pattern else { unreachable!() };
    partners.until_ps = Some(100_000_000);
    let emulated = in_time(&testbed, &scenario, ops);
    assert!(emulated.flows.len() < 80 && emulated.flows.iter().all(|flow| flow.start_us < 100.0));
    completion(&emulated);
}

/// In a ring each host sends as soon as it has received the message of the previous host: every
/// step takes the same time on both engines.
//= docs/specs/triggers.md#TRG-9 Every host is polled by one process
#[test]
fn a_chain_of_triggers_takes_as_long_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let mut scenario = Scenario::load(&scenarios().join("demo-healthy.toml")).unwrap_or_else(|error| panic!("{error}"));
    let (hosts, steps) = (scenario.network.hosts.len(), 6);
    let mut matrix = String::new();
    for (step, host) in (0..steps).flat_map(|step| (0..hosts).map(move |host| (step, host))) {
        let (id, next) = (step * hosts + host + 1, (host + 1) % hosts);
        let start = if step == 0 { "start 0".into() } else { format!("trigger {}", (step - 1) * hosts + host + 1) };
        let signal = (step + 1 < steps).then(|| format!(" recv_done_trigger {}", step * hosts + next + 1));
        matrix += &format!("{host}->{next} id {id} {start} size 200000{}\n", signal.unwrap_or_default());
    }
    (1..=(steps - 1) * hosts).for_each(|trigger| matrix += &format!("trigger id {trigger} oneshot\n"));
    scenario.workloads[0].pattern =
        Pattern::Matrix(parse_matrix(&matrix, hosts).unwrap_or_else(|error| panic!("{error}")));
    let testbed = testbed(&scenario);
    let simulated = Simulation::new(&scenario).run(BalancerKind::Ops, scenario.seed, &[]).unwrap();
    let emulated = in_time(&testbed, &scenario, BalancerKind::Ops);
    assert!(emulated.payload_verified == Some(true) && emulated.flows.len() == steps * hosts);
    let [(mean, slow), (sim_mean, sim_slow)] = [&emulated, &simulated].map(completion);
    assert!(within(mean, sim_mean, MEAN_PERCENT), "mean {mean:.1} us, simulated {sim_mean:.1}");
    assert!(within(slow, sim_slow, SLOW_PERCENT), "slowest {slow:.1} us, simulated {sim_slow:.1}");
    let [end, sim_end] =
        [&emulated, &simulated].map(|run| run.flows.iter().filter_map(|flow| flow.end_us).fold(0.0, f64::max));
    eprintln!("the ring took {end:.1} us, simulated {sim_end:.1}");
    assert!(within(end, sim_end, MEAN_PERCENT), "{end:.1} us in all, simulated {sim_end:.1}");
}

/// Two jobs at once, on separate hosts and with different balancers: collectives and messages take
/// the same time on both engines.
//= docs/specs/workloads.md#WL-1 several at once
//= docs/specs/collectives.md#COL-1 waits for its inputs
#[test]
fn concurrent_jobs_take_as_long_as_in_the_simulator() {
    let Some(_turn) = turn() else { return };
    let mut scenario = Scenario::load(&scenarios().join("jobs.toml")).unwrap_or_else(|error| panic!("{error}"));
    scenario.workloads[1].own.balancer = Some(BalancerKind::Ops);
    let testbed = testbed(&scenario);
    let simulated = Simulation::new(&scenario).run(BalancerKind::Reps, scenario.seed, &[]).unwrap();
    let emulated = in_time(&testbed, &scenario, BalancerKind::Reps);
    assert_eq!(emulated.payload_verified, Some(true));
    let [dense, experts] = &emulated.workloads()[..] else { panic!("two workloads") };
    assert_eq!([&dense.balancer, &experts.balancer], ["reps", "ops"]);
    for (own, sim) in [dense, experts].into_iter().zip(simulated.workloads()) {
        assert_eq!(
            (&own.name, own.flows.flows_total, own.flows.flows_completed),
            (&sim.name, sim.flows.flows_total, sim.flows.flows_total)
        );
        let [mean, sim_mean] = [own, &sim].map(|of| of.flows.fct_mean_us.expect("a complete flow"));
        assert!(within(mean, sim_mean, MEAN_PERCENT), "{}: mean {mean:.1} us, simulated {sim_mean:.1}", own.name);
        let [cct, sim_cct] =
            [own, &sim].map(|of| of.collectives.and_then(|all| all.cct_mean_us).expect("a collective"));
        assert!(within(cct, sim_cct, SLOW_PERCENT), "{}: CCT {cct:.1} us, simulated {sim_cct:.1}", own.name);
    }
}

/// Returns the number of packets that arrived after one with a higher number, over all flows.
fn reordered(result: &RunResult) -> f64 {
    result.flows.iter().map(|flow| flow.receiver.order.reordered).sum::<u64>() as f64
}

/// Returns the mean completion time, and that of the slowest tenth of the flows, in us; every flow
/// completed. The slowest flow of 80 varies by a tenth between runs, because it is random which
/// packets meet in a queue.
fn completion(result: &RunResult) -> (f64, f64) {
    let mut times: Vec<f64> = result.flows.iter().map(|flow| flow.fct_us.expect("a complete flow")).collect();
    times.sort_by(f64::total_cmp);
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    (mean(&times), mean(&times[times.len() * 9 / 10..]))
}
