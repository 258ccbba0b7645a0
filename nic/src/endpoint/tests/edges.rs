//! Limits of numbers: clocks of many years, and messages beyond 4 GiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_core::cc::CcKind;
use spray_wire::{Body, Probe, Retry, Terms};

use super::hostile::{RAW_HOST, RawHost, client_terms, with_token};
use super::*;
use crate::keys::{Keys, PrivateKey};

fn rig() -> Rig {
    Rig::with(2, false, Impairments::delay(US), |_, config| config.flow.cc = CcKind::Eqds.into())
}

/// Picoseconds in a day.
const DAY_PS: u64 = 86_400 * 1_000_000_000_000;

/// Returns the time `count` years of 365 days after the origin.
fn years(count: u64) -> Time {
    Time::from_ns(count * 365 * (DAY_PS / 1_000))
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn a_connection_stays_open_for_300_days_on_an_old_clock() {
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| {
        config.flow.cc = CcKind::Eqds.into();
        // Eight hours between keep-alives.
        config.idle_timeout_ps = DAY_PS;
    });
    rig.now = years(60);
    let connection = rig.connect(0, 1);
    for month in 0..=10 {
        let now = rig.now;
        rig.endpoints[0].send_at(connection, content(month, 100_000), now).unwrap();
        assert!(rig.run(US, 10 * MS, |rig| rig.received(1).len() == month + 1 && rig.delivered(0) == month + 1));
        assert!(rig.received(1)[month].2 == content(month, 100_000));
        if month < 10 {
            let from = rig.now;
            assert!(!rig.run(DAY_PS, 30 * DAY_PS, |_| false));
            assert!(rig.now >= from.after(30 * DAY_PS), "it is polled when due, and time advances");
        }
    }
    assert!(rig.now >= years(60).after(150 * DAY_PS).after(150 * DAY_PS));
    let alive: u64 = rig.endpoints.iter().map(|endpoint| endpoint.stats().sent[Kind::Probe]).sum();
    assert!((890..1_000).contains(&alive), "three times a day, by one side or the other: {alive}");
    assert_eq!((rig.endpoints[0].connections(), rig.endpoints[1].connections()), (1, 1));
    for (host, Times { started_at, completed_at }) in [(0, last(&rig.events[0])), (1, last(&rig.events[1]))] {
        assert!(started_at < completed_at && completed_at.since(started_at) < 10 * MS, "at {host}");
    }
    rig.endpoints[0].close(connection);
    assert!(rig.run(US, 10 * MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
    rig.audit();
}

struct Times {
    started_at: Time,
    completed_at: Time,
}

/// Returns when the last message of these events began and ended.
fn last(events: &[EndpointEvent]) -> Times {
    let times = |event: &EndpointEvent| match *event {
        EndpointEvent::Received { started_at, completed_at, .. } => Some(Times { started_at, completed_at }),
        EndpointEvent::Delivered { started_at, at, .. } => Some(Times { started_at, completed_at: at }),
        _ => None,
    };
    events.iter().rev().find_map(times).unwrap()
}

//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn an_endpoint_works_after_ten_idle_years() {
    let mut rig = rig();
    let mut raw_host = RawHost::new(&rig);
    let flood = |rig: &mut Rig, raw_host: &mut RawHost| {
        for number in 0..300 {
            let probe = Body::Probe(Probe { token: 1, timestamp: rig.now });
            raw_host.send(rig, RAW_HOST, 1, 1000 + number, 5, &probe);
        }
        rig.run(US, 10 * US, |_| false);
        raw_host.received().len()
    };
    assert_eq!(flood(&mut rig, &mut raw_host), 64);
    let early = Terms { exchange_bytes: 0, ..client_terms(3) };
    let early = with_token(&rig, early);
    for since in [Time::ZERO, years(10)] {
        assert!(rig.endpoints.iter_mut().all(|endpoint| endpoint.poll(since).is_none()), "nothing is due");
    }
    rig.now = years(10);
    // The rate limit allows one burst, as at the start, and earlier tokens have expired.
    assert_eq!(flood(&mut rig, &mut raw_host), 64);
    raw_host.send(&rig, RAW_HOST, 1, 0, 0, &Body::Connect(early));
    rig.run(US, 10 * US, |_| false);
    assert_eq!((rig.endpoints[1].connections(), raw_host.received()), (0, vec![retry(&rig, early)]));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 100_000)).unwrap();
    assert!(rig.run(US, 10 * MS, |rig| rig.received(1).len() == 1 && rig.delivered(0) == 1));
    assert_eq!(rig.endpoints[0].stats().received[Kind::Retry], 1);
    rig.audit();
}

