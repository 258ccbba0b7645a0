//! Several messages on one connection: each byte arrives once, balancers keep their state, and idle
//! connections cost nothing.

use spray_core::event::Event;
use spray_core::loss::{ReceiverConfig, ReceiverKind};

use super::*;

/// Bytes of messages that share a connection: more than a window, less than a packet, none, full
/// packets.
const BYTES: [u64; 7] = [300 * PAYLOAD + 5, 1, 0, 40 * PAYLOAD, 0, 3 * PAYLOAD - 1, 100 * PAYLOAD];

/// Messages of `BYTES` from every host to one of the next leaf, on one connection each, starting at
/// `starts`.
fn on_connections(hosts: usize, leaf: usize, starts: &[u64; 7]) -> Vec<FlowSpec> {
    let message = |number: usize| {
        (0..hosts).map(move |src| FlowSpec {
            connection: number.checked_sub(1).map(|before| before * hosts + src),
            start: Start::At(starts[number]),
            ..flow(src, (src + leaf) % hosts, BYTES[number])
        })
    };
    (0..BYTES.len()).flat_map(message).collect()
}

fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(PAYLOAD).max(1)
}

/// Every flow is complete, and by the sum of its flows' counters each byte of a connection arrived
/// once.
fn assert_delivered(name: &str, outcome: &SimOutcome, hosts: usize) {
    for (flow, found) in outcome.flows.iter().enumerate() {
        assert!(found.received_ps <= found.acked_ps && found.received_ps.is_some(), "{name}, flow {flow}: {found:?}");
        assert!(found.started_ps <= found.received_ps && found.given_up_ps.is_none(), "{name}, flow {flow}: {found:?}");
    }
    for src in 0..hosts {
        let own = || outcome.flows.iter().skip(src).step_by(hosts);
        let sum = |of: fn(&FlowOutcome) -> u64| own().map(of).sum::<u64>();
        let (bytes, count) = (BYTES.iter().sum::<u64>(), BYTES.iter().map(|bytes| packets(*bytes)).sum::<u64>());
        assert_eq!(sum(|flow| flow.receiver.bytes), bytes, "{name}, host {src}");
        assert_eq!(sum(|flow| flow.receiver.messages), BYTES.len() as u64, "{name}");
        assert_eq!(sum(|flow| flow.sender.messages_delivered), BYTES.len() as u64, "{name}");
        assert_eq!(sum(|flow| flow.sender.packets_acked), count, "{name}");
        assert_eq!(sum(|flow| flow.sender.packets_sent - flow.sender.retransmits), count, "{name}");
        assert_eq!(sum(|flow| flow.receiver.invalid), 0, "{name}");
        let in_order: Vec<_> = own().map(|flow| flow.started_ps).collect();
        assert!(in_order.is_sorted(), "{name}: {in_order:?}");
    }
}

/// A link of leaf 0 that fails silently, and loss of `ppm` between switches.
fn link_failures(network: &Network, ppm: u32, fails: bool) -> Vec<LinkEvent> {
    let between = network.links.iter().enumerate().filter(|(_, link)| link.is_uplink()).map(|(index, _)| index);
    let loss = LinkEvent {
        name: "all".into(),
        links: between.collect(),
        at_ps: 0,
        until_ps: None,
        action: LinkAction::Loss { ppm },
    };
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::SilentDrop;
    let failure = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 20 * US, until_ps: Some(400 * US), action };
    let loss = (ppm > 0).then_some(loss);
    loss.into_iter().chain(fails.then_some(failure)).collect()
}

