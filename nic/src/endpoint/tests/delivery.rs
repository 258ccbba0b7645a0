//! Exactly-once, byte-exact delivery under every impairment.

use crate::device::DeviceHealth as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use spray_core::cc::{ControlConfig, FixedRateConfig, FixedWindowConfig};
use spray_core::event::{Choice, ChoiceTap};
use spray_core::path::Ev;
use spray_core::units::Gbps;

use super::*;

fn rough() -> Impairments {
    Impairments {
        delay_ps: 5 * US,
        jitter_ps: 10 * US,
        loss_ppm: 200_000,
        duplicate_ppm: 50_000,
        corrupt_ppm: 50_000,
        mark_ppm: 100_000,
        trim_ppm: 50_000,
    }
}

/// Every host sends `messages` to each of the next two hosts, on one connection each.
fn all_to_next(v6: bool, hosts: usize, messages: usize, bytes: usize, impairments: Impairments) -> Rig {
    let mut rig = Rig::new(hosts, v6, impairments);
    for from in 0..hosts {
        for to in [(from + 1) % hosts, (from + 2) % hosts] {
            let connection = rig.connect(from, to);
            for message in 0..messages {
                let data = content(from * 100 + message, bytes + message);
                rig.endpoints[from].send(connection, data).unwrap();
            }
        }
    }
    let all = |rig: &mut Rig| {
        (0..hosts).all(|host| rig.received(host).len() == 2 * messages && rig.delivered(host) == 2 * messages)
    };
    assert!(rig.run(50 * US, 2_000 * MS, all), "{:?}", (0..hosts).map(|h| rig.received(h).len()).collect::<Vec<_>>());
    for host in 0..hosts {
        let mut expected: Vec<Bytes> = [1, 2]
            .iter()
            .flat_map(|back| (0..messages).map(move |message| ((host + hosts - back) % hosts) * 100 + message))
            .map(|seed| content(seed, bytes + seed % 100))
            .collect();
        let mut received: Vec<Bytes> = rig.received(host).into_iter().map(|(.., data)| data).collect();
        expected.sort();
        received.sort();
        assert!(expected == received, "host {host} received other bytes than were sent");
    }
    rig
}

/// Counts packets on recycled entropy values, and other packets.
#[derive(Clone, Debug, Default)]
struct Recycled(Arc<[AtomicU64; 2]>);

impl ChoiceTap for Recycled {
    fn on_choice(&mut self, _now: Time, _ev: Ev, _evs: u32, choice: Choice) {
        self.0[usize::from(choice != Choice::Recycled)].fetch_add(1, Relaxed);
    }
}

/// Sixteen acknowledgements arrive at once and echo 64 entropy values; a buffer holds 16.
#[test]
//= docs/specs/endpoint.md#END-13 After every four acknowledgements
fn a_burst_of_acknowledgements_loses_no_entropy_values() {
    let change = |_, config: &mut EndpointConfig| {
        config.flow.balancer = BalancerKind::RepsPlus.into();
        config.flow.cc = ControlConfig::FixedWindow(FixedWindowConfig::default());
        config.flow.path = Path { bdp_packets: 64, base_rtt_ps: 200 * US, ..config.flow.path };
        config.flow.ack_every = 4;
    };
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), change);
    let connection = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.events[0].iter().any(|it| matches!(it, EndpointEvent::Connected { .. }))));
    let seen = Recycled::default();
    rig.endpoints[0].tap_choices(connection, Box::new(seen.clone()));
    rig.endpoints[0].send(connection, content(1, 1_000_000)).unwrap();
    while rig.delivered(0) == 0 {
        rig.step(rig.now.after(100 * US));
        assert!(rig.now < Time::from_ps(100 * MS));
    }
    let [recycled, others] = [0, 1].map(|at| seen.0[at].load(Relaxed));
    assert!(recycled + others >= 1000 && others < 100, "{recycled} {others}");
}

/// With this number of connections, state is prefetched: for received frames and for the next
/// senders.
#[test]
fn a_hundred_connections_lose_nothing() {
    const CONNECTIONS: usize = 100;
    let change = |_, config: &mut EndpointConfig| config.max_connections = CONNECTIONS as u32;
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), change);
    for message in 0..CONNECTIONS {
        let connection = rig.connect(0, 1);
        rig.endpoints[0].send(connection, content(message, 5_000 + message)).unwrap();
    }
    assert!(rig.run(50 * US, 2_000 * MS, |rig| rig.delivered(0) == CONNECTIONS));
    let mut received: Vec<Bytes> = rig.received(1).into_iter().map(|(.., data)| data).collect();
    received.sort_by_key(Bytes::len);
    assert!(received == (0..CONNECTIONS).map(|seed| content(seed, 5_000 + seed)).collect::<Vec<_>>());
    rig.audit();
}

