use spray_core::cc::CcKind;
use spray_core::units::{ByteSize, Micros};

use super::*;
use crate::results::{FlowFigures, FlowResult};
use crate::sim::{FctEnd, reference, run_parallel};
use crate::workload::{Distribution, Flow, FlowTemplate, Overrides, Partners, Pattern, Sizes, parse_matrix};
use spray_fabric::{FailureContext, FailureFile, LeafSpine, Network};

fn network() -> Network {
    LeafSpine::uniform([4, 4, 4], 400_000_000_000, 1_000_000).network()
}

fn scenario(pattern: Pattern) -> Scenario {
    reference("test", network(), pattern)
}

fn permutation() -> Scenario {
    scenario(Pattern::CrossLeafPermutation(FlowTemplate { bytes: 1 << 20, start_ps: 0 }))
}

fn run(scenario: &Scenario, seed: u64, events: &[LinkEvent]) -> RunResult {
    Simulation::new(scenario).run(BalancerKind::Reps, seed, events).unwrap()
}

fn drawn(scenario: &Scenario, text: &str, seed: u64) -> Vec<LinkEvent> {
    let context = FailureContext { network: &scenario.network, seed, until_ps: 1_000_000_000, packet_bytes: 4150 };
    FailureFile::parse(text).unwrap().events(&context).unwrap()
}

/// Returns a result without machine-dependent fields.
fn timeless(mut result: RunResult) -> String {
    result.engine_figures.wall_s = 0.0;
    result.sim = result.sim.map(|sim| SimFigures { packet_hops: sim.packet_hops, ..SimFigures::default() });
    format!("{result:?}")
}

#[test]
fn a_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let mut scenario = permutation();
    scenario.sample_ps = 5_000_000;
    let simulation = Simulation::new(&scenario);
    let run_job = |job: usize| {
        let balancer = [BalancerKind::Ecmp, BalancerKind::Ops, BalancerKind::Reps][job % 3];
        let seed = 1 + job as u64 / 3;
        let events = drawn(&scenario, "Cable-Fail: ON\nCable-Fail-Max-Percent: 0.1\n", seed);
        simulation.run(balancer, seed, &events).map(timeless)
    };
    let alone = run_parallel(9, 1, run_job).unwrap();
    for threads in [2, 3, 9] {
        assert!(run_parallel(9, threads, run_job).unwrap() == alone, "{threads} threads");
    }
    assert_ne!(alone[0], alone[3], "seeds differ");
}

#[test]
fn the_summary_has_the_counters_of_priority_flow_control() {
    let mut scenario = scenario(Pattern::CrossLeafPermutation(FlowTemplate { bytes: 1 << 20, start_ps: 0 }));
    let lossy = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap().summary();
    (scenario.queue.pfc, scenario.queue.marking) = (true, false);
    let lossless = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap().summary();
    assert!(lossy.fabric.trims > 0 && lossy.pfc.is_none());
    assert_eq!((lossless.fabric.trims, lossless.fabric.drops_queue), (0, 0));
    let pfc = lossless.pfc.unwrap();
    assert!(pfc.pauses > 0 && pfc.paused_us > 0.0 && pfc.deadlock_us.is_none(), "{pfc:?}");
    scenario.queue.pfc_headroom = Some(ByteSize::new(4_150));
    let without_headroom = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap().summary();
    assert!(without_headroom.fabric.drops_queue > 0);
}