#[test]
fn every_message_of_a_connection_arrives_once_despite_failures() {
    let network = leaf_spine(2, 4, 4);
    let at_once = [0; 7];
    let apart = [0, 5 * US, 9 * US, 400 * US, 400 * US, 1_500 * US, 1_400 * US];
    for balancer in BalancerKind::ALL {
        for receiver in [ReceiverConfig::Selective, ReceiverKind::GoBackN.into(), ReceiverKind::Irn.into()] {
            for (ppm, fails, trim, starts) in
                [(0, false, true, &at_once), (2_000, false, false, &at_once), (500, true, true, &apart)]
            {
                let flows = on_connections(8, 4, starts);
                let mut config = FlowConfig { receiver, window_packets: 64, ..flow_config(balancer) };
                config.path.trimming = trim;
                config.give_up_ps = u64::MAX;
                let small = |rate| Thresholds { trim, limit_bytes: 120_000, ..queue(rate) };
                let events = link_failures(&network, ppm, fails);
                let config = |_| config;
                let spec = SimSpec { events: &events, queue: &small, ..spec(&network, &flows, &config) };
                let outcome = simulate(&spec, 1).unwrap();
                assert_delivered(&format!("{balancer} {receiver:?} {ppm} {fails} {trim}"), &outcome, 8);
            }
        }
    }
}

#[test]
fn messages_arrive_with_an_ideal_code_and_with_little_buffer_memory() {
    let network = leaf_spine(2, 4, 4);
    let events = link_failures(&network, 5_000, false);
    let flows = on_connections(8, 4, &[0; 7]);
    for ideal_code in [false, true] {
        let mut config = FlowConfig { window_packets: 512, ..flow_config(BalancerKind::Ops) };
        // No more is granted than the largest message.
        (config.max_data_bytes, config.max_message_bytes) = (BYTES[0], BYTES[0]);
        let outcome =
            simulate(&SimSpec { events: &events, ideal_code, ..spec(&network, &flows, &|_| config) }, 1).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()), "{ideal_code}");
        let bytes: u64 = outcome.flows.iter().map(|flow| flow.receiver.bytes).sum();
        assert_eq!(bytes, 8 * BYTES.iter().sum::<u64>(), "{ideal_code}");
    }
}

#[test]
fn messages_beyond_the_send_queue_wait() {
    let network = leaf_spine(2, 2, 2);
    let message =
        |number: usize| FlowSpec { connection: number.checked_sub(1), ..flow(0, 2, number as u64 % 3 * 1_000) };
    let flows: Vec<_> = (0..1_000).map(message).collect();
    let outcome = run(&network, &[], &flows, BalancerKind::Reps, 1);
    let received: Vec<_> = outcome.flows.iter().map(|flow| flow.acked_ps.unwrap()).collect();
    assert!(received.last() > received.first());
    let sent: u64 = outcome.flows.iter().map(|flow| flow.sender.packets_sent).sum();
    assert_eq!(sent, 1_000);
}

#[test]
fn parts_and_threads_do_not_change_delivery() {
    let network = leaf_spine(16, 4, 8);
    let flows = on_connections(128, 8, &[0, 3 * US, 0, 100 * US, 0, 0, 200 * US]);
    let spec = |threads| simulate(&spec(&network, &flows, &|_| flow_config(BalancerKind::Reps)), threads).unwrap();
    let one = spec(1);
    assert_delivered("in parts", &one, 128);
    assert_eq!(one, spec(2));
}

//= docs/specs/triggers.md#TRG-6 persistent state
#[test]
fn a_persistent_connection_remembers_failed_paths_and_a_new_one_does_not() {
    let network = leaf_spine(2, 8, 4);
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::SilentDrop;
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 0, until_ps: None, action };
    // The second message starts long after the first has ended, and before a frozen balancer
    // explores again.
    let (bytes, later_ps) = (2_000 * PAYLOAD, 1_000 * US);
    let lost = |connection, seed| {
        let second = FlowSpec { connection, start: Start::At(later_ps), ..flow(0, 4, bytes) };
        let outcome =
            run(&network, std::slice::from_ref(&event), &[flow(0, 4, bytes), second], BalancerKind::Reps, seed);
        assert!(outcome.flows[0].acked_ps.unwrap() < later_ps, "{:?}", outcome.flows[0]);
        let [first, second] = [0, 1].map(|flow| outcome.flows[flow].sender.retransmits);
        assert!(first > 3, "otherwise the test is void");
        let freezes = |entry: &&(u64, u32, Event)| matches!(entry.2, Event::FreezeEntered { .. });
        let again = outcome.events.iter().filter(freezes).filter(|(at_ps, ..)| *at_ps >= later_ps);
        assert!(again.clone().all(|(_, flow, _)| *flow == 1));
        (second, again.count())
    };
    for seed in 1..6 {
        let (warm, cold) = (lost(Some(0), seed), lost(None, seed));
        assert_eq!(warm, (0, 0), "seed {seed}: a frozen balancer reuses its cached values");
        assert!(cold.0 > 3 && cold.1 > 0, "seed {seed}: {cold:?}");
    }
}

