//! Triggered flows on persistent connections, in namespaces.

use bytes::Bytes;
use rand_core::RngCore;
use spray_core::cc::CcKind;
use spray_core::flow::FlowConfig;
use spray_core::path::{BalancerKind, Path};
use spray_core::rng::stream;
use spray_fabric::{FlowOutcome, FlowSpec, LinkAction, LinkEvent, Network, Start, Trigger, TriggerKind};

use super::*;

const BPS: u64 = 100_000_000_000;
const US: u64 = 1_000_000;
const RTT_PS: u64 = 10 * US;
const PAYLOAD: u32 = 3_000;

fn flow_config(balancer: BalancerKind) -> FlowConfig {
    let path = Path { bdp_packets: 48, ..Path::new(RTT_PS, BPS, PAYLOAD + 114) };
    FlowConfig { give_up_ps: u64::MAX, ..FlowConfig::new(balancer, path, 114) }
}

fn queue(_: u64) -> Thresholds {
    Thresholds {
        limit_bytes: 150_000,
        mark_min_bytes: 30_000,
        mark_max_bytes: 120_000,
        control_limit_bytes: 150_000,
        trim: true,
        ..Thresholds::NONE
    }
}

fn flow(src: usize, dst: usize, bytes: u64) -> FlowSpec {
    FlowSpec {
        src,
        dst,
        bytes,
        connection: None,
        path_seed: Some(src as u64),
        start: Start::At(0),
        on_sent: None,
        on_received: None,
    }
}