/// An incast with pauses that reach the senders, with and without congestion control.
#[test]
fn no_packet_times_out_while_links_pause() {
    //= docs/specs/pfc.md#PFC-8 timeouts
    let file = spray_test_support::root().join("tests/scenarios/lossless.toml");
    let lossless = Scenario::load(&file).unwrap();
    let run = |scenario: &Scenario, cc, balancer| {
        let mut scenario = scenario.clone();
        scenario.transport.cc = cc;
        let summary = Simulation::new(&scenario).run(balancer, 1, &[]).unwrap().summary();
        assert!(summary.pfc.unwrap().pauses > 100, "otherwise the test is void");
        (summary.flows.timeouts, summary.flows.retransmits)
    };
    let paths = lossless.paths();
    let least_us =
        lossless.flow_config(&paths, BalancerKind::Ecmp, Overrides::default(), [8, 0], 0).rto.min_ps / 1_000_000;
    assert_eq!(least_us, 513, "as in docs/specs/pfc.md");
    for balancer in [BalancerKind::Ecmp, BalancerKind::Ops] {
        for cc in [CcKind::Dcqcn, CcKind::Dctcp] {
            assert_eq!(run(&lossless, cc, balancer), (0, 0), "{balancer} under {cc}");
        }
        // At full rate, of 8,400 packets.
        let (late, again) = run(&lossless, CcKind::FixedRate, balancer);
        assert!(late < 84 && again < 84, "{balancer}: {late} timeouts, {again} retransmissions");
    }
    let mut shared = lossless.clone();
    shared.queue.shared_buffer = Some(ByteSize::new(1_000_000));
    assert_eq!(run(&shared, CcKind::Dcqcn, BalancerKind::Ecmp), (0, 0));
    let mut hasty = lossless;
    hasty.transport.rto_min_us = Some(Micros::new(100));
    let (late, again) = run(&hasty, CcKind::Dcqcn, BalancerKind::Ecmp);
    assert!(late > 0 && again > 0, "otherwise the test is void");
}

#[test]
fn every_example_of_the_testbed_runs_unchanged() {
    let folder = spray_test_support::root().join("tests/scenarios");
    let mut runs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
            let result = run(&scenario, scenario.seed, &[]);
            let summary = result.summary();
            assert!(
                summary.is_complete(),
                "{path:?}: {} of {}",
                summary.flows.flows_completed,
                summary.flows.flows_total
            );
            assert!(summary.sim.unwrap().packet_hops > summary.flows.packets_sent, "{path:?}");
            runs += 1;
        }
    }
    assert!(runs >= 12, "{runs} examples");
}

#[test]
fn triggered_flows_start_when_preceding_ones_end() {
    let text = "Nodes 16\nConnections 5\nTriggers 3\n\
                0->4 id 1 start 0 size 400000 send_done_trigger 1\n\
                1->5 id 2 start 7000000 size 400000 recv_done_trigger 2\n\
                2->6 id 3 trigger 1 size 100000 recv_done_trigger 2\n\
                3->7 id 4 trigger 2 size 100000 recv_done_trigger 3\n\
                3->8 id 5 trigger 3 size 100000\n\
                trigger id 1 oneshot\ntrigger id 2 barrier count 2\ntrigger id 3 multishot\n";
    let scenario = scenario(Pattern::Matrix(parse_matrix(text, 16).unwrap()));
    let run_to = |fct_end| {
        let mut scenario = scenario.clone();
        scenario.simulation.fct_end = fct_end;
        run(&scenario, 1, &[]).flows
    };
    let (received, acked) = (run_to(FctEnd::Received), run_to(FctEnd::Acked));
    assert!(received.iter().all(|flow| flow.fct_us.is_some()));
    assert_eq!(received[2].start_us, acked[0].end_us.unwrap(), "started by the sender's last acknowledgement");
    let last = received[1].end_us.unwrap().max(received[2].end_us.unwrap());
    assert_eq!(received[3].start_us, last, "started by the later of two receivers");
    assert_eq!(received[4].start_us, received[3].end_us.unwrap());
    assert!(received.iter().zip(&acked).all(|(received, acked)| received.fct_us < acked.fct_us));
}

