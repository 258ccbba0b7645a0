//! Connections of endpoints with keys: what an on-path attacker can read, forge and replay.

use std::sync::{Arc, Mutex};

use spray_wire::{Accept, Body, VERSION_SEALED};

use super::hostile::{RawHost, one_of_each};
use super::*;
use crate::endpoint;
use crate::keys::{Keys, PrivateKey};

fn key() -> PrivateKey {
    PrivateKey::generate().unwrap()
}

fn with_keys(v6: bool, impairments: Impairments, keys: [Option<Keys>; 2]) -> Rig {
    Rig::with(2, v6, impairments, |host, config| config.keys.clone_from(&keys[host]))
}

fn shared(impairments: Impairments) -> Rig {
    let keys = Keys::new(key(), vec![]);
    with_keys(false, impairments, [Some(keys.clone()), Some(keys)])
}

/// Loses, duplicates, reorders, corrupts, marks and trims frames.
fn everything() -> Impairments {
    Impairments {
        delay_ps: 5 * US,
        jitter_ps: 20 * US,
        loss_ppm: 20_000,
        duplicate_ppm: 20_000,
        corrupt_ppm: 20_000,
        mark_ppm: 20_000,
        trim_ppm: 20_000,
    }
}

//= docs/specs/endpoint.md#END-35 sealed connections
#[test]
fn sealed_messages_arrive_despite_all_impairments() {
    for v6 in [false, true] {
        let (client, server) = (key(), key());
        let keys = [
            Some(Keys::new(client.clone(), vec![server.public()])),
            Some(Keys::new(server, vec![key().public(), client.public()])),
        ];
        let mut rig = with_keys(v6, everything(), keys);
        let ours = rig.connect(0, 1);
        rig.endpoints[0].send(ours, content(1, 2_000_000)).unwrap();
        assert!(rig.run(5 * US, 100 * MS, |rig| !rig.accepted(1).is_empty()));
        let theirs = rig.accepted(1)[0];
        rig.endpoints[1].send(theirs, content(2, 1_000_000)).unwrap();
        assert!(rig.run(5 * US, 1000 * MS, |rig| rig.received(1).len() == 1 && rig.received(0).len() == 1));
        assert!(rig.received(1)[0].2 == content(1, 2_000_000) && rig.received(0)[0].2 == content(2, 1_000_000));
        rig.endpoints[0].close(ours);
        assert!(rig.run(5 * US, 1000 * MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
        for endpoint in &rig.endpoints {
            let stats = endpoint.stats();
            assert!(stats.replayed > 0 && stats.forged + stats.checksum > 0 && stats.trimmed > 0, "{stats:?}");
            assert_eq!(stats.unsealed, 0);
        }
        rig.audit();
    }
}

//= docs/specs/endpoint.md#END-33 the key exchange
//= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
#[test]
fn a_wrong_key_is_refused_and_no_key_gets_no_answer() {
    let (a, b, c) = (key(), key(), key());
    let keys = |own: &PrivateKey, peers: &[&PrivateKey]| {
        Some(Keys::new(own.clone(), peers.iter().map(|key| key.public()).collect()))
    };
    let cases = [
        (keys(&a, &[]), keys(&a, &[]), None),
        (keys(&a, &[&b]), keys(&b, &[&c, &a]), None),
        (None, None, None),
        // The server's key is not the one the client expects, or the client has no keys.
        (keys(&a, &[]), keys(&b, &[]), Some(ConnectionError::ConnectTimeout)),
        (keys(&c, &[&a]), keys(&b, &[&c]), Some(ConnectionError::ConnectTimeout)),
        (None, keys(&a, &[]), Some(ConnectionError::ConnectTimeout)),
        (keys(&a, &[]), None, Some(ConnectionError::Key)),
        (keys(&a, &[&b]), keys(&b, &[&c]), Some(ConnectionError::Key)),
    ];
    for (client, server, error) in cases {
        let mut rig = with_keys(false, Impairments::delay(US), [client, server]);
        rig.connect(0, 1);
        rig.run(US, 10 * MS, |_| false);
        assert_eq!(rig.accepted(1).len(), usize::from(error.is_none()));
        assert_eq!(rig.failed(0), Vec::from_iter(error));
        assert_eq!(rig.endpoints[1].connections(), usize::from(error.is_none()));
        rig.audit();
    }
}

//= docs/specs/endpoint.md#END-35 sealed connections
#[test]
fn plain_frames_with_the_right_cookies_change_nothing() {
    let run = |forge: bool| {
        // One key for both cases; the result does not depend on it.
        let mut rig = shared(Impairments::delay(5 * US));
        let mut raw_host = RawHost::new(&rig);
        let ours = rig.connect(0, 1);
        rig.endpoints[0].send(ours, content(1, 200_000)).unwrap();
        assert!(rig.run(US, MS, |rig| !rig.accepted(1).is_empty()));
        let theirs = rig.accepted(1)[0];
        for body in one_of_each().iter().filter(|_| forge) {
            for (from, to, id) in [(0, 1, theirs), (1, 0, ours)] {
                let cookie = rig.endpoints[to].machine.table.get(id).unwrap().cookie;
                raw_host.send(&rig, from, to, id.raw(), cookie, body);
            }
        }
        assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 1));
        assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
        assert_eq!(rig.received(1)[0].2, content(1, 200_000));
        let unsealed: u64 = rig.endpoints.iter().map(|endpoint| endpoint.stats().unsealed).sum();
        assert!(!forge || unsealed >= 18, "{unsealed}");
        rig.audit();
    };
    run(true);
    run(false);
}