/// Returns host 1's answer to the Connect of the unknown client.
fn retry(rig: &Rig, connect: Terms) -> Body {
    Body::Retry(Retry { token: with_token(rig, connect).token })
}

/// Each connection carries a message in both directions, and is then closed by either side or
/// aborted.
#[test]
fn thousands_of_connections_leave_no_state() {
    let mut rig = rig();
    for round in 0..3_000 {
        let ours = rig.connect(0, 1);
        rig.endpoints[0].send(ours, content(round, 3_000)).unwrap();
        assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1 && rig.received(1).len() == 1));
        let theirs = rig.accepted(1)[0];
        rig.endpoints[1].send(theirs, content(round, 2_000)).unwrap();
        assert!(rig.run(US, MS, |rig| rig.received(0).len() == 1 && rig.delivered(0) == 1));
        match round % 3 {
            0 => rig.endpoints[0].close(ours),
            1 => rig.endpoints[1].close(theirs),
            _ => rig.endpoints[0].abort(ours),
        }
        assert!(rig.run(US, MS, |rig| rig.endpoints.iter().all(|endpoint| endpoint.connections() == 0)), "{round}");
        rig.events.iter_mut().for_each(Vec::clear);
    }
    for endpoint in &rig.endpoints {
        let machine = &endpoint.machine;
        assert!(machine.half_open.len() <= 2 * 16 && machine.expected.is_empty());
        assert_eq!((machine.next_timer(), machine.shared.events.len()), (Time::NEVER, 0));
    }
    rig.audit();
}

/// Messages scheduled for ten years later are discarded with their connection.
#[test]
fn scheduled_messages_are_discarded_with_their_connection() {
    let mut rig = rig();
    let most = |rig: &Rig| rig.endpoints[0].machine.scheduled_capacity();
    for round in 0..500 {
        let ours = rig.connect(0, 1);
        for number in 0..100 {
            rig.endpoints[0].send_at(ours, content(number, 10), years(10)).unwrap();
        }
        assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
        rig.endpoints[0].abort(ours);
        assert!(rig.run(US, MS, |rig| rig.endpoints.iter().all(|endpoint| endpoint.connections() == 0)), "{round}");
        rig.events.iter_mut().for_each(Vec::clear);
    }
    assert!(most(&rig) <= 2_048, "{}", most(&rig));
    rig.audit();
}

/// A message waits for its scheduled time while others are sent and delivered.
#[test]
fn scheduled_messages_do_not_block_others() {
    let mut rig = rig();
    let ours = rig.connect(0, 1);
    let late = rig.endpoints[0].send_at(ours, content(0, 2_000), Time::ZERO.after(900 * MS)).unwrap();
    for number in 1..3_000 {
        let now = rig.now;
        rig.endpoints[0].send_at(ours, content(number, 100), now).unwrap();
        assert!(rig.run(20 * US, MS, |rig| rig.delivered(0) == 1 && rig.received(1).len() == 1), "{number}");
        assert!(rig.received(1)[0].2 == content(number, 100));
        rig.events.iter_mut().for_each(Vec::clear);
    }
    let index = rig.endpoints[0].machine.table.find(ours).unwrap();
    let connection = rig.endpoints[0].machine.table.slot(index).unwrap();
    assert!(connection.send_buffers.kept() < 200, "{}", connection.send_buffers.kept());
    assert!(rig.run(MS, 1_000 * MS, |rig| rig.delivered(0) == 1));
    let (_, message, data) = rig.received(1).pop().unwrap();
    assert!(message == late && data == content(0, 2_000));
    rig.audit();
}