#[test]
fn an_idle_connection_loses_and_sends_nothing() {
    let network = leaf_spine(2, 4, 4);
    for balancer in BalancerKind::ALL {
        // Longer than every timer: retransmission, giving up, freezing.
        let idle_ps = 3 * 50_000 * US;
        let flows: Vec<_> = (0..4)
            .map(|number: usize| FlowSpec {
                connection: number.checked_sub(1),
                start: Start::At(number as u64 * idle_ps),
                ..flow(0, 4, 50 * PAYLOAD)
            })
            .collect();
        let config = |_| flow_config(balancer);
        let outcome = simulate(&SimSpec { until_ps: 5 * idle_ps, ..spec(&network, &flows, &config) }, 1).unwrap();
        let fct: Vec<_> = outcome.flows.iter().map(|flow| flow.acked_ps.unwrap() - flow.started_ps.unwrap()).collect();
        assert!(fct.iter().all(|fct_ps| *fct_ps < 100 * US), "{balancer}: {fct:?}");
        let again: u64 = outcome.flows.iter().map(|flow| flow.sender.retransmits + flow.sender.timeouts).sum();
        assert_eq!((again, outcome.frames_dropped), (0, 0), "{balancer}");
        assert_eq!(outcome.flows[3].started_ps, Some(3 * idle_ps));
        // Packets of the messages, their acknowledgements, and a balancer's own frames.
        let most = 4 * 50 * 2 + 400;
        assert!(outcome.frames_sent < most, "{balancer}: {} frames", outcome.frames_sent);
    }
}

//= docs/specs/triggers.md#TRG-1 signals
#[test]
fn a_connection_that_is_given_up_fails_all_undelivered_messages() {
    //= docs/specs/triggers.md#TRG-8 all of its flows that are not delivered
    let network = leaf_spine(2, 1, 2);
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::SilentDrop;
    let event = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 100 * US, until_ps: None, action };
    let at = |connection, start_ps| FlowSpec { connection, start: Start::At(start_ps), ..flow(0, 2, 1 << 20) };
    let mut flows = [at(None, 0), at(Some(0), 90 * US), at(Some(0), 59_000 * US), at(None, 0)];
    flows[3] = FlowSpec { start: Start::OnTrigger(0), ..flow(1, 0, 1_000) };
    flows[1].on_sent = Some(0);
    let config = |_| FlowConfig { give_up_ps: 5_000 * US, ..flow_config(BalancerKind::Reps) };
    let triggers = &[Trigger::new(TriggerKind::Oneshot)];
    let spec = SimSpec { triggers, events: &[event], ..spec(&network, &flows, &config) };
    let outcome = simulate(&spec, 1).unwrap();
    assert_eq!(
        outcome.flows.iter().map(|flow| flow.given_up_ps.is_some()).collect::<Vec<_>>(),
        [false, true, true, false]
    );
    assert_eq!(
        outcome.flows.iter().map(|flow| flow.started_ps.is_some()).collect::<Vec<_>>(),
        [true, true, false, false]
    );
}