/// Creates two hosts that share a key, an attacker that can send from their addresses, and a tap on
/// the first host.
fn observed() -> (Rig, RawHost, Tap) {
    let mut rig = shared(Impairments::delay(5 * US));
    let (raw_host, tap) = (RawHost::new(&rig), Tap::default());
    let endpoints = std::mem::take(&mut rig.endpoints).into_iter();
    rig.endpoints = endpoints.map(|endpoint| endpoint.with_tap(Box::new(tap.clone()))).collect();
    (rig, raw_host, tap)
}

/// An on-path attacker changes those terms of the Accept that are not sealed.
//= docs/specs/endpoint.md#END-33 the key exchange
#[test]
fn the_sealed_terms_of_an_accept_apply() {
    let (mut rig, mut raw_host, tap) = observed();
    let ours = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.endpoints[0].stats().sent[Kind::Connect] == 2));
    let lost = Impairments { loss_ppm: 1_000_000, ..Impairments::delay(5 * US) };
    rig.network.set_sender_impairments(rig.endpoints[1].device(), lost);
    assert!(rig.run(US, MS, |rig| rig.endpoints[1].stats().sent[Kind::Accept] == 1));
    let frames = tap.frames();
    let sent = frames.iter().map(|frame| spray_wire::parse(frame, spray_wire::Ports::DEFAULT).unwrap().unwrap());
    let mut accepts = sent.filter_map(|frame| match frame.body {
        Body::Accept(terms) => Some((frame.common, terms, frame.payload)),
        _ => None,
    });
    let (common, terms, message) = accepts.next().unwrap();
    let changed = Body::Accept(Accept { cookie: 1, window_packets: 1, max_data: 256, ..terms });
    raw_host.emit(&rig, [1, 0], &common, &changed, message);
    assert!(rig.run(US, 20 * US, |rig| rig.accepted(1).len() == 1), "the server receives its frames");
    assert_eq!(rig.endpoints[0].machine.table.get(ours).unwrap().remote, Accept { exchange_bytes: 0, ..terms });
    rig.network.set_sender_impairments(rig.endpoints[1].device(), Impairments::delay(5 * US));
    rig.endpoints[0].send(ours, content(1, 100_000)).unwrap();
    assert!(rig.run(US, 10 * MS, |rig| rig.received(1).len() == 1));
    assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
    rig.audit();
}

