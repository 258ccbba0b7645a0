//! Emulated hosts are exact: what happens does not depend on when the machine gets round to it.

use std::sync::{Arc, Mutex};

use super::*;
use spray_core::link::serialisation_ceil_ps;

/// Lets two hosts connect, then sends `bytes` at `start_ps`; returns the events of both.
fn transfer(bytes: usize, start_ps: u64, tick_ps: u64, physical: Impairments) -> Vec<Vec<EndpointEvent>> {
    let mut rig = Rig::new(2, false, EMULATED, physical);
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send_at(connection, content(1, bytes), start_ps).unwrap();
    assert!(rig.run(tick_ps, 500 * MS, |rig| rig.delivered(0) == 1 && rig.received(1).len() == 1));
    assert!(rig.received(1)[0].2 == content(1, bytes));
    assert_eq!(rig.endpoints[0].stats().late + rig.endpoints[1].stats().late, 0);
    let events = rig.events.clone();
    rig.audit();
    events
}

fn received_ps(events: &[EndpointEvent]) -> (u64, u64) {
    let pick = |event: &EndpointEvent| match event {
        EndpointEvent::Received { started_ps, completed_ps, .. } => Some((*started_ps, *completed_ps)),
        _ => None,
    };
    events.iter().find_map(pick).unwrap()
}

fn delivered_ps(events: &[EndpointEvent]) -> (u64, u64) {
    let pick = |event: &EndpointEvent| match event {
        EndpointEvent::Delivered { started_ps, at_ps, .. } => Some((*started_ps, *at_ps)),
        _ => None,
    };
    events.iter().find_map(pick).unwrap()
}

//= docs/specs/endpoint.md#END-13 order of events
//= docs/specs/endpoint.md#END-14 the host's link
#[test]
fn a_flow_takes_as_long_as_its_formula_says() {
    // Within one window nothing but the link and its latency matters.
    let (packets, start_ps) = (12, 100 * US);
    let events = transfer(packets * PAYLOAD as usize, start_ps, US, Impairments::default());
    let header = header_bytes(false, Kind::Data) as u64;
    let data_ps = packets as u64 * serialisation_ceil_ps(u64::from(PAYLOAD) + header, LINK_BPS);
    assert_eq!(received_ps(&events[1]), (start_ps, start_ps + data_ps + US));
    let ack_ps = serialisation_ceil_ps(header_bytes(false, Kind::Ack) as u64, LINK_BPS);
    assert_eq!(delivered_ps(&events[0]), (start_ps, start_ps + data_ps + US + ack_ps + US));
}

//= docs/specs/endpoint.md#END-14 the host's link
#[test]
fn a_round_trip_adds_up() {
    let fabric = Impairments { virtual_latency_ps: 7 * US, ..Impairments::default() };
    let delivered = transfer(500, 50 * US, US, fabric);
    let data_ps = serialisation_ceil_ps(500 + header_bytes(false, Kind::Data) as u64, LINK_BPS);
    let ack_ps = serialisation_ceil_ps(header_bytes(false, Kind::Ack) as u64, LINK_BPS);
    assert_eq!(delivered_ps(&delivered[0]), (50 * US, 50 * US + data_ps + 8 * US + ack_ps + 8 * US));
}

//= docs/specs/endpoint.md#END-16 repeatable to the picosecond
#[test]
fn late_polls_and_slow_frames_change_nothing() {
    // A frame has 4 us of virtual time to get from host to host: polls and real delays together stay below. Losses hit the same
    // frames in every run, as long as the frames are the same.
    let fabric = |delay_ps, jitter_ps| Impairments {
        virtual_latency_ps: 3 * US,
        loss_ppm: 30_000,
        delay_ps,
        jitter_ps,
        ..Impairments::default()
    };
    let exact = transfer(400_000, 50 * US, 100_000, fabric(0, 0));
    assert_eq!(exact, transfer(400_000, 50 * US, 3 * US, fabric(0, 0)));
    assert_eq!(exact, transfer(400_000, 50 * US, US, fabric(2 * US, 0)));
    let lossless = |jitter_ps| Impairments { loss_ppm: 0, ..fabric(US, jitter_ps) };
    let exact = transfer(400_000, 50 * US, 100_000, lossless(0));
    assert_eq!(exact, transfer(400_000, 50 * US, US, lossless(US)), "overtaking on the way does not show");
}

#[test]
fn one_seed_is_one_run() {
    let lossy = Impairments { loss_ppm: 50_000, jitter_ps: 300_000, ..Impairments::default() };
    assert_eq!(transfer(100_000, 0, 200_000, lossy), transfer(100_000, 0, 200_000, lossy));
}