#[test]
fn failures_are_visible_in_the_counters_of_their_links() {
    let scenario = permutation();
    let run_with = |text: &str| {
        let events = drawn(&scenario, text, 1);
        (run(&scenario, 1, &events), events)
    };
    let (result, events) = run_with("Cable-Periodic-Packet-Loss: ON\nCable-Periodic-Packet-Loss-Drop-Period: 9\n");
    let port = &result.ports.iter().find(|port| port.name == events[0].name).unwrap().counters;
    let offered = port.frames + port.drops_random;
    assert!(port.drops_random == offered / 10 && port.drops_random > 0, "{} of {offered}", port.drops_random);
    assert_eq!(result.summary().fabric.drops_random, port.drops_random);
    assert!(result.summary().is_complete());

    let (result, _) = run_with("Random-Packet-Drop: ON\nRandom-Packet-Drop-Rate: 2\n");
    let frames: u64 = result.ports.iter().filter(|port| !port.uplink).map(|port| port.counters.frames).sum();
    let share = result.summary().fabric.drops_random as f64 / frames as f64;
    assert!((0.005..0.02).contains(&share), "{share}");

    let (result, events) = run_with("NIC-Fail: ON\nNIC-Fail-Duration: ON\nNIC-Fail-Duration-Time: 200000000\n");
    let hit = |flow: &&FlowResult| [&flow.src, &flow.dst].contains(&&events[0].name);
    assert!(result.flows.iter().filter(hit).all(|flow| flow.fct_us.unwrap() > 200.0), "a failed NIC delivers nothing");
    assert!(result.flows.iter().filter(|flow| !hit(flow)).all(|flow| flow.fct_us.unwrap() < 100.0));
    let own = |port: &&PortOutcome| {
        port.name == format!("{}->leaf{}", events[0].name, scenario.network.leaf_of(events[0].links[0] / 2))
    };
    assert!(result.ports.iter().find(own).unwrap().counters.drops_link() > 0, "its own link is listed");
    assert!(result.events.iter().any(|row| row.kind == EventKind::LastDrop));

    let mut short = scenario.clone();
    (short.time_limit_ps, short.transport.give_up_us) = (Some(2_000_000_000), Some(Micros::new(500)));
    let events = drawn(&short, "NIC-Fail: ON\n", 1);
    let summary = run(&short, 1, &events).summary();
    assert_eq!((summary.flows.flows_total - summary.flows.flows_completed, summary.is_complete()), (2, false));
    // One flow is sent from the failed interface and one to it. Both are given up after 0.5 ms; the
    // run lasts until then.
    let FlowFigures { flows_given_up, flows_cut_off, given_up_first_us, given_up_last_us, .. } = summary.flows;
    assert_eq!((flows_given_up, flows_cut_off, summary.give_up_us, summary.time_limit_us), (2, 0, Some(500.0), None));
    let (first, last) = (given_up_first_us.unwrap(), given_up_last_us.unwrap());
    assert!(500.0 <= first && first <= last && last < 1000.0, "{first} {last}");
    assert!(summary.lower_bounds.contains(&"fct_mean_us".into()) && summary.flows.fct_max_us >= Some(500.0));
    short.time_limit_ps = Some(300_000_000);
    let summary = run(&short, 1, &events).summary();
    let FlowFigures { flows_given_up, flows_cut_off, fct_max_us, .. } = summary.flows;
    assert_eq!((flows_given_up, flows_cut_off, summary.time_limit_us), (0, 2, Some(300.0)));
    assert_eq!(fct_max_us, Some(300.0));
}

