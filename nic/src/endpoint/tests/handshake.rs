//! Opening and closing of connections.

use super::hostile::{RAW_HOST, RawHost, client_terms, with_token};
use super::*;

fn lossy(loss_ppm: u32) -> Impairments {
    Impairments { delay_ps: 5 * US, loss_ppm, duplicate_ppm: 200_000, jitter_ps: 5 * US, ..Impairments::default() }
}

//= docs/specs/endpoint.md#END-1 connect is repeated
//= docs/specs/endpoint.md#END-2 address validation
//= docs/specs/endpoint.md#END-3 half-open connections
//= docs/specs/endpoint.md#END-10 closing
#[test]
fn connect_and_close_under_loss() {
    let mut rig = Rig::new(2, false, lossy(200_000));
    let connections: Vec<_> = (0..8).map(|_| rig.connect(0, 1)).collect();
    for &connection in &connections {
        rig.endpoints[0].send(connection, content(1, 5000)).unwrap();
        rig.endpoints[0].close(connection);
        assert_eq!(rig.endpoints[0].send(connection, content(1, 1)), Err(SendError::Closing));
    }
    assert!(rig.run(50 * US, 1000 * MS, |rig| rig.closed(0) == 8 && rig.closed(1) == 8));
    assert_eq!((rig.delivered(0), rig.received(1).len()), (8, 8));
    assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
    assert!(rig.endpoints.iter().all(|endpoint| endpoint.connections() == 0));
    let stats = rig.endpoints[0].connection_stats(connections[3]).unwrap();
    assert!(stats.sender.packets_sent >= 5, "counters outlive the connection");
    rig.audit();
}

//= docs/specs/endpoint.md#END-38 settings of a connection that is expected
#[test]
fn an_expected_connection_uses_its_settings() {
    let mut rig = Rig::new(3, false, Impairments::delay(5 * US));
    let connections = [rig.connect(0, 1), rig.connect(0, 1)];
    let seldom = FlowConfig { ack_every: 8, ..flow(false) };
    let from = peer(0, false).address;
    rig.endpoints[1].expect(from, connections[1], seldom).unwrap();
    let huge = FlowConfig { payload_bytes: 60_000, ..flow(false) };
    assert!(rig.endpoints[1].expect(from, connections[0], huge).is_err(), "frames would not fit");
    for connection in connections {
        rig.endpoints[0].send(connection, content(1, 400_000)).unwrap();
    }
    assert!(rig.run(50 * US, 100 * MS, |rig| rig.delivered(0) == 2));
    let remote = |event: &EndpointEvent| match event {
        EndpointEvent::Accepted { connection, remote, .. } => Some((*remote, *connection)),
        _ => None,
    };
    let accepted: std::collections::HashMap<_, _> = rig.events[1].iter().filter_map(remote).collect();
    let acks =
        connections.map(|connection| rig.endpoints[1].connection_stats(accepted[&connection]).unwrap().receiver.acks);
    assert!(acks[0] >= 400 && acks[1] < 150, "{acks:?}");
    rig.audit();
}

//= docs/specs/endpoint.md#END-11 bounded time
#[test]
fn link_loss_is_survived_and_removal_ends_connections() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 5_000_000)).unwrap();
    rig.run(5 * US, 100 * US, |_| false);
    assert_eq!(rig.accepted(1).len(), 1);
    rig.network.set_link(0, LinkState::Down);
    rig.run(5 * US, 300 * US, |_| false);
    assert!(rig.endpoints[0].is_device_failing() && !rig.endpoints[0].is_device_gone());
    assert_eq!(rig.delivered(0), 0);
    rig.network.set_link(0, LinkState::Up);
    assert!(rig.run(5 * US, 50 * MS, |rig| rig.delivered(0) == 1));
    assert!(!rig.endpoints[0].is_device_failing() && rig.failed(0).is_empty());
    rig.network.set_link(0, LinkState::Removed);
    assert!(rig.run(5 * US, 50 * US, |rig| rig.failed(0) == [ConnectionError::InterfaceGone]));
    rig.connect(0, 1);
    assert!(rig.run(5 * US, 50 * US, |rig| rig.failed(0) == [ConnectionError::InterfaceGone; 2]));
    assert!(rig.failed(1).is_empty(), "the other side waits for its idle timeout");
    rig.audit();
}

//= docs/specs/endpoint.md#END-9 keep-alives
#[test]
fn an_idle_connection_stays_open_while_its_peer_answers() {
    let mut rig = Rig::new(2, false, lossy(100_000));
    rig.connect(0, 1);
    rig.run(1000 * US, 1000 * MS, |_| false);
    assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
    assert_eq!((rig.accepted(1).len(), rig.endpoints[0].connections()), (1, 1));
    rig.stopped[1] = true;
    assert!(rig.run(1000 * US, 201 * MS, |rig| rig.failed(0) == [ConnectionError::IdleTimeout]));
    rig.audit();
}

