//! The edges of numbers: the end of the clock, and messages beyond 4 GiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_core::cc::CcKind;
use spray_core::host::CLOCK_END_PS;

use super::*;

fn rig() -> Rig {
    Rig::with(2, false, Impairments::delay(US), |_, config| config.flow.cc = CcKind::Eqds.into())
}

/// Polls both until nothing is left that goes at once.
fn settle(rig: &mut Rig, now: Time) {
    for _ in 0..50 {
        for (host, endpoint) in rig.endpoints.iter_mut().enumerate() {
            endpoint.poll(now);
            rig.events[host].extend(std::iter::from_fn(|| endpoint.poll_event()));
        }
    }
}

//= docs/specs/endpoint.md#END-36 the end of the clock
#[test]
fn every_poll_returns_and_connections_fail() {
    for end in [u64::MAX, u64::MAX - 1, CLOCK_END_PS] {
        let mut rig = rig();
        assert!(rig.endpoints.iter_mut().all(|endpoint| endpoint.poll(0).is_none()));
        let connection = rig.connect(0, 1);
        rig.endpoints[0].send(connection, content(1, 1_000_000)).unwrap();
        assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
        settle(&mut rig, end);
        assert_eq!(
            (rig.failed(0), rig.failed(1)),
            (vec![ConnectionError::ClockEnded], vec![ConnectionError::ClockEnded])
        );
        // A new one fails too.
        rig.endpoints[0].connect(end, peer(1, false), None).unwrap();
        settle(&mut rig, end);
        assert_eq!(rig.failed(0), [ConnectionError::ClockEnded; 2]);
        assert!(rig.endpoints.iter().all(|endpoint| endpoint.connections() == 0));
        assert!(rig.endpoints.iter().all(Endpoint::can_restart_clock));
    }
}

//= docs/specs/endpoint.md#END-37 a clock that begins again
#[test]
fn a_clock_that_begins_again_serves_new_connections() {
    let mut rig = rig();
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 100_000)).unwrap();
    assert!(rig.run(US, 100 * MS, |rig| rig.received(1).len() == 1 && rig.delivered(0) == 1));
    rig.endpoints.iter_mut().for_each(Endpoint::restart_clock);
    assert!(rig.endpoints[0].polled_at > 0, "a connection exists");
    settle(&mut rig, u64::MAX);
    rig.endpoints.iter_mut().for_each(Endpoint::restart_clock);
    // What was under way is no longer known; the network's own clock goes on.
    for step in 0..1_000 {
        let now = step * US;
        rig.network.advance(rig.now + now);
        if step == 10 {
            let again = rig.endpoints[0].connect(now, peer(1, false), None).unwrap();
            rig.endpoints[0].send(again, content(2, 100_000)).unwrap();
        }
        for (host, endpoint) in rig.endpoints.iter_mut().enumerate() {
            endpoint.poll(now);
            rig.events[host].extend(std::iter::from_fn(|| endpoint.poll_event()));
        }
    }
    assert_eq!((rig.received(1).len(), rig.delivered(0)), (2, 2), "{:?}", rig.endpoints[1].stats());
}

/// A message that is nowhere in memory.
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

/// Counts bytes, and checks that each piece is what belongs to its place.
#[derive(Debug, Default)]
struct Count(Arc<AtomicU64>);

impl Sink for Count {
    fn take(&mut self, piece: &Lent<'_>) {
        assert_eq!(piece.message_bytes, (4 << 30) + 1_000_000);
        let (offset, rest) = piece.payload.split_first_chunk::<8>().unwrap();
        assert_eq!((u64::from_be_bytes(*offset), rest[0]), (piece.offset, mark(piece.offset)));
        self.0.fetch_add(piece.payload.len() as u64, Ordering::Relaxed);
    }
}

/// Its first frames go and arrive, and say how long it is. All of it would be a million frames: the sender's and the receiver's test in
/// `spray-core` goes to the end.
//= docs/specs/endpoint.md#END-12a Lent frames
//= docs/specs/endpoint.md#END-12b Filled frames
#[test]
fn a_message_of_more_than_4_gib_is_on_its_way() {
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
