//! Frames in and out of order compared with literal queues, and the changes made to frames.

use super::*;
use crate::config::{HOST, Thresholds};
use crate::link::{LinkChange, LinkState};
use crate::shim::SHIM_BYTES;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use spray_wire::{Ack, Body, Common, DSCP_CONTROL, DSCP_DATA, Data, Ecn, Envelope, EvPort, emit};
use std::vec::Vec;
use std::{assert_eq, vec};

const RATE_BPS: u64 = 100_000_000_000;
const PS_PER_BYTE: u64 = 80;
const LATENCY_PS: u64 = 1_000_000;
const START_PS: u64 = 1_000_000_000;
const LIMITS: Thresholds = Thresholds {
    limit_bytes: 20_000,
    mark_min_bytes: 6_000,
    mark_max_bytes: 6_001,
    control_limit_bytes: 20_000,
    trim: true,
    ..Thresholds::NONE
};

fn config(thresholds: &Thresholds) -> PortConfig {
    PortConfig::new(RATE_BPS, LATENCY_PS, thresholds, HOST, 3_114)
}

fn port(thresholds: &Thresholds) -> LastPort {
    LastPort::new(3, 7, config(thresholds))
}

/// A frame; an ACK if the payload is `None`.
#[derive(Clone, Copy)]
struct Spec {
    v6: bool,
    ecn: Ecn,
    ttl: u8,
    time_ps: u64,
    payload: Option<u16>,
}

const DATA: Spec = Spec { v6: false, ecn: Ecn::Ect0, ttl: 62, time_ps: START_PS, payload: Some(3_000) };
const ACK: Spec = Spec { ecn: Ecn::NotEct, payload: None, ..DATA };

impl Spec {
    fn frame(&self) -> Vec<u8> {
        let address = |host: u8| match self.v6 {
            true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into())),
            false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
        };
        let envelope = Envelope {
            src_mac: [2; 6],
            dst_mac: [4; 6],
            src: address(1),
            dst: address(2),
            src_port: EvPort::new(50_000),
            dst_port: Ports::DEFAULT.first(),
            dscp: if self.payload.is_some() { DSCP_DATA } else { DSCP_CONTROL },
            ecn: self.ecn,
            ttl: self.ttl,
        };
        let body = match self.payload {
            None => Body::Ack(Ack { port: EvPort::new(50_000), packets: 1, ..Ack::default() }),
            Some(payload_bytes) => {
                Body::Data(Data { message_bytes: payload_bytes.into(), payload_bytes, ..Data::default() })
            }
        };
        let mut out = vec![0; 4_096];
        let payload = vec![5; self.payload.unwrap_or(0).into()];
        let len = emit(&mut out, &envelope, &Common::default(), &body, &payload).expect("a frame that fits");
        out.truncate(len);
        [&Shim { virtual_time_ps: self.time_ps, ..Shim::default() }.before(&out), &*out].concat()
    }

    /// Returns the bytes of the frame on a link.
    fn len(&self) -> u64 {
        (self.frame().len() - SHIM_BYTES) as u64
    }

    /// Returns the serialisation time of the frame plus the latency of the cable.
    fn way_ps(&self) -> u64 {
        self.len() * PS_PER_BYTE + LATENCY_PS
    }
}

/// Returns the virtual time of a frame.
fn time_ps(frame: &[u8]) -> u64 {
    Shim::read(frame.first_chunk().unwrap()).expect("a shim").virtual_time_ps
}

/// Passes a frame through the port; returns it as it reaches the host.
fn deliver(port: &LastPort, spec: &Spec) -> Result<Vec<u8>, Cause> {
    let mut frame = spec.frame();
    let Delivery { due_ps, len } = port.deliver(frame.as_mut_slice(), |_| {})?;
    frame.truncate(len as usize);
    assert_eq!(time_ps(&frame), due_ps);
    Ok(frame)
}

#[test]
fn an_idle_port_takes_the_time_of_the_frame_and_of_the_cable() {
    for spec in [DATA, ACK, Spec { v6: true, ..DATA }, Spec { v6: true, ..ACK }] {
        let after = Spec { ttl: spec.ttl - 1, time_ps: spec.time_ps + spec.way_ps(), ..spec };
        assert_eq!(deliver(&port(&LIMITS), &spec), Ok(after.frame()));
    }
}