/// A ring of `hosts` hosts, each with a connection to the next. In each of `steps` steps a host
/// sends as soon as it has the previous step's message and has computed for `delay_ps`.
fn ring(hosts: usize, steps: usize, bytes: u64, delay_ps: u64, persistent: bool) -> (Vec<FlowSpec>, Vec<Trigger>) {
    let step = |step: usize| {
        (0..hosts).map(move |host| FlowSpec {
            connection: step.checked_sub(1).filter(|_| persistent).map(|before| before * hosts + host),
            start: if step == 0 { Start::At(0) } else { Start::OnTrigger((step - 1) * hosts + host) },
            on_received: (step + 1 < steps).then_some(step * hosts + (host + 1) % hosts),
            ..flow(host, (host + 1) % hosts, bytes)
        })
    };
    let trigger = Trigger { kind: TriggerKind::Oneshot, delay_ps, then: None };
    ((0..steps).flat_map(step).collect(), vec![trigger; hosts * (steps - 1)])
}

#[test]
fn a_ring_runs_its_steps_in_sequence_with_delays() {
    //= docs/specs/triggers.md#TRG-3 scenario time
    let network = leaf_spine(2, 4, 4);
    let (hosts, steps, delay_ps) = (8, 14, 7 * US);
    for persistent in [false, true] {
        let (flows, triggers) = ring(hosts, steps, 20 * PAYLOAD, delay_ps, persistent);
        let config = |_| flow_config(BalancerKind::Reps);
        let outcome = simulate(&SimSpec { triggers: &triggers, ..spec(&network, &flows, &config) }, 1).unwrap();
        for flow in hosts..flows.len() {
            let (step, host) = (flow / hosts, flow % hosts);
            let before = (step - 1) * hosts + (host + hosts - 1) % hosts;
            let arrived_ps = outcome.flows[before].received_ps.unwrap();
            assert_eq!(outcome.flows[flow].started_ps, Some(arrived_ps + delay_ps), "flow {flow}");
        }
        assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()));
    }
}

#[test]
fn computing_continues_without_transmissions() {
    //= docs/specs/triggers.md#TRG-4 at the end of the delay
    let network = leaf_spine(2, 2, 2);
    let mut flows = [flow(0, 2, PAYLOAD), FlowSpec { start: Start::OnTrigger(2), ..flow(2, 0, PAYLOAD) }];
    flows[0].on_sent = Some(0);
    let link = |delay_ps, then| Trigger { kind: TriggerKind::Oneshot, delay_ps, then };
    let triggers = [link(5 * US, Some(1)), link(10 * US, Some(2)), link(100 * US, None)];
    let config = |_| flow_config(BalancerKind::Reps);
    let outcome = simulate(&SimSpec { triggers: &triggers, ..spec(&network, &flows, &config) }, 1).unwrap();
    assert_eq!(outcome.flows[1].started_ps, outcome.flows[0].acked_ps.map(|at_ps| at_ps + 115 * US));
}

#[test]
fn flows_differ_in_balancer_and_control() {
    use spray_core::cc::CcKind;
    let network = leaf_spine(2, 8, 4);
    let flows: Vec<_> = (0..4).map(|src| flow(src, 4 + src, 500 * PAYLOAD)).collect();
    let config = |flow: usize| {
        let mut config =
            flow_config([BalancerKind::Ecmp, BalancerKind::Ops, BalancerKind::Reps, BalancerKind::Ecmp][flow]);
        config.cc = [CcKind::Dctcp, CcKind::Eqds, CcKind::Nscc, CcKind::FixedRate][flow].into();
        config
    };
    let outcome = simulate(&spec(&network, &flows, &config), 1).unwrap();
    let order: Vec<_> = outcome.flows.iter().map(|flow| flow.receiver.order.reordered > 0).collect();
    assert_eq!((order[0], order[1], order[3]), (false, true, false), "one path preserves the order, and many do not");
    let pulls: Vec<_> = outcome.flows.iter().map(|flow| flow.sender.pulls > 0).collect();
    assert_eq!(pulls, [false, true, false, false]);
}