#[test]
fn a_run_over_a_slow_link_is_not_cut_off() {
    let text = |rest: &str| {
        format!(
            "name = \"slow\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_gbps = 1\n{rest}\n\
             [workload]\nkind = \"flows\"\nflow = [{{ src = \"h0\", dst = \"h2\", bytes = \"3 MB\" }}]\n"
        )
    };
    let limit_ps = |rest: &str| {
        let scenario = Scenario::parse(std::path::Path::new("slow.toml"), &text(rest)).unwrap();
        scenario.time_limit_ps(&scenario.paths(), &scenario.plan(1))
    };
    let usual = limit_ps("");
    // The round-trip times include the slow links.
    assert!((100..150).contains(&(limit_ps("uplink_gbps = 0.01") / usual)));
    let slow = |at: &str| format!("[[link_event]]\nlink = \"leaf0->spine*\"\naction = \"rate\"\nfactor = 0.01\n{at}");
    assert_eq!((limit_ps(&slow("")), limit_ps(&slow("at_us = 1"))), (100 * usual, usual));
    let failure = "[[failure]]\nwhat = \"links\"\nshare = 0.5\naction = \"rate\"\nfactor = 0.1";
    assert_eq!((limit_ps(failure), limit_ps(&format!("{failure}\nat_us = 3"))), (10 * usual, usual));
    // The retransmission timeout and the limit without progress grow with the delay measured over
    // the slow link: 200 kB at 1 Mb/s, and at 10 Mb/s.
    for (factor, least_us) in [(0.001, 1.6e6), (0.01, 1.6e5)] {
        let event = slow("").replace("0.01", &factor.to_string());
        let text = text(&event).replace("3 MB", "200 kB");
        let scenario = Scenario::parse(std::path::Path::new("slow.toml"), &text).unwrap();
        let flows = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap().summary().flows;
        assert!(flows.fct_max_us.is_some_and(|us| (least_us..1.1 * least_us).contains(&us)), "{:?}", flows.fct_max_us);
        assert_eq!(flows.flows_completed, 1);
    }
}

#[test]
fn a_smaller_record_of_packets_does_not_change_results() {
    let mut scenario = permutation();
    scenario.transport.window_packets = 4096;
    // A further flow starts a second later. If it is long, it widens the window, which must not
    // affect the others.
    let flows = scenario.flows(1);
    let late = Flow { flow: flows.len() as u32, src: 0, dst: 15, start_ps: 1_000_000_000_000, ..flows[0] };
    let with = |bytes| {
        let mut scenario = scenario.clone();
        let all = [flows.as_slice(), &[Flow { bytes, ..late }]].concat();
        scenario.workloads[0].pattern = Pattern::Flows(all);
        (window_packets(&scenario, &scenario.plan(1).specs(1)), run(&scenario, 1, &[]).flows)
    };
    let ((narrow, few), (wide, all)) = (with(1 << 20), with(20 << 20));
    assert_eq!((narrow, wide), (512, 4096), "for 257 packets, and that of the scenario");
    assert_eq!(few[..flows.len()], all[..flows.len()]);
}

fn partners(until_us: Option<u64>) -> Scenario {
    let partners = Partners {
        messages: 20,
        sizes: Distribution::published(Sizes::Hadoop, 200_000),
        cross_leaf: true,
        start_ps: 3_000_000,
        until_ps: until_us.map(|until| until * 1_000_000),
    };
    scenario(Pattern::ClosedLoop(partners))
}

//= docs/specs/closed-loop.md#CL-1 at most one open message
#[test]
fn hosts_send_messages_one_after_the_other() {
    let mut scenario = partners(None);
    // A flow then ends when its sender receives the last ACK.
    scenario.simulation.fct_end = FctEnd::Acked;
    let result = run(&scenario, 5, &[]);
    assert_eq!(result.flows.len(), 20 * 16);
    for src in &scenario.network.hosts {
        let own: Vec<&FlowResult> = result.flows.iter().filter(|flow| flow.src == *src).collect();
        assert_eq!(own[0].start_us, 3.0);
        for pair in own.windows(2) {
            assert_eq!(Some(pair[1].start_us), pair[0].end_us, "{src}");
        }
    }
    assert_eq!(timeless(run(&scenario, 5, &[])), timeless(result));
}

/// The maximum message size follows the seed of the run, not that of the scenario.
#[test]
fn messages_are_delivered_under_any_seed() {
    let mut scenario = partners(None);
    if let Pattern::ClosedLoop(partners) = &mut scenario.workloads[0].pattern {
        (partners.messages, partners.sizes) = (2, Distribution::published(Sizes::WebSearch, 16 << 20));
    }
    let largest = |seed| scenario.flows(seed).iter().map(|flow| flow.bytes).max();
    let larger = (1..).filter(|seed| largest(*seed) > largest(scenario.seed));
    for seed in larger.take(3) {
        assert!(run(&scenario, seed, &[]).summary().is_complete(), "seed {seed}");
    }
}