#[test]
fn frames_are_marked_trimmed_and_dropped_as_at_a_switch() {
    for v6 in [false, true] {
        let data = Spec { v6, ..DATA };
        let (port, len) = (port(&LIMITS), data.len());
        for ahead in 0..6 {
            let time_ps = START_PS + data.way_ps() + ahead * len * PS_PER_BYTE;
            let ecn = if ahead >= 2 { Ecn::Ce } else { Ecn::Ect0 };
            assert_eq!(deliver(&port, &data), Ok(Spec { ecn, ttl: 61, time_ps, ..data }.frame()), "behind {ahead}");
        }
        let mut cut = Spec { ttl: 61, ..data }.frame();
        let (shim, frame) = cut.split_first_chunk_mut().unwrap();
        let bytes = switch_view::trim(frame, Ports::DEFAULT).expect("a data frame");
        let virtual_time_ps = START_PS + bytes as u64 * PS_PER_BYTE + LATENCY_PS;
        Shim { virtual_time_ps, ..Shim::default() }.write(shim);
        assert_eq!(deliver(&port, &data), Ok(cut[..SHIM_BYTES + bytes].to_vec()), "control frames have priority");
        let counters = port.counters();
        assert_eq!((counters.frames, counters.marks, counters.trims, counters.control_frames), (7, 4, 1, 1));
    }
    let no_trim = port(&Thresholds { trim: false, ..LIMITS });
    let errors: Vec<_> = (0..8).map(|_| deliver(&no_trim, &DATA).err()).collect();
    assert_eq!(errors[5..], [None, Some(Cause::Queue), Some(Cause::Queue)]);
    assert_eq!(deliver(&no_trim, &Spec { ttl: 1, ..ACK }), Err(Cause::Ttl));
    assert_eq!((no_trim.counters().drops_queue, no_trim.counters().drops_ttl), (2, 1));
}

#[test]
fn a_last_port_may_trim_with_a_separate_dscp() {
    //= docs/specs/switch.md#SW-21 two DSCPs of trimmed frames
    for v6 in [false, true] {
        let port = port(&Thresholds { trim_tells_last: true, ..LIMITS });
        let spec = Spec { v6, ..DATA };
        let frames: Vec<_> = (0..8).map(|_| deliver(&port, &spec).unwrap()).collect();
        let trimmed = |frame: &Vec<u8>| {
            spray_wire::parse(&frame[SHIM_BYTES..], Ports::DEFAULT).unwrap().unwrap().is_trimmed_last()
        };
        assert_eq!(frames.iter().filter(|frame| trimmed(frame)).count() as u64, port.counters().trims);
        assert!(port.counters().trims > 0);
        // Such a header is in the control class, and is not trimmed again.
        let header = frames.iter().find(|frame| trimmed(frame)).unwrap();
        let parsed = switch_view::parse(&header[SHIM_BYTES..], Ports::DEFAULT);
        let Parsed::Ours(headers) = parsed else { panic!("a frame of ours") };
        let frame = Frame::new(&headers, Shim::default(), || 0);
        assert!(frame.control && !frame.is_trimmable());
    }
}

#[test]
fn links_change_with_the_time_of_frames() {
    let at = |after_ps: u64, state| LinkChange { at_ps: START_PS + after_ps, state };
    let mut config = config(&LIMITS);
    config.push(RATE_BPS, &at(100_000, LinkState { rate_ppm: 500_000, ..LinkState::UP }));
    config.push(RATE_BPS, &at(10_000_000, LinkState { silent_drop: true, ..LinkState::UP }));
    let port: LastPort = LastPort::new(3, 7, config);
    let len = DATA.len();
    let due_ps = |time_ps| {
        let frame = deliver(&port, &Spec { time_ps, ..DATA });
        frame.map(|frame| self::time_ps(&frame))
    };
    assert_eq!(due_ps(START_PS), Ok(START_PS + len * PS_PER_BYTE + LATENCY_PS));
    // From the change on, the rest of the first frame and the second frame leave at half the rate.
    let left_ps = START_PS + 100_000 + 2 * (len * PS_PER_BYTE - 100_000);
    let second = due_ps(START_PS + 200_000).expect("a link that is up");
    assert!(second.abs_diff(left_ps + 2 * len * PS_PER_BYTE + LATENCY_PS) <= 2, "{second}");
    assert_eq!(due_ps(START_PS + 10_000_000), Err(Cause::Silent));
    assert_eq!(port.counters().last_link_drop_ps, START_PS + 10_000_000);
}