/// Runs flows with random bytes on a fabric of four hosts; `None` without the privileges.
fn run(
    flows: &[FlowSpec],
    triggers: &[Trigger],
    events: &[LinkEvent],
    flow_config: &dyn Fn(usize) -> FlowConfig,
) -> Option<TestbedOutcome> {
    if !spray_test_support::has_root() {
        return None;
    }
    let network = network();
    let fabric = FabricSpec {
        network: &network,
        events,
        queue: &queue,
        packet_bytes: PAYLOAD + 114,
        per_switch: false,
        seed: 1,
    };
    let payload = |(flow, spec): (usize, &FlowSpec)| {
        let mut bytes = vec![0; spec.bytes as usize];
        stream(1, flow as u64).fill_bytes(&mut bytes);
        Bytes::from(bytes)
    };
    let payloads: Vec<_> = flows.iter().enumerate().map(payload).collect();
    let spec = TestbedSpec {
        fabric,
        flows,
        triggers,
        payloads: &payloads,
        flow_config,
        v6: false,
        base_rtt_ps: RTT_PS,
        until_ps: 500_000 * US,
        sample_ps: 0,
        dilation: Dilation::Given(400.0),
        watch: None,
    };
    let mut testbed = Testbed::new(&spec.fabric).unwrap();
    let outcome = testbed.run(&spec, &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert!(outcome.payload_verified && outcome.end_ps < spec.until_ps, "{} us", outcome.end_ps / US);
    Some(outcome)
}

fn network() -> Network {
    LeafSpine::uniform([2, 2, 2], BPS, US).network()
}

/// A ring of four hosts: a host that has received the message of the previous step computes, then
/// sends to the next host.
fn ring(steps: usize, bytes: u64, delay_ps: u64, persistent: bool) -> (Vec<FlowSpec>, Vec<Trigger>) {
    const HOSTS: usize = 4;
    let step = |step: usize| {
        (0..HOSTS).map(move |host| FlowSpec {
            connection: step.checked_sub(1).filter(|_| persistent).map(|before| before * HOSTS + host),
            start: if step == 0 { Start::At(0) } else { Start::OnTrigger((step - 1) * HOSTS + host) },
            on_received: (step + 1 < steps).then_some(step * HOSTS + (host + 1) % HOSTS),
            ..flow(host, (host + 1) % HOSTS, bytes + (step * HOSTS + host) as u64)
        })
    };
    let trigger = Trigger { kind: TriggerKind::Oneshot, delay_ps, then: None };
    ((0..steps).flat_map(step).collect(), vec![trigger; HOSTS * (steps - 1)])
}

#[test]
fn a_ring_takes_its_steps_with_the_delays_between_them() {
    //= docs/specs/triggers.md#TRG-9 or at once if its host's clock is already past that
    let (steps, delay_ps) = (6, 20 * US);
    for persistent in [true, false] {
        let (flows, triggers) = ring(steps, 60_000, delay_ps, persistent);
        let config = |_| flow_config(BalancerKind::Reps);
        let Some(outcome) = run(&flows, &triggers, &[], &config) else { return };
        for (flow, found) in outcome.flows.iter().enumerate() {
            assert!(found.acked_ps >= found.received_ps && found.received_ps.is_some(), "flow {flow}: {found:?}");
            let (step, host) = (flow / 4, flow % 4);
            if step > 0 {
                let came_ps = outcome.flows[(step - 1) * 4 + (host + 3) % 4].received_ps.unwrap();
                let waited_ps = found.started_ps.unwrap() - came_ps;
                assert!((delay_ps..delay_ps + 2 * US).contains(&waited_ps), "flow {flow} waited {waited_ps} ps");
            }
        }
        assert!(outcome.flows.iter().all(|flow| flow.sender.messages_delivered == 1), "{:?}", outcome.flows);
    }
}

#[test]
fn a_connection_carries_many_messages_of_different_flows() {
    let network = network();
    let links = network.links_named("leaf0->spine0").unwrap();
    let action = LinkAction::Loss { ppm: 5_000 };
    let loss = LinkEvent { name: "leaf0->spine0".into(), links, at_ps: 0, until_ps: None, action };
    let balancers = [BalancerKind::Reps, BalancerKind::Ops, BalancerKind::Ecmp];
    let sizes = [200_000, 1, 0, 90_001, 0, 3_000];
    // The connections of hosts 0 and 1, and the barrier after the first message, before which
    // nothing else may start.
    let message = |number: usize| {
        (0..3).map(move |pair| FlowSpec {
            connection: number.checked_sub(1).map(|before| before * 3 + pair),
            start: if number == 0 { Start::At(pair as u64 * 3 * US) } else { Start::OnTrigger(0) },
            on_sent: (number == 0).then_some(0),
            ..flow([0, 1, 0][pair], [2, 3, 3][pair], sizes[number])
        })
    };
    let flows: Vec<_> = (0..sizes.len()).flat_map(message).collect();
    let triggers = [Trigger { kind: TriggerKind::Barrier(3), delay_ps: 0, then: None }];
    let config = |flow: usize| {
        let mut config = flow_config(balancers[flow]);
        config.ack_every = [1, 4, 1][flow];
        config.cc = [CcKind::Dctcp, CcKind::Eqds, CcKind::Nscc][flow].into();
        config
    };
    let Some(outcome) = run(&flows, &triggers, &[loss], &config) else { return };
    assert!(outcome.flows.iter().all(|flow| flow.acked_ps.is_some()), "{:?}", outcome.flows);
    let barrier_ps = outcome.flows[..3].iter().map(|flow| flow.acked_ps.unwrap()).max().unwrap();
    assert!(outcome.flows[3..].iter().all(|flow| flow.started_ps.unwrap() >= barrier_ps));
    // The counters of a connection are divided among its flows.
    let sum =
        |pair: usize, of: fn(&FlowOutcome) -> u64| outcome.flows.iter().skip(pair).step_by(3).map(of).sum::<u64>();
    for pair in 0..3 {
        assert_eq!(sum(pair, |flow| flow.receiver.bytes), sizes.iter().sum::<u64>());
        assert_eq!(sum(pair, |flow| flow.sender.messages_delivered), sizes.len() as u64);
    }
    assert!(sum(1, |flow| flow.sender.pulls) > 0, "its receiver grants credit, by its settings");
    assert!(
        sum(1, |flow| flow.receiver.acks) < sum(1, |flow| flow.sender.packets_sent),
        "and coalesces acknowledgements"
    );
    assert!(sum(0, |flow| flow.sender.pulls) + sum(2, |flow| flow.sender.pulls) == 0);
}

#[test]
fn an_error_of_an_event_loop_ends_the_run() {
    let message = |number: usize| FlowSpec {
        connection: number.checked_sub(1),
        start: if number == 0 { Start::At(0) } else { Start::OnTrigger(0) },
        on_sent: Some(0),
        ..flow(0, 2, 30_000)
    };
    let flows: Vec<_> = (0..1_000).map(message).collect();
    let triggers = [Trigger::new(TriggerKind::MultishotUntil(300 * US))];
    let Some(outcome) = run(&flows, &triggers, &[], &|_| flow_config(BalancerKind::Reps)) else { return };
    let (begun, other): (Vec<&FlowOutcome>, Vec<&FlowOutcome>) =
        outcome.flows.iter().partition(|flow| flow.started_ps.is_some());
    assert!(begun.len() > 10 && begun.iter().all(|flow| flow.acked_ps.is_some()), "{}", begun.len());
    assert!(other.iter().all(|flow| **flow == FlowOutcome::default()) && !other.is_empty());
    assert!(outcome.end_ps < 400 * US);
}