//= docs/specs/endpoint.md#END-9 another every thirtieth
#[test]
fn an_idle_connection_survives_failed_paths() {
    // As if one of four paths were broken in each direction.
    let mut rig = Rig::new(2, false, lossy(250_000));
    rig.connect(0, 1);
    rig.run(1000 * US, 3000 * MS, |_| false);
    assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
    let sent = rig.endpoints[0].stats().sent[Kind::Probe] + rig.endpoints[1].stats().sent[Kind::Probe];
    assert!(sent < 400, "few probes are sent while they are answered: {sent}");
    rig.audit();
}

//= docs/specs/endpoint.md#END-1 connect is repeated
#[test]
fn a_connect_without_answer_times_out() {
    let mut rig = Rig::new(2, false, lossy(1_000_000));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 10)).unwrap();
    // 100 + 200 + 400 + 9 * 800 us.
    assert!(rig.run(100 * US, 8 * MS, |rig| rig.failed(0) == [ConnectionError::ConnectTimeout]));
    assert_eq!(rig.endpoints[0].stats().sent[Kind::Connect], 12);
    assert_eq!(rig.endpoints[0].send(connection, content(1, 10)), Err(SendError::Unknown));
    rig.audit();
}

//= docs/specs/endpoint.md#END-5 a full table
#[test]
fn refused_when_not_accepting_or_full() {
    let change = |host: usize, config: &mut EndpointConfig| {
        config.accept = host != 1;
        config.max_connections = if host == 2 { 2 } else { 16 };
    };
    let mut rig = Rig::with(3, false, Impairments::delay(5 * US), change);
    rig.connect(0, 1);
    assert!(rig.run(50 * US, 10 * MS, |rig| rig.failed(0) == [ConnectionError::Refused]));
    rig.connect(0, 2);
    rig.connect(0, 2);
    assert!(rig.run(50 * US, 10 * MS, |rig| rig.accepted(2).len() == 2));
    rig.connect(0, 2);
    assert!(rig.run(50 * US, 10 * MS, |rig| rig.failed(0).len() == 2));
    assert_eq!((rig.endpoints[2].stats().refused, rig.failed(0)[1]), (1, ConnectionError::Refused));
    rig.audit();
}

//= docs/specs/endpoint.md#END-11 bounded time
#[test]
fn a_sender_to_a_stopped_receiver_fails_in_bounded_time() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 3_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| rig.endpoints[1].stats().received[Kind::Data] > 300));
    rig.stopped[1] = true;
    let give_up_ps = flow(false).give_up_ps;
    assert!(rig.run(100 * US, 2 * give_up_ps, |rig| rig.failed(0) == [ConnectionError::PeerUnresponsive]));
    rig.stopped[1] = false;
    rig.audit();
}

//= docs/specs/endpoint.md#END-11 bounded time
#[test]
fn a_peer_whose_frames_arrive_is_not_reported_as_gone() {
    // The other side has the longer give-up time.
    let config_of = |host: usize, config: &mut EndpointConfig| config.flow.give_up_ps <<= 2 * host;
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), config_of);
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 30_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| !rig.accepted(1).is_empty()));
    let back = rig.accepted(1)[0];
    rig.endpoints[1].send(back, content(2, 30_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| rig.endpoints[0].stats().received[Kind::Data] > 300));
    let lost = Impairments { loss_ppm: 1_000_000, ..Impairments::delay(5 * US) };
    rig.network.set_sender_impairments(rig.endpoints[0].device(), lost);
    let bytes = PAYLOAD + header_bytes(false, Kind::Data) as u32 - 14;
    assert!(rig.run(100 * US, 100 * MS, |rig| !rig.failed(0).is_empty()));
    assert_eq!(rig.failed(0), [ConnectionError::MtuBlackHole { bytes }]);
}

