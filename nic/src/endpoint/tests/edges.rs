//! The edges of numbers: the end of the clock, and messages beyond 4 GiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_core::cc::CcKind;
use spray_core::host::CLOCK_END_PS;

use super::*;

fn rig(mode: Mode) -> Rig {
    Rig::with(2, false, mode, Impairments::delay(US), |_, config| config.flow.cc.control = CcKind::Eqds.into())
}

/// Polls both until nothing is left that goes at once.
fn settle(rig: &mut Rig, now_ps: u64) {
    for _ in 0..50 {
        for (host, endpoint) in rig.endpoints.iter_mut().enumerate() {
            endpoint.poll(now_ps);
            rig.events[host].extend(std::iter::from_fn(|| endpoint.poll_event()));
        }
    }
}

//= docs/specs/endpoint.md#END-30 the end of the clock
#[test]
fn every_poll_returns_and_connections_fail() {
    for (mode, end_ps) in
        [u64::MAX, u64::MAX - 1, CLOCK_END_PS].into_iter().flat_map(|end_ps| [(Mode::Real, end_ps), (EMULATED, end_ps)])
    {
        let mut rig = rig(mode);
        assert!(rig.endpoints.iter_mut().all(|endpoint| endpoint.poll(0).is_none()));
        let connection = rig.connect(0, 1);
        rig.endpoints[0].send(connection, content(1, 1_000_000)).unwrap();
        assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
        settle(&mut rig, end_ps);
        assert_eq!(
            (rig.failed(0), rig.failed(1)),
            (vec![ConnectionError::ClockEnded], vec![ConnectionError::ClockEnded])
        );
        // A new one fails too.
        rig.endpoints[0].connect(end_ps, peer(1, false), None).unwrap();
        settle(&mut rig, end_ps);
        assert_eq!(rig.failed(0), [ConnectionError::ClockEnded; 2]);
        assert!(rig.endpoints.iter().all(|endpoint| endpoint.connections() == 0));
        let restarts = mode == Mode::Real;
        assert!(rig.endpoints.iter().all(|endpoint| endpoint.can_restart_clock() == restarts));
    }
}

//= docs/specs/endpoint.md#END-31 a clock that begins again
#[test]
fn a_clock_that_begins_again_serves_new_connections() {
    let mut rig = rig(Mode::Real);
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 100_000)).unwrap();
    assert!(rig.run(US, 100 * MS, |rig| rig.received(1).len() == 1 && rig.delivered(0) == 1));
    rig.endpoints.iter_mut().for_each(Endpoint::restart_clock);
    assert!(rig.endpoints[0].polled_ps > 0, "a connection exists");
    settle(&mut rig, u64::MAX);
    rig.endpoints.iter_mut().for_each(Endpoint::restart_clock);
    // What was under way is no longer known; the network's own clock goes on.
    for step in 0..1_000 {
        let now_ps = step * US;
        rig.network.advance(rig.now_ps + now_ps);
        if step == 10 {
            let again = rig.endpoints[0].connect(now_ps, peer(1, false), None).unwrap();
            rig.endpoints[0].send(again, content(2, 100_000)).unwrap();
        }
        for (host, endpoint) in rig.endpoints.iter_mut().enumerate() {
            endpoint.poll(now_ps);
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
        let (offset, rest) = piece.payload.split_first_chunk::<8>().unwrap();
        assert_eq!((u64::from_be_bytes(*offset), rest[0]), (piece.offset, mark(piece.offset)));
        self.0.fetch_add(piece.payload.len() as u64, Ordering::Relaxed);
    }
}

//= docs/specs/endpoint.md#END-12a Lent frames
//= docs/specs/endpoint.md#END-12b Filled frames
#[test]
fn a_message_of_more_than_4_gib_arrives() {
    const BYTES: u64 = (4 << 30) + 1_000_000;
    const PAYLOAD: u32 = 60_000;
    let network = MemoryNetwork::new(MemoryConfig {
        frame_size: 1 << 16,
        impairments: Impairments::delay(US),
        ..MemoryConfig::default()
    });
    let count = Arc::new(AtomicU64::new(0));
    let mut endpoints: Vec<_> = (0..2)
        .map(|host| {
            let mut config = config(host, false, Mode::Real);
            let flow = &mut config.flow;
            (flow.payload_bytes, flow.max_message_bytes, flow.max_data_bytes) = (PAYLOAD, 5 << 30, 5 << 30);
            flow.cc.initial_window_bytes = 64 * u64::from(PAYLOAD);
            flow.cc.max_window_bytes = 64 * u64::from(PAYLOAD);
            let endpoint = Endpoint::new(network.attach(mac(host)), config).unwrap();
            endpoint.with_sink(Box::new(Count(Arc::clone(&count))))
        })
        .collect();
    let connection = endpoints[0].connect(0, peer(1, false), None).unwrap();
    endpoints[0].send_from(connection, Box::new(Long(BYTES))).unwrap();
    let (mut now_ps, mut delivered) = (0, false);
    while !delivered {
        now_ps += US;
        assert!(now_ps < 1_000 * MS, "{:?}", endpoints[0].connection_stats(connection));
        network.advance(now_ps);
        for endpoint in &mut endpoints {
            endpoint.poll(now_ps);
            while let Some(event) = endpoint.poll_event() {
                assert!(!matches!(event, EndpointEvent::Failed { .. }), "{event:?}");
                delivered |= matches!(event, EndpointEvent::Delivered { .. });
            }
        }
    }
    assert_eq!(count.load(Ordering::Relaxed), BYTES);
}