/// Message numbers have 32 bits. Numbers of sealed frames and of their keys pass 32 bits here too.
//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn the_numbers_of_messages_wrap() {
    for keys in [None, Some(Keys::new(PrivateKey::generate().unwrap(), vec![]))] {
        let rough = Impairments {
            delay_ps: 5 * US,
            jitter_ps: 10 * US,
            loss_ppm: 20_000,
            duplicate_ppm: 20_000,
            ..Impairments::default()
        };
        let mut rig = Rig::with(2, false, rough, |_, config| config.keys.clone_from(&keys));
        let ours = rig.connect(0, 1);
        rig.endpoints[0].send(ours, Bytes::new()).unwrap();
        assert!(rig.run(5 * US, 100 * MS, |rig| rig.accepted(1).len() == 1 && rig.delivered(0) == 1));
        let both = [ours, rig.accepted(1)[0]];
        let first = u32::MAX - 40;
        for (endpoint, id) in rig.endpoints.iter_mut().zip(both) {
            let connection = endpoint.machine.table.slot(id.0 & 15).unwrap();
            connection.send_buffers.start_at(first);
            connection.flow.as_mut().unwrap().receiving.receiver.expect_message(first);
            if let Some(seals) = &mut connection.seals {
                seals.sealer.skip_to((1 << 32) - 150);
                seals.opener.skip_to((1 << 32) - 150);
            }
        }
        rig.events.iter_mut().for_each(Vec::clear);
        for number in 0..100 {
            let now = rig.now;
            for (host, id) in both.into_iter().enumerate() {
                rig.endpoints[host].send_at(id, content(number + host, 10 * number), now).unwrap();
            }
        }
        let all = |rig: &mut Rig| (0..2).all(|host| rig.received(host).len() == 100 && rig.delivered(host) == 100);
        assert!(rig.run(5 * US, 1_000 * MS, all));
        for host in 0..2 {
            let mut received = rig.received(host);
            received.sort_by_key(|(_, message, _)| message.0.wrapping_sub(first));
            for (number, (_, message, data)) in received.into_iter().enumerate() {
                assert_eq!(message.0, first.wrapping_add(number as u32));
                assert!(data == content(number + 1 - host, 10 * number));
            }
            let stats = rig.endpoints[host].stats();
            assert_eq!((stats.forged, stats.invalid, stats.out_of_window), (0, 0, 0));
            assert!(stats.replayed > 0 || keys.is_none());
        }
        rig.endpoints[0].close(ours);
        assert!(rig.run(5 * US, 1000 * MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
        rig.audit();
    }
}

/// At the last representable times nothing more is due, and every call still returns.
//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn every_poll_returns() {
    for end in [Time::NEVER, Time::NEVER.before(Time::STEP_PS), Time::NEVER.before(MS)] {
        let mut rig = rig();
        assert!(rig.endpoints.iter_mut().all(|endpoint| endpoint.poll(Time::ZERO).is_none()));
        let connection = rig.connect(0, 1);
        rig.endpoints[0].send(connection, content(1, 1_000_000)).unwrap();
        assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
        for _ in 0..50 {
            rig.step(end);
        }
        rig.endpoints[0].connect(end, peer(1, false), None).unwrap();
        for _ in 0..50 {
            rig.step(end);
        }
        assert!(rig.endpoints.iter_mut().all(|endpoint| endpoint.poll(end).is_none_or(|next| next >= end)));
    }
}

/// A message without memory, whose bytes are computed.
#[derive(Debug)]
struct Long(u64);

impl Source for Long {
    fn bytes(&self) -> u64 {
        self.0
    }

    fn fill(&self, offset: u64, to: &mut [u8]) {
        to.fill(mark(offset));
        to[..8].copy_from_slice(&offset.to_be_bytes());
    }
}

fn mark(offset: u64) -> u8 {
    (offset >> 32) as u8 ^ (offset >> 7) as u8
}

/// Counts bytes, and checks the content of each piece.
#[derive(Debug, Default)]
struct Count(Arc<AtomicU64>);

impl Sink for Count {
    fn take(&mut self, piece: &Chunk<'_>) {
        assert_eq!(piece.message_bytes, (4 << 30) + 1_000_000);
        let (offset, rest) = piece.payload.split_first_chunk::<8>().unwrap();
        assert_eq!((u64::from_be_bytes(*offset), rest[0]), (piece.offset, mark(piece.offset)));
        self.0.fetch_add(piece.payload.len() as u64, Ordering::Relaxed);
    }
}

/// Only its first frames are sent; they state its length. All of it would be a million frames,
/// which the tests of sender and receiver in `spray-core` cover.
//= docs/specs/endpoint.md#END-12a zero-copy receive
//= docs/specs/endpoint.md#END-12b zero-copy send
#[test]
fn a_message_beyond_4_gib_is_sent() {
    const BYTES: u64 = (4 << 30) + 1_000_000;
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| {
        (config.flow.max_message_bytes, config.flow.max_data_bytes) = (5 << 30, 5 << 30);
    });
    let count = Arc::new(AtomicU64::new(0));
    let receiver = rig.endpoints.pop().unwrap();
    rig.endpoints.push(receiver.with_sink(Box::new(Count(Arc::clone(&count)))));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send_from(connection, Box::new(Long(BYTES))).unwrap();
    assert!(rig.run(US, 100 * MS, |_| count.load(Ordering::Relaxed) > 3_000_000));
    assert!(rig.failed(0).is_empty() && rig.received(1).is_empty() && rig.endpoints[1].stats().invalid == 0);
}