/// The peer answers, but its user takes nothing.
//= docs/specs/endpoint.md#END-10 60 idle timeouts
//= docs/specs/endpoint.md#END-11 bounded time
#[test]
fn a_closed_connection_ends_though_its_peer_takes_nothing() {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |_, config| {
        (config.flow.max_message_bytes, config.flow.max_data_bytes) = (50_000, 100_000);
    });
    let connection = rig.connect(0, 1);
    for seed in 0..8 {
        rig.endpoints[0].send(connection, content(seed, 30_000)).unwrap();
    }
    rig.endpoints[0].close(connection);
    let (mut now, mut failed) = (Time::ZERO, None);
    while failed.is_none() && now.ps() < 20_000 * MS {
        now = now.after(if now.ps() < 10 * MS { 5 * US } else { MS });
        rig.network.advance(now);
        for endpoint in &mut rig.endpoints {
            endpoint.poll(now);
        }
        // Taken, but never released.
        while rig.endpoints[1].next_event().is_some() {}
        let events = std::iter::from_fn(|| rig.endpoints[0].poll_event());
        failed = events.filter_map(|event| matches!(event, EndpointEvent::Failed { .. }).then_some(now)).next();
    }
    let at = failed.unwrap().ps();
    assert!((6_000 * MS..6_200 * MS).contains(&at), "{at}");
    rig.audit();
}

//= docs/specs/endpoint.md#END-9 keep-alives
//= docs/specs/endpoint.md#END-11 bounded time
#[test]
fn a_receiver_from_a_stopped_sender_fails_in_bounded_time() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 3_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| rig.endpoints[1].stats().received[Kind::Data] > 300));
    rig.stopped[0] = true;
    assert!(rig.run(500 * US, 140 * MS, |rig| rig.failed(1) == [ConnectionError::IdleTimeout]));
    assert!(rig.received(1).is_empty() && rig.endpoints[1].connections() == 0);
    rig.stopped[0] = false;
    rig.audit();
}

//= docs/specs/endpoint.md#END-7 resets
//= docs/specs/endpoint.md#END-8 answers to unknown peers
#[test]
fn a_restarted_receiver_resets_the_sender() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 3_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| rig.endpoints[1].stats().received[Kind::Data] > 300));
    let device = rig.endpoints.remove(1).into_device();
    rig.endpoints.push(Endpoint::new(device, config(1, false)).unwrap());
    assert!(rig.run(50 * US, MS, |rig| rig.failed(0) == [ConnectionError::Reset]));
    let stats = rig.endpoints[1].stats();
    assert!(stats.unknown_connection > 0 && stats.sent[Kind::Reset] <= 65, "{stats:?}");
    rig.audit();
}

#[test]
fn abort_fails_both_sides() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 3_000_000)).unwrap();
    assert!(rig.run(5 * US, 100 * MS, |rig| rig.endpoints[1].stats().received[Kind::Data] > 300));
    rig.endpoints[0].abort(connection);
    assert!(rig.run(5 * US, MS, |rig| !rig.failed(0).is_empty() && !rig.failed(1).is_empty()));
    assert_eq!((rig.failed(0), rig.failed(1)), (vec![ConnectionError::Aborted], vec![ConnectionError::Aborted]));
    rig.audit();
}

//= docs/specs/endpoint.md#END-10 closing
#[test]
fn closing_with_undelivered_messages_of_the_peer_fails_there() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let ours = rig.connect(0, 1);
    assert!(rig.run(5 * US, 10 * MS, |rig| !rig.accepted(1).is_empty()));
    let theirs = rig.accepted(1)[0];
    rig.endpoints[1].send(theirs, content(1, 3_000_000)).unwrap();
    rig.run(5 * US, 100 * US, |_| false);
    rig.endpoints[0].close(ours);
    assert!(rig.run(5 * US, 10 * MS, |rig| rig.closed(0) == 1 && rig.failed(1) == [ConnectionError::PeerClosed]));
    rig.audit();
}

//= docs/specs/endpoint.md#END-10 a close states which packets arrived
#[test]
fn received_messages_are_delivered_though_acks_are_lost() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let ours = rig.connect(0, 1);
    assert!(rig.run(5 * US, 10 * MS, |rig| !rig.accepted(1).is_empty()));
    let theirs = rig.accepted(1)[0];
    rig.endpoints[0].send(ours, content(1, 20_000)).unwrap();
    rig.network.set_sender_impairments(
        rig.endpoints[1].device(),
        Impairments { loss_ppm: 1_000_000, ..Impairments::default() },
    );
    assert!(rig.run(5 * US, 10 * MS, |rig| !rig.received(1).is_empty()));
    assert_eq!(rig.delivered(0), 0);
    rig.network.set_sender_impairments(rig.endpoints[1].device(), Impairments::delay(5 * US));
    rig.endpoints[1].close(theirs);
    assert!(rig.run(5 * US, 10 * MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
    assert_eq!(rig.delivered(0), 1);
    rig.audit();
}

#[test]
fn invalid_configurations_are_rejected() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let make = |change: &dyn Fn(&mut EndpointConfig)| {
        let mut config = config(0, false);
        change(&mut config);
        Endpoint::new(network.attach(mac(0)), config).err()
    };
    assert_eq!(make(&|_| {}), None);
    assert_eq!(make(&|c| c.max_connections = 0), Some(ConfigError::MaxConnections(0)));
    assert_eq!(make(&|c| c.flow.path.evs = 0), Some(ConfigError::Evs));
    let grant = ConfigError::Grant { max_data_bytes: 1, max_message_bytes: 64 << 20 };
    assert_eq!(make(&|c| c.flow.max_data_bytes = 1), Some(grant));
    assert_eq!(make(&|c| c.flow.payload_bytes = 0), Some(ConfigError::Payload(0)));
    let error = make(&|c| c.flow.payload_bytes = 2000).unwrap();
    assert_eq!(error, ConfigError::FrameTooLong { needed: 2106, available: 2048 });
    assert!(error.to_string().contains("raise the MTU"));
    let mut rig = Rig::new(1, false, Impairments::default());
    let wrong = rig.endpoints[0].connect(Time::ZERO, peer(1, true), None);
    assert_eq!(wrong, Err(ConnectError::Family));
}