#[test]
fn other_frames_are_passed_to_the_host_unchanged() {
    let port = port(&LIMITS);
    for damage in [
        |frame: &mut Vec<u8>| frame[SHIM_BYTES + 13] = 6,
        |frame: &mut Vec<u8>| frame[13] = 6,
        |frame: &mut Vec<u8>| frame[SHIM_BYTES + 39] ^= 1,
        |frame: &mut Vec<u8>| frame.truncate(SHIM_BYTES + 60),
        |frame: &mut Vec<u8>| frame.truncate(20),
    ] {
        let mut frame = DATA.frame();
        damage(&mut frame);
        let before = frame.clone();
        assert_eq!(port.deliver(frame.as_mut_slice(), |_| {}), Ok(Delivery { due_ps: 0, len: before.len() as u32 }));
        assert_eq!(frame, before);
    }
    assert_eq!(port.counters(), PortCounters::default());
}

#[test]
fn the_queue_as_read_is_one_latency_behind_the_host() {
    let (port, len) = (port(&LIMITS), DATA.len());
    for _ in 0..3 {
        deliver(&port, &DATA).expect("room");
    }
    deliver(&port, &ACK).expect("room");
    let both = 3 * len + ACK.len();
    let sent = (1_000_000 / PS_PER_BYTE).min(both);
    for (now_ps, waiting) in
        [(0, both), (LATENCY_PS, both), (LATENCY_PS + 100_000, both - 1_250), (LATENCY_PS + 1_000_000, both - sent)]
    {
        let [total, control] = port.queue_bytes(START_PS + now_ps);
        assert!(total.abs_diff(waiting) <= 1 && control <= ACK.len(), "{now_ps}: {total}, {control}");
    }
}

/// A literal queue of one class, without a limit.
#[derive(Default)]
struct LiteralQueue {
    busy_until_ps: u64,
}

impl LiteralQueue {
    fn admit(&mut self, at_ps: u64, bytes: u64) -> u64 {
        self.busy_until_ps = self.busy_until_ps.max(at_ps) + bytes * PS_PER_BYTE;
        self.busy_until_ps
    }
}

proptest! {
    /// A late frame is treated as arriving at the newest frame's time, is counted, and does not
    /// delay earlier frames.
    //= docs/specs/virtual-queue.md#VQ-14 late at the last port
    #[test]
    fn disordered_frames_are_processed_in_order_of_arrival(
        arrivals in prop::collection::vec((0u64..400_000, 0u64..1_500_000, prop::option::of(0u16..3_000)), 1..300),
    ) {
        let open = Thresholds {
            limit_bytes: 8_000_000,
            mark_min_bytes: 8_000_000,
            mark_max_bytes: 8_000_000,
            control_limit_bytes: 8_000_000,
            ..Thresholds::NONE
        };
        let port = port(&open);
        let (mut total, mut control) = (LiteralQueue::default(), LiteralQueue::default());
        let (mut clock_ps, mut newest_ps, mut late) = (START_PS + 2_000_000, 0, 0);
        let mut left_ps = [0; 2];
        for (gap_ps, early_ps, payload) in arrivals {
            clock_ps += gap_ps;
            let spec = Spec { time_ps: clock_ps - early_ps, payload, ..DATA };
            let frame = deliver(&port, &spec).expect("room");
            let bytes = (frame.len() - SHIM_BYTES) as u64;
            late += u64::from(spec.time_ps + Time::STEP_PS < newest_ps);
            newest_ps = newest_ps.max(spec.time_ps);
            let of_all_ps = total.admit(newest_ps, bytes);
            let expected_ps = if payload.is_some() { of_all_ps } else { control.admit(newest_ps, bytes) };
            let due_ps = time_ps(&frame);
            prop_assert!(due_ps.abs_diff(expected_ps + LATENCY_PS) <= 300, "{due_ps} for {expected_ps}");
            prop_assert!(due_ps >= spec.time_ps + LATENCY_PS);
            let class = usize::from(payload.is_some());
            prop_assert!(due_ps > left_ps[class], "in order within a class");
            left_ps[class] = due_ps;
        }
        prop_assert_eq!(port.counters().stale, late);
    }
}