//= docs/specs/endpoint.md#END-16 repeatable to the picosecond
#[test]
fn late_frames_are_handled_at_once_and_counted() {
    let mut rig = Rig::new(2, false, EMULATED, Impairments::delay(20 * US));
    let connection = rig.connect(0, 1);
    rig.endpoints[0].send(connection, content(1, 300_000)).unwrap();
    assert!(rig.run(US, 500 * MS, |rig| rig.delivered(0) == 1));
    let (stats, lateness) = (rig.endpoints[0].stats(), rig.endpoints[0].lateness().clone());
    assert!(stats.overdue >= stats.late && stats.overdue > 0);
    assert_eq!(lateness.late_frames(), stats.late);
    rig.audit();
}

/// A port that sends one frame after another, loses some, and remembers the times at which frames came.
#[derive(Debug, Default)]
struct Port {
    came_ps: Vec<u64>,
    busy_until_ps: u64,
}

#[derive(Debug)]
struct Shared(Arc<Mutex<Port>>);

const PORT_LATENCY_PS: u64 = 2 * US;
const PORT_FRAME_PS: u64 = 300_000;

impl LastPort for Shared {
    fn latency_ps(&self) -> u64 {
        PORT_LATENCY_PS
    }

    fn play(&mut self, frame: &mut [u8]) -> Option<(u64, u32)> {
        let mut port = self.0.lock().unwrap();
        let time_ps = spray_wire::peek_virtual_time(frame).unwrap();
        port.came_ps.push(time_ps);
        port.busy_until_ps = port.busy_until_ps.max(time_ps) + PORT_FRAME_PS;
        let kept = !port.came_ps.len().is_multiple_of(20);
        kept.then_some((port.busy_until_ps + PORT_LATENCY_PS, frame.len() as u32))
    }
}

/// Two hosts send to a third that plays its port; returns its events and the times at which frames came to the port.
fn incast(tick_ps: u64, physical: Impairments) -> (Vec<EndpointEvent>, Vec<u64>) {
    let mut rig = Rig::new(3, false, EMULATED, physical);
    let port = Arc::new(Mutex::new(Port::default()));
    let last = rig.endpoints.pop().unwrap();
    rig.endpoints.push(last.with_port(Box::new(Shared(Arc::clone(&port)))));
    for from in 0..2 {
        // Never at one time: frames of one time go by the order in which they were received.
        let apart_ps = 1_003 * from as u64;
        let connection = rig.endpoints[from].connect(apart_ps, peer(2, false), None).unwrap();
        rig.endpoints[from].send_at(connection, content(from, 100_000), 50 * US + apart_ps).unwrap();
    }
    assert!(rig.run(tick_ps, 500 * MS, |rig| rig.delivered(0) + rig.delivered(1) == 2 && rig.received(2).len() == 2));
    assert_eq!(rig.endpoints.iter().map(|endpoint| endpoint.stats().late).sum::<u64>(), 0);
    let events = rig.events[2].clone();
    rig.audit();
    let came_ps = std::mem::take(&mut port.lock().unwrap().came_ps);
    (events, came_ps)
}

//= docs/specs/endpoint.md#END-16a a port that the host plays
#[test]
fn frames_come_to_the_hosts_port_in_the_order_of_their_times() {
    let fabric = |jitter_ps| Impairments { virtual_latency_ps: US, jitter_ps, ..Impairments::default() };
    let (events, came_ps) = incast(100_000, fabric(0));
    assert!(came_ps.len() > 200 && came_ps.is_sorted(), "{came_ps:?}");
    // What overtakes on the way, and how late hosts are polled, changes nothing.
    let again = incast(500_000, fabric(US));
    assert!((&events, &came_ps) == (&again.0, &again.1));
}

//= docs/specs/endpoint.md#END-15 choosing late
#[test]
fn the_link_is_shared_round_robin_and_never_overrun() {
    let mut rig = Rig::new(5, false, EMULATED, Impairments::default());
    for to in 1..5 {
        let connection = rig.connect(0, to);
        rig.endpoints[0].send_at(connection, content(to, 50_000), 100 * US).unwrap();
    }
    assert!(rig.run(US, 100 * MS, |rig| rig.delivered(0) == 4));
    let packet_ps = serialisation_ceil_ps(1000 + header_bytes(false, Kind::Data) as u64, LINK_BPS);
    let mut ends: Vec<u64> = (1..5).map(|host| received_ps(&rig.events[host]).1).collect();
    ends.sort_unstable();
    let last = 100 * US + 200 * packet_ps + US;
    assert!(ends[3] >= last, "faster than the link: {ends:?} < {last}");
    assert!(ends[3] < last + 20 * US, "the link was idle: {ends:?} > {last}");
    assert!(ends[3] - ends[0] <= 40 * packet_ps, "one flow waited for another: {ends:?}");
    rig.audit();
}
