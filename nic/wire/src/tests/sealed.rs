//! Sealed frames: placement and coverage of the tags (WIRE-18), with a fake cipher instead of that
//! of `nic/src/endpoint/seal`.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::samples::*;
use crate::offsets::{trimmed_len, udp_payload_offset};
use crate::switch_view::trim;
use crate::*;

/// A fake cipher: tags are checksums, and encryption flips every bit of the payload.
struct Toy;

impl Toy {
    fn tag(parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        let [a, b, c, d] = xxh3(&parts.concat()).to_be_bytes();
        core::array::from_fn(|at| [a, b, c, d][at % 4] ^ at as u8)
    }
}

impl Seal for Toy {
    fn header(&self, covered: &[u8]) -> [u8; TAG_BYTES] {
        Self::tag(&[b"header", covered])
    }

    fn payload(&self, covered: &[u8], payload: &mut [u8]) -> [u8; TAG_BYTES] {
        payload.iter_mut().for_each(|byte| *byte = !*byte);
        Self::tag(&[b"payload", covered, payload])
    }
}

fn opened(sealed: Sealed<'_>) -> bool {
    let Some(payload) = sealed.payload else { return sealed.header_tag == Toy.header(sealed.covered) };
    let (text, tag) = payload.split_last_chunk_mut::<TAG_BYTES>().unwrap();
    let right = *tag == Toy::tag(&[b"payload", sealed.covered, text]);
    text.iter_mut().for_each(|byte| *byte = !*byte);
    right
}

fn seal(e: &Envelope, c: &Common, body: &Body, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xee; 70_000];
    let at = body.header_bytes(e.is_v6()) + SEAL_BYTES;
    out[at..at + payload.len()].copy_from_slice(payload);
    let len = emit_sealed(&mut out, e, c, body, payload.len(), &Toy).unwrap();
    out.truncate(len);
    out
}

proptest! {
    //= docs/specs/wire.md#WIRE-18 sealed frames
    #[test]
    fn any_frame_opens_to_itself(e in any_envelope(), c in any_common(), (body, payload) in any_body()) {
        let mut frame = seal(&e, &c, &body, &payload);
        let tag = if body.kind() == Kind::Data { TAG_BYTES } else { 0 };
        prop_assert_eq!(frame.len(), body.header_bytes(e.is_v6()) + SEAL_BYTES + payload.len() + tag);
        prop_assert_eq!(parse(&frame, Ports::DEFAULT), Err(Error::Sealed));
        let expected = Frame { envelope: e, common: c, body, payload: &payload, trimmed: false, sealed: true };
        prop_assert_eq!(open(&mut frame, Ports::DEFAULT, opened), Ok(Some(expected)));
    }

    //= docs/specs/wire.md#WIRE-15 trimming
    #[test]
    fn a_trimmed_header_is_authenticated_alone(e in any_envelope(), c in any_common()) {
        let (body, payload) = bodies().swap_remove(0);
        let mut frame = seal(&e, &c, &body, &payload);
        let len = trim(&mut frame, Ports::DEFAULT).unwrap();
        prop_assert_eq!(len, trimmed_len(e.is_v6()) + SEAL_BYTES);
        frame.truncate(len);
        let envelope = Envelope { dscp: DSCP_TRIMMED, ..e };
        let expected =
            Frame { envelope, common: c, body, payload: &[], trimmed: true, sealed: true };
        prop_assert_eq!(trim(&mut frame, Ports::DEFAULT), None);
        let mut copy = frame.clone();
        prop_assert_eq!(open(&mut copy, Ports::DEFAULT, opened), Ok(Some(expected)));
        frame[udp_payload_offset(e.is_v6()) + 30] ^= 1;
        prop_assert!(open(&mut frame, Ports::DEFAULT, opened).is_err());
    }
}

/// Any change of addresses, ports, header, payload or tags is detected by the tags alone.
#[test]
fn every_flipped_bit_is_detected() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            let frame = seal(&envelope(v6), &common(), &body, &payload);
            let ours = udp_payload_offset(v6);
            for bit in ours * 8..frame.len() * 8 {
                let mut frame = frame.clone();
                frame[bit / 8] ^= 1 << (bit % 8);
                let at = bit / 8 - ours;
                // The payload tag of a whole data frame covers the header too.
                let own_tag = (16..20).contains(&at) || (64..64 + SEAL_BYTES).contains(&at);
                let free = body.kind() == Kind::Data && own_tag;
                let result = open(&mut frame, Ports::DEFAULT, opened);
                // Over IPv6 the UDP checksum detects every flipped bit.
                assert_eq!(result.is_ok(), free && !v6, "{:?} byte {at}", body.kind());
            }
        }
    }
}

#[test]
fn truncated_sealed_frames_are_refused() {
    for v6 in [false, true] {
        for (body, payload) in bodies() {
            let frame = seal(&envelope(v6), &common(), &body, &payload);
            for len in 0..frame.len() {
                assert!(
                    !matches!(open(&mut frame[..len].to_vec(), Ports::DEFAULT, opened), Ok(Some(_))),
                    "{:?} {len}",
                    body.kind()
                );
                let mut small = vec![0; len];
                let emitted = emit_sealed(&mut small, &envelope(v6), &common(), &body, payload.len(), &Toy);
                assert_eq!(emitted, Err(Error::BufferTooSmall), "{:?} {len}", body.kind());
            }
        }
    }
}

#[test]
fn a_plain_frame_does_not_open() {
    for frame in frames() {
        assert_eq!(open(&mut frame.clone(), Ports::DEFAULT, |_| true), Err(Error::Version));
    }
}

#[test]
fn the_key_exchange_message_follows_the_terms() {
    let message = [7; 96];
    let connect = Body::Connect(Connect { connection: 1, cookie: 2, exchange_bytes: 96, ..Connect::default() });
    let frame = build(&envelope(false), &common(), &connect, &message);
    assert_eq!(frame.len(), 42 + 72 + 96);
    assert_eq!(parse(&frame, Ports::DEFAULT).unwrap().unwrap().payload, message);
    let short = Body::Connect(Connect { exchange_bytes: 95, ..Connect::default() });
    assert_eq!(emit(&mut [0; 500], &envelope(false), &common(), &short, &message), Err(Error::Length));
}