/// The server has stopped, and an attacker repeats its Accept.
//= docs/specs/endpoint.md#END-35 sealed connections
#[test]
fn a_repeated_accept_keeps_no_connection_alive() {
    let (mut rig, mut raw_host, tap) = observed();
    rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
    let of = |frame: &&Vec<u8>| {
        spray_wire::parse(frame, spray_wire::Ports::DEFAULT)
            .is_ok_and(|frame| frame.is_some_and(|frame| matches!(frame.body, Body::Accept(_))))
    };
    let accept = tap.frames().iter().find(of).cloned().unwrap();
    rig.stopped[1] = true;
    for _ in 0..15 {
        raw_host.send_raw(&accept);
        rig.run(MS, 10 * MS, |_| false);
    }
    assert_eq!(rig.failed(0), [ConnectionError::IdleTimeout]);
    assert!(rig.endpoints[0].stats().received[Kind::Accept] > 5);
    rig.stopped[1] = false;
    rig.audit();
}

/// An on-path attacker answers before the server does.
//= docs/specs/endpoint.md#END-33 the key exchange
#[test]
fn a_forged_accept_does_not_end_the_exchange() {
    let mut rig = shared(Impairments::delay(50 * US));
    let mut raw_host = RawHost::new(&rig);
    let ours = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.endpoints[0].stats().sent[Kind::Connect] == 2));
    let cookie = rig.endpoints[0].machine.table.get(ours).unwrap().cookie;
    let accept = Accept {
        connection: 3,
        cookie: 4,
        window_packets: 64,
        max_payload: 1000,
        max_data: 1 << 20,
        ack_every: 1,
        ..Accept::default()
    };
    raw_host.send(&rig, 1, 0, ours.raw(), cookie, &Body::Accept(accept));
    assert!(rig.run(US, 70 * US, |rig| rig.endpoints[0].stats().forged == 1));
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1), "the server's Accept arrived later");
    assert!(rig.failed(0).is_empty());
    rig.audit();
}

/// Records the frames that a device sends.
#[derive(Clone, Debug, Default)]
struct Tap(Arc<Mutex<Vec<Vec<u8>>>>);

impl endpoint::Tap for Tap {
    fn on_sent(&mut self, _now: Time, frame: &[u8]) {
        self.0.lock().unwrap().push(frame.into());
    }

    fn on_received(&mut self, _now: Time, frame: &[u8]) {
        self.0.lock().unwrap().push(frame.into());
    }
}

impl Tap {
    fn frames(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }
}