//= docs/specs/closed-loop.md#CL-1 keeps `concurrent_messages` messages
#[test]
fn all_to_all_keeps_the_configured_number_of_messages_open() {
    for open in [1, 3] {
        let each = FlowTemplate { bytes: 50_000, start_ps: 0 };
        let mut scenario = scenario(Pattern::AllToAll { each, open: Some(open) });
        scenario.simulation.fct_end = FctEnd::Acked;
        let result = run(&scenario, 1, &[]);
        assert!(result.flows.len() == 16 * 15 && result.summary().is_complete());
        for src in &scenario.network.hosts {
            let own: Vec<_> = result.flows.iter().filter(|flow| flow.src == *src).collect();
            let at = |time: f64| own.iter().filter(|flow| flow.start_us <= time && time < flow.end_us.unwrap()).count();
            assert!(own.iter().all(|flow| at(flow.start_us) <= open as usize), "{src}");
            assert!(own.iter().take(15 - open as usize).all(|flow| at(flow.start_us) == open as usize), "{src}");
        }
    }
}

//= docs/specs/closed-loop.md#CL-2 no message begins at that time or later
#[test]
fn messages_that_would_start_after_the_end_are_excluded() {
    let (all, some) = (run(&partners(None), 5, &[]), run(&partners(Some(60)), 5, &[]));
    let summary = some.summary();
    assert!(summary.is_complete() && some.flows.len() < all.flows.len(), "{} flows", some.flows.len());
    let early = |result: &RunResult| result.flows.iter().filter(|flow| flow.start_us < 60.0).count();
    assert_eq!((early(&some), some.flows.len()), (early(&all), early(&all)));
    // Every host had an open message at the end.
    for src in &partners(None).network.hosts {
        assert!(some.flows.iter().any(|flow| flow.src == *src && flow.end_us.unwrap() > 50.0), "{src}");
    }
}

#[test]
//= docs/specs/switch.md#SW-24 in the bin in which its last bit leaves
fn no_link_exceeds_its_rate() {
    let mut scenario = permutation();
    scenario.sample_ps = 1_000_000;
    let result = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap();
    let mut busiest: f64 = 0.0;
    for series in &result.port_samples {
        // A frame is counted when its last bit leaves.
        let frame = scenario.packet_bytes();
        let most = result.ports[series.port].rate_bps as f64 * series.bin_ps as f64 / 8e12;
        for bin in &series.bins {
            assert!(bin.sent_bytes as f64 <= most + f64::from(frame), "{bin:?}");
        }
        for run in series.bins.chunks_exact(8) {
            let sent: u64 = run.iter().map(|bin| bin.sent_bytes).sum();
            busiest = busiest.max((sent as f64 - f64::from(frame)) / (8.0 * most));
        }
    }
    assert!((0.9..=1.0).contains(&busiest), "flows collide on a link, which is full: {busiest}");
}

/// The short last packet of a message may overtake a full one on another path; the bound is that of
/// the fastest path.
#[test]
fn no_message_is_faster_than_alone() {
    let (mut slowest, mut fastest) = (0.0_f64, f64::INFINITY);
    for (index, extra) in [1, 700, 0].into_iter().enumerate() {
        let mut scenario =
            scenario(Pattern::CrossLeafPermutation(FlowTemplate { bytes: 3 * 3_000 + extra, start_ps: 0 }));
        scenario.transport.payload_bytes = 3_000;
        for link in scenario.network.links.iter_mut().filter(|link| link.is_uplink()).step_by(2 + index) {
            link.rate_bps *= 2;
        }
        for seed in 1..=5 {
            let result = Simulation::new(&scenario).run(BalancerKind::Ops, seed, &[]).unwrap();
            for flow in &result.flows {
                let slowdown = flow.fct_us.unwrap() / flow.unloaded_fct_us;
                (slowest, fastest) = (slowest.max(slowdown), fastest.min(slowdown));
            }
        }
    }
    assert!(fastest >= 1.0 && slowest < 10.0, "{fastest} {slowest}");
}