//= docs/specs/endpoint.md#END-7 resets
#[test]
fn a_delayed_connect_leaves_no_connection() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    // Two Connects with the token are in flight, and the second arrives after the close: the server
    // half-opens a connection, and the client answers with a Reset.
    assert!(rig.run(US, MS, |rig| rig.endpoints[0].stats().sent[Kind::Connect] == 2));
    rig.network.set_impairments(Impairments::delay(5 * MS));
    let now = rig.now;
    rig.endpoints[0].machine.retransmit_handshake(now, 0);
    rig.step(now.next());
    rig.network.set_impairments(Impairments::delay(5 * US));
    rig.endpoints[0].close(connection);
    assert!(rig.run(5 * US, MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
    assert!(rig.run(5 * US, 10 * MS, |rig| rig.endpoints[1].stats().received[Kind::Reset] == 1));
    assert_eq!((rig.endpoints[1].connections(), rig.accepted(1).len()), (0, 1));
    rig.audit();
}

/// Otherwise a client whose first Accepts were lost would have a connection that the server soon
/// drops.
//= docs/specs/endpoint.md#END-3 half-open connections
#[test]
fn a_repeated_connect_restarts_the_timeout_of_its_slot() {
    let mut rig = Rig::new(2, false, Impairments::delay(US));
    let mut raw_host = RawHost::new(&rig);
    let connect = with_token(&rig, client_terms(1));
    let half_open_after = |rig: &mut Rig, time: u64| {
        rig.run(10 * US, time, |_| false);
        rig.endpoints[1].connections()
    };
    raw_host.send(&rig, RAW_HOST, 1, 0, 0, &spray_wire::Body::Connect(connect));
    assert_eq!(half_open_after(&mut rig, 9 * MS), 1, "12 attempts take 9.6 ms at most");
    raw_host.send(&rig, RAW_HOST, 1, 0, 0, &spray_wire::Body::Connect(connect));
    assert_eq!(half_open_after(&mut rig, 9 * MS), 1, "the second Connect restarts that time");
    assert_eq!(half_open_after(&mut rig, MS), 0);
    assert_eq!(rig.endpoints[1].stats().half_open_expired, 1);
    raw_host.received();
    rig.audit();
}

/// Otherwise a client with nothing to send would have a connection that the server never opens.
//= docs/specs/endpoint.md#END-3 half-open connections
#[test]
fn a_connection_opens_though_the_first_keep_alives_are_lost() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.endpoints[1].stats().sent[Kind::Accept] == 1));
    rig.network.set_impairments(Impairments { loss_ppm: 1_000_000, ..Impairments::delay(5 * US) });
    rig.run(10 * US, 6 * MS, |_| false);
    assert_eq!(rig.accepted(1).len(), 0);
    rig.network.set_impairments(Impairments::delay(5 * US));
    assert!(rig.run(10 * US, 2 * MS, |rig| rig.accepted(1).len() == 1));
    let probes = |rig: &Rig| rig.endpoints[0].stats().sent[Kind::Probe];
    let sent = probes(&rig);
    rig.run(10 * US, 5 * MS, |_| false);
    assert_eq!(probes(&rig), sent, "the client has an answer to its keep-alive");
    rig.audit();
}

#[test]
fn aborting_before_the_peer_answers_is_silent() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].abort(connection);
    rig.run(US, 50 * US, |_| false);
    assert_eq!((rig.failed(0), rig.endpoints[0].stats().sent[Kind::Close]), (vec![ConnectionError::Aborted], 0));
    rig.audit();
}