//= docs/specs/wire.md#WIRE-5 the value in the connection's settings
#[test]
fn data_frames_have_the_dscp_of_their_connection() {
    // Each direction has a DSCP; 46 is that of control frames, and not allowed for data.
    for (own, expected) in [([18, 34], [18, 34]), ([0, 46], [0, spray_wire::DSCP_DATA])] {
        let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
        let taps = [Tap::default(), Tap::default()];
        let mut endpoints = [0, 1].map(|host| {
            let mut config = config(host, false);
            config.flow.dscp = own[host];
            Endpoint::new(network.attach(mac(host)), config).unwrap().with_tap(Box::new(taps[host].clone()))
        });
        let connection = endpoints[0].connect(Time::ZERO, peer(1, false), None).unwrap();
        endpoints[0].send(connection, content(1, 20_000)).unwrap();
        let mut received = 0;
        for step in 0..2_000u64 {
            let now = Time::from_ps(step * US);
            network.advance(now);
            for host in [0, 1] {
                endpoints[host].poll(now);
                while let Some(event) = endpoints[host].poll_event() {
                    match event {
                        EndpointEvent::Accepted { connection, .. } => {
                            endpoints[host].send(connection, content(2, 20_000)).unwrap();
                        }
                        EndpointEvent::Received { .. } => received += 1,
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(received, 2);
        for (host, tap) in taps.iter().enumerate() {
            let sent = tap.frames().into_iter().filter(|frame| frame[6..12] == mac(host));
            let mut data = 0;
            for bytes in sent {
                let frame = spray_wire::parse(&bytes, spray_wire::Ports::DEFAULT).unwrap().unwrap();
                let is_data = matches!(frame.body, Body::Data(_));
                data += u32::from(is_data);
                let dscp = if is_data { expected[host] } else { spray_wire::DSCP_CONTROL };
                assert_eq!(frame.envelope.dscp, dscp, "{:?}", frame.body);
            }
            assert!(data > 10);
        }
    }
}

//= docs/specs/endpoint.md#END-35 sealed connections
//= docs/specs/wire.md#WIRE-19 numbers and keys
#[test]
fn recorded_frames_cannot_be_read_or_replayed() {
    let network = MemoryNetwork::new(MemoryConfig {
        seed: 7,
        frame_size: 2048,
        impairments: Impairments::delay(5 * US),
        ..MemoryConfig::default()
    });
    let (keys, taps) = (Keys::new(key(), vec![]), [Tap::default(), Tap::default()]);
    let mut endpoints = [0, 1].map(|host| {
        let config = EndpointConfig { keys: Some(keys.clone()), ..config(host, false) };
        Endpoint::new(network.attach(mac(host)), config).unwrap().with_tap(Box::new(taps[host].clone()))
    });
    let mut raw_host = network.attach(mac(9));
    let secret = Bytes::from(b"the weights of a model that nobody else has trained, ".repeat(4_000));
    let connection = endpoints[0].connect(Time::ZERO, peer(1, false), None).unwrap();
    endpoints[0].send(connection, secret.clone()).unwrap();
    let (mut received, mut replayed) = (Vec::new(), false);
    for step in 0..20_000u64 {
        let now = Time::from_ps(step * US);
        network.advance(now);
        for endpoint in &mut endpoints {
            endpoint.poll(now);
            while let Some(event) = endpoint.poll_event() {
                match event {
                    EndpointEvent::Received { data, .. } => received.push(data),
                    EndpointEvent::Failed { error, .. } => panic!("{error}"),
                    _ => {}
                }
            }
        }
        // In the middle of the transfer every recorded frame is sent again, from the right
        // addresses.
        if received.is_empty() && endpoints[1].stats().received[Kind::Data] > 100 && !replayed {
            replayed = true;
            for (host, tap) in taps.iter().enumerate() {
                // A capture contains received frames, too.
                for seen in tap.frames().into_iter().filter(|frame| frame[..6] == mac(1 - host)) {
                    let Some(frame) = raw_host.allocate() else { break };
                    raw_host.frame_mut(&frame)[..seen.len()].copy_from_slice(&seen);
                    raw_host.transmit(frame, seen.len() as u32).unwrap();
                    raw_host.flush().unwrap();
                }
            }
        }
    }
    assert!(replayed && received == [secret.clone()]);
    let stats: Vec<_> = endpoints.iter().map(Endpoint::stats).collect();
    assert!(stats[1].replayed > 50 && stats[0].replayed > 10, "{stats:?}");
    assert_eq!((stats[1].duplicates, endpoints[1].connections()), (0, 1), "no replayed frame reached the receiver");
    let frames: Vec<_> = taps.iter().flat_map(Tap::frames).collect();
    let is_plain = |frame: &&Vec<u8>| frame[42] != VERSION_SEALED;
    let plain: Vec<_> = frames
        .iter()
        .filter(is_plain)
        .map(|frame| spray_wire::parse(frame, spray_wire::Ports::DEFAULT).unwrap().unwrap().body)
        .collect();
    let handshake = |body: &Body| matches!(body, Body::Connect(_) | Body::Retry(_) | Body::Accept(_));
    assert!(frames.len() > 200 && plain.len() >= 4 && plain.iter().all(handshake), "{plain:?}");
    let word = &secret[..16];
    assert!(!frames.iter().any(|frame| frame.windows(word.len()).any(|part| part == word)));
}