#[test]
fn faultless_v4() {
    all_to_next(false, 3, 5, 20_000, Impairments::delay(5 * US)).audit();
}

#[test]
fn faultless_v6() {
    let rig = all_to_next(true, 3, 5, 20_000, Impairments::default());
    assert!(rig.endpoints.iter().all(Endpoint::is_idle));
    rig.audit();
}

#[test]
fn rough_v4() {
    let rig = all_to_next(false, 4, 6, 40_000, rough());
    let stats = rig.endpoints[0].stats();
    assert!(stats.checksum > 0 && stats.duplicates > 0 && stats.trimmed > 0, "{stats:?}");
    rig.audit();
}

#[test]
fn rough_v6() {
    all_to_next(true, 4, 6, 40_000, rough()).audit();
}

/// Acknowledgements with several entropy values are valid frames.
//= docs/specs/wire.md#WIRE-8a echoes
#[test]
fn several_entropy_values_in_an_ack() {
    for v6 in [false, true] {
        for balancer in [BalancerKind::Reps, BalancerKind::RepsPlus] {
            let mut rig = Rig::with(2, v6, rough(), |_, config| {
                (config.flow.ack_every, config.flow.ack_evs) = (16, 16);
                config.flow.balancer = balancer.into();
            });
            let connection = rig.connect(0, 1);
            rig.endpoints[0].send(connection, content(1, 200_000)).unwrap();
            assert!(rig.run(50 * US, 1000 * MS, |rig| rig.delivered(0) == 1));
            assert!(rig.received(1)[0].2 == content(1, 200_000));
            rig.audit();
        }
    }
}

#[test]
fn both_directions_of_one_connection() {
    let mut rig = Rig::new(2, false, rough());
    let ours = rig.connect(0, 1);
    rig.endpoints[0].send(ours, content(1, 100_000)).unwrap();
    assert!(rig.run(50 * US, 500 * MS, |rig| !rig.accepted(1).is_empty()));
    let theirs = rig.accepted(1)[0];
    rig.endpoints[1].send(theirs, content(2, 120_000)).unwrap();
    assert!(rig.run(50 * US, 1000 * MS, |rig| rig.delivered(0) == 1 && rig.delivered(1) == 1));
    assert!(rig.received(1)[0].2 == content(1, 100_000) && rig.received(0)[0].2 == content(2, 120_000));
    rig.audit();
}

#[test]
fn empty_and_odd_messages() {
    let mut rig = Rig::new(2, false, rough());
    let connection = rig.connect(0, 1);
    let sizes = [0, 1, 999, 1000, 1001, 0, 2000];
    for (seed, &bytes) in sizes.iter().enumerate() {
        rig.endpoints[0].send(connection, content(seed, bytes)).unwrap();
    }
    assert!(rig.run(50 * US, 500 * MS, |rig| rig.delivered(0) == sizes.len()));
    let mut received = rig.received(1);
    received.sort_by_key(|(_, message, _)| *message);
    for (seed, (&bytes, (_, message, data))) in sizes.iter().zip(&received).enumerate() {
        assert_eq!(message.0, seed as u32);
        assert!(*data == content(seed, bytes));
    }
    rig.audit();
}

//= docs/specs/endpoint.md#END-12 whole messages
#[test]
fn more_messages_than_slots_and_more_bytes_than_granted() {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |_, config| {
        config.flow.max_data_bytes = 50_000;
        config.flow.max_message_bytes = 50_000;
    });
    let connection = rig.connect(0, 1);
    for seed in 0..1024 {
        rig.endpoints[0].send(connection, content(seed, 3000)).unwrap();
    }
    assert_eq!(rig.endpoints[0].send(connection, content(0, 1)), Err(SendError::Full));
    assert!(rig.run(50 * US, 1000 * MS, |rig| rig.delivered(0) == 1024), "{}", rig.delivered(0));
    assert_eq!(rig.received(1).len(), 1024);
    let too_long = rig.endpoints[0].send(connection, content(0, 50_001));
    assert_eq!(too_long, Err(SendError::Size { bytes: 50_001, max: 50_000 }));
    rig.audit();
}

