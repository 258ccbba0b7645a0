//! Emitted frames parse to the values they were emitted from (WIRE-3 to WIRE-8); invalid values are
//! not emitted.

use std::vec;

use proptest::prelude::*;

use super::samples::*;
use crate::*;

fn check(e: &Envelope, c: &Common, body: &Body, payload: &[u8]) {
    let frame = build(e, c, body, payload);
    assert_eq!(frame.len(), body.header_bytes(e.is_v6()) + payload.len());
    let trimmed = body.kind() == Kind::Data && e.dscp == DSCP_TRIMMED && payload.is_empty();
    let expected = Frame { envelope: *e, common: *c, body: *body, payload, trimmed, sealed: false };
    assert_eq!(parse(&frame, Ports::DEFAULT), Ok(Some(expected)));
}

#[test]
fn every_kind_over_both_ip_versions() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            check(&envelope(v6), &common(), &body, &payload);
        }
    }
}

proptest! {
    #[test]
    fn any_frame(e in any_envelope(), c in any_common(), (body, payload) in any_body()) {
        check(&e, &c, &body, &payload);
    }

    #[test]
    fn emitting_in_place_gives_the_same_frame(e in any_envelope(), c in any_common(), (body, payload) in any_body()) {
        let expected = build(&e, &c, &body, &payload);
        let mut out = vec![0x55; expected.len()];
        let at = body.header_bytes(e.is_v6());
        out[at..].copy_from_slice(&payload);
        prop_assert_eq!(emit_in_place(&mut out, &e, &c, &body, payload.len()), Ok(expected.len()));
        prop_assert_eq!(out, expected);
    }

    //= docs/specs/wire.md#WIRE-3 ip headers and lengths
    #[test]
    fn padding_is_ignored(pad in prop::collection::vec(any::<u8>(), 0..64), v6: bool) {
        let frame = data_frame(v6);
        let padded = [frame.clone(), pad].concat();
        prop_assert_eq!(parse(&padded, Ports::DEFAULT), parse(&frame, Ports::DEFAULT));
    }
}

#[test]
fn a_small_buffer_is_refused_at_each_length() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            let needed = body.header_bytes(v6) + payload.len();
            for len in 0..needed {
                let result = emit(&mut vec![0; len], &envelope(v6), &common(), &body, &payload);
                assert_eq!(result, Err(Error::BufferTooSmall), "{:?} in {len}", body.kind());
            }
            assert_eq!(emit(&mut vec![0; needed], &envelope(v6), &common(), &body, &payload), Ok(needed));
        }
    }
}

#[test]
fn impossible_frames_are_refused() {
    let mut out = vec![0; 80_000];
    let mixed = Envelope { dst: envelope(true).dst, ..envelope(false) };
    let data = |payload_bytes| Body::Data(Data { payload_bytes, ..Data::default() });
    let reset = Body::Reset(Reset { reason: 0 });
    let mut refused = |e: &Envelope, body: &Body, payload: &[u8]| emit(&mut out, e, &common(), body, payload);
    assert_eq!(refused(&mixed, &reset, &[]), Err(Error::Family));
    assert_eq!(refused(&envelope(false), &reset, &[0]), Err(Error::Length));
    assert_eq!(refused(&envelope(false), &data(2), &[0]), Err(Error::Length));
    assert_eq!(refused(&envelope(true), &data(65_535), &vec![0; 65_535]), Err(Error::Length));
    assert_eq!(refused(&envelope(true), &data(65_444), &vec![0; 65_444]), Err(Error::Length));
    assert_eq!(refused(&envelope(true), &data(65_443), &vec![0; 65_443]), Ok(126 + 65_443));
}

#[test]
fn the_envelope_reports_hops_and_marks() {
    let e = Envelope { ttl: 61, ecn: Ecn::Ce, ..envelope(false) };
    assert_eq!((e.hops(), e.marked(), e.is_v6()), (3, true, false));
    assert_eq!(Envelope { ttl: 255, ..e }.hops(), 0);
}

/// A parsed frame is on the stack for every packet: it must fit in four cache lines.
#[test]
fn parsed_frames_stay_small() {
    assert!(size_of::<Body>() <= 112, "{}", size_of::<Body>());
    assert!(size_of::<Frame<'_>>() <= 216, "{}", size_of::<Frame<'_>>());
}

proptest! {
    //= docs/specs/wire.md#WIRE-13 evs and ports
    #[test]
    fn evs_and_ports_map_both_ways(evs in 1..=MAX_EVS, ev: u16, port: u16) {
        let ev = Ev::new((u32::from(ev) % evs) as u16);
        prop_assert_ne!(ev.port(evs), EvPort::new(0));
        prop_assert_eq!(ev.port(evs).ev(evs), Some(ev));
        let port = EvPort::new(port);
        match port.ev(evs) {
            Some(ev) => prop_assert_eq!(ev.port(evs), port),
            None => prop_assert!((0..evs).all(|index| Ev::new(index as u16).port(evs) != port)),
        }
    }
}

#[test]
fn ev_bases() {
    let port = |index, evs| Ev::new(index).port(evs).number();
    assert_eq!((port(0, 16_384), port(16_383, 16_384)), (49_152, 65_535));
    assert_eq!((port(0, 16_385), port(65_534, MAX_EVS)), (1, 65_535));
    let index = |port, evs| EvPort::new(port).ev(evs).map(Ev::index);
    assert_eq!((index(49_151, 256), index(49_152, 256), index(49_408, 256)), (None, Some(0), None));
    assert_eq!((index(0, MAX_EVS), index(1, MAX_EVS)), (None, Some(0)));
}