#[test]
fn a_small_device_stalls_but_loses_nothing() {
    let network = MemoryNetwork::new(MemoryConfig { frames: 24, rx_ring: 8, tx_ring: 4, ..MemoryConfig::default() });
    let endpoints = (0..2).map(|h| Endpoint::new(network.attach(mac(h)), config(h, false)).unwrap()).collect();
    let events = vec![Vec::new(); 2];
    let mut rig = Rig { network, endpoints, events, now: Time::ZERO, v6: false, stopped: vec![false; 2] };
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(3, 300_000)).unwrap();
    assert!(rig.run(10 * US, 2000 * MS, |rig| rig.delivered(0) == 1));
    assert!(rig.received(1)[0].2 == content(3, 300_000));
    rig.audit();
}

#[test]
fn reused_buffers_contain_no_old_bytes() {
    let mut rig = Rig::new(2, false, rough());
    let connection = rig.connect(0, 1);
    for seed in 0..12 {
        let sent = content(seed, 100_000 - seed * 2_000);
        rig.endpoints[0].send(connection, sent.clone()).unwrap();
        assert!(rig.run(50 * US, 500 * MS, |rig| rig.delivered(0) == seed + 1));
        let events = std::mem::take(&mut rig.events[1]);
        let data = events.into_iter().find_map(|event| match event {
            EndpointEvent::Received { data, .. } => Some(data),
            _ => None,
        });
        let data = data.unwrap();
        assert!(data == sent);
    }
    rig.audit();
}

#[test]
fn a_sender_that_never_pauses_still_times_out() {
    // Paced, with a window that never fills, and losses detected by timeout only.
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |_, config| {
        config.flow.sack_gap_packets = None;
        config.flow.window_packets = 4096;
        let rate_gbps = Some(Gbps::from_bps(LINK_BPS / 2));
        config.flow.cc = ControlConfig::FixedRate(FixedRateConfig { rate_gbps });
    });
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 3_000_000)).unwrap();
    rig.run(US, 200 * US, |_| false);
    rig.network.set_impairments(Impairments { delay_ps: 5 * US, loss_ppm: 500_000, ..Impairments::default() });
    rig.run(US, 20 * US, |_| false);
    rig.network.set_impairments(Impairments::delay(5 * US));
    let lost_at = rig.now;
    let again = |rig: &mut Rig| rig.endpoints[0].connection_stats(connection).unwrap().sender.retransmits > 0;
    assert!(rig.run(US, 10 * MS, again));
    let waited_ps = rig.now.since(lost_at);
    assert!(waited_ps < 2 * flow(false).rto.initial_ps, "{waited_ps}");
    assert_eq!(rig.delivered(0), 0, "it was still sending");
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 1));
    rig.audit();
}

//= docs/specs/endpoint.md#END-19 coalescing
#[test]
fn coalescing_delays_frames_no_longer_than_configured() {
    let mut rig = Rig::with(2, false, Impairments::default(), |_, config| config.coalesce_ps = 10 * US);
    rig.step(Time::from_ps(US));
    rig.connect(0, 1);
    let arrived = |rig: &Rig| rig.endpoints[1].device().stats().rx;
    for now_us in 2..=10 {
        let next_at = rig.step(Time::from_ps(now_us * US));
        assert_eq!(arrived(&rig), 0, "at {now_us} us");
        assert!(next_at <= Time::from_ps(11 * US), "the endpoint asks to be polled too late");
    }
    rig.step(Time::from_ps(11 * US));
    assert_eq!(arrived(&rig), 1);
    assert!(
        rig.run(US, 1000 * US, |rig| rig.events[0]
            .iter()
            .any(|event| matches!(event, EndpointEvent::Connected { .. })))
    );
    rig.audit();
}

#[test]
fn totals_include_closed_connections() {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |_, _| {});
    let connections = [rig.connect(0, 1), rig.connect(0, 1)];
    for connection in connections {
        rig.endpoints[0].send(connection, content(1, 100_000)).unwrap();
    }
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 2));
    let sum = |rig: &Rig| {
        connections.iter().map(|id| rig.endpoints[0].connection_stats(*id).unwrap().sender.bytes_acked).sum::<u64>()
    };
    assert_eq!((sum(&rig), rig.endpoints[0].totals().0.bytes_acked), (200_000, 200_000));
    assert_eq!(rig.endpoints[0].open_connections().count(), 2);
    rig.endpoints[0].close(connections[0]);
    assert!(rig.run(US, 100 * MS, |rig| rig.endpoints[0].open_connections().count() == 1));
    let (sender, _) = rig.endpoints[0].totals();
    assert_eq!((sender.bytes_acked, sender.messages_delivered), (200_000, 2));
    assert_eq!(rig.endpoints[1].totals().1.bytes, 200_000);
    rig.audit();
}
