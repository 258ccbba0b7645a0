//! Frames as parsed by hosts, switches and the codec.

use std::sync::OnceLock;

use spray_fabric::{ChassisSpec, Fabric, LeafSpine, Thresholds, compile};
use spray_pipeline::Verdict;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_test_support::{AnySeal, NativeSwitch};
use spray_wire::switch_view::{self, Changes, Parsed, addressed_to, classify, packet_fields};
use spray_wire::{Common, Ports, SEAL_BYTES, emit, emit_sealed, open, parse, peek_packet};

use crate::input::Input;

/// Checks that no parser panics, and that the parsers agree.
pub(crate) fn frame(bytes: &[u8]) {
    let (ours, seen) = (parse(bytes, Ports::DEFAULT), switch_view::parse(bytes, Ports::DEFAULT));
    let class = classify(bytes, Ports::DEFAULT);
    assert!(!matches!(ours, Ok(Some(_))) || addressed_to(bytes).is_some());
    let _ = (peek_packet(bytes, Ports::DEFAULT), packet_fields(bytes, false), packet_fields(bytes, true));
    if let Ok(Some(frame)) = ours {
        assert_eq!(class, Some(frame.envelope.dst.is_ipv6()));
        let Parsed::Ours(headers) = seen else { panic!("accepted by a host, rejected by a switch: {seen:?}") };
        assert_eq!((headers.ttl, headers.dscp), (frame.envelope.ttl, frame.envelope.dscp));
        check_round_trip(bytes);
    }
    check_seal(bytes);
}

/// Checks that a sealed frame is accepted by all parsers, and rejected with an invalid tag.
fn check_seal(bytes: &[u8]) {
    let mut copy = bytes.to_vec();
    assert!(!matches!(open(&mut copy, Ports::DEFAULT, |_| false), Ok(Some(_))));
    if let Ok(Some(frame)) = open(&mut copy, Ports::DEFAULT, |_| true) {
        let Parsed::Ours(headers) = switch_view::parse(bytes, Ports::DEFAULT) else {
            panic!("accepted by a host, rejected by a switch")
        };
        assert!(frame.sealed && headers.ttl == frame.envelope.ttl);
    }
}

/// Checks that a parsed frame does not change when it is emitted and parsed again.
fn check_round_trip(bytes: &[u8]) {
    let Ok(Some(frame)) = parse(bytes, Ports::DEFAULT) else { return };
    if frame.trimmed {
        return;
    }
    let mut built = vec![0; bytes.len()];
    let length = emit(&mut built, &frame.envelope, &frame.common, &frame.body, frame.payload);
    let length = length.expect("a parsed frame can be emitted with the same length");
    let read = parse(&built[..length], Ports::DEFAULT).expect("it was just built").expect("as above");
    assert_eq!(
        (read.envelope, read.common, read.body, read.payload),
        (frame.envelope, frame.common, frame.body, frame.payload)
    );
}

/// Checks that a frame is parsed as built, and with one byte flipped rejected or unchanged.
pub(crate) fn codec(bytes: &[u8]) {
    let mut input = Input(bytes);
    let v6 = input.flag();
    let envelope = input.envelope(v6);
    let common = Common { connection: input.u32(), cookie: input.u64(), ..Common::default() };
    let (body, payload) = input.body();
    let mut built = [0; 2_048];
    let at = body.header_bytes(v6) + SEAL_BYTES;
    built[at..at + payload.len()].copy_from_slice(payload);
    let length = emit_sealed(&mut built, &envelope, &common, &body, payload.len(), &AnySeal).expect("it has room");
    let mut sealed = built[..length].to_vec();
    let place = usize::from(input.u16()) % length;
    let read = open(&mut sealed, Ports::DEFAULT, |_| true).expect("it is whole").expect("it is ours");
    assert_eq!((read.envelope, read.common, read.body, read.payload), (envelope, common, body, payload));
    sealed[place] ^= input.byte();
    frame(&sealed);
    if let Some(length) = switch_view::trim(&mut sealed, Ports::DEFAULT) {
        frame(&sealed[..length]);
    }
    let length = emit(&mut built, &envelope, &common, &body, payload).expect("it has room");
    let built = &mut built[..length];
    frame(built);
    let read = parse(built, Ports::DEFAULT).expect("it is whole").expect("it is ours");
    assert_eq!((read.envelope, read.common, read.payload), (envelope, common, payload));
    assert_eq!(read.body, body);
    let place = usize::from(input.u16()) % built.len();
    built[place] ^= input.byte();
    frame(built);
    // A checksum detects every change of one byte, except in Ethernet addresses.
    if let Ok(Some(changed)) = parse(built, Ports::DEFAULT) {
        assert_eq!(
            (changed.body, changed.common.connection, changed.common.cookie),
            (body, common.connection, common.cookie)
        );
        assert!(changed.trimmed || changed.payload == payload);
        assert_eq!((changed.envelope.src, changed.envelope.dst), (envelope.src, envelope.dst));
    }
}

fn fabric() -> &'static Fabric {
    static FABRIC: OnceLock<Fabric> = OnceLock::new();
    FABRIC.get_or_init(|| {
        let network = LeafSpine::uniform([2, 2, 2], 100_000_000_000, 1_000_000).network();
        let queue = Thresholds {
            limit_bytes: 4_000,
            mark_min_bytes: 1_000,
            mark_max_bytes: 3_000,
            control_limit_bytes: 1_000,
            trim: true,
            ..Thresholds::NONE
        };
        compile(&network, 1, |_| queue, &[]).expect("a fabric without events")
    })
}

/// Checks that frames that a host accepts remain acceptable after passing a chassis.
pub(crate) fn switch(bytes: &[u8]) {
    let spec = ChassisSpec { hop_by_hop: true, ..ChassisSpec::whole(fabric()) };
    let chassis = NativeSwitch::new(&spec).expect("a valid fabric");
    let mut input = Input(bytes);
    let mut now_ps = 1_000_000_000;
    for _ in 0..16 {
        if input.is_empty() {
            return;
        }
        now_ps += u64::from(input.u16()) * 1_000;
        let mut frame = made(&mut input, now_ps);
        let is_ours =
            |frame: &[u8]| matches!(parse(&frame[SHIM_BYTES.min(frame.len())..], Ports::DEFAULT), Ok(Some(_)));
        let was_ours = is_ours(&frame);
        let written = frame.get(SHIM_BYTES..).unwrap_or_default().to_vec();
        let headers = switch_view::parse(written.as_slice(), Ports::DEFAULT);
        rewrite(written, &headers, &mut input);
        let ingress = usize::from(input.byte() % 4);
        // Ends at the latest when the TTL expires.
        while let Verdict::Redirect { trimmed_len, .. } | Verdict::Return { trimmed_len } =
            chassis.process(&mut frame, ingress, now_ps)
        {
            let length = if trimmed_len > 0 { trimmed_len as usize } else { frame.len() };
            assert!(length <= frame.len());
            frame.truncate(length);
            assert!(!was_ours || is_ours(&frame));
            if Shim::read(frame.first_chunk().expect("a shim")).is_none_or(|shim| !shim.between) {
                break;
            }
        }
    }
}

fn made(input: &mut Input<'_>, now_ps: u64) -> Vec<u8> {
    let kind = input.byte();
    if kind & 7 == 0 {
        let length = usize::from(input.byte());
        return input.bytes(length).to_vec();
    }
    let envelope = input.envelope(kind & 8 != 0);
    let late_ps = u64::from(input.u16()) * 1_000;
    let shim = Shim { virtual_time_ps: now_ps.saturating_sub(late_ps), detour: kind >> 5, ..Shim::default() };
    let (body, payload) = input.body();
    let mut frame = vec![0; 2_048];
    let length = emit(&mut frame, &envelope, &Common::default(), &body, payload).expect("it has room");
    frame.truncate(length);
    let mut frame = [&shim.before(&frame), &*frame].concat();
    if kind & 16 != 0 {
        let place = usize::from(input.u16()) % frame.len();
        frame[place] ^= input.byte();
    }
    frame
}

/// Checks that a host still accepts a frame after any rewrite or trimming by a switch.
fn rewrite(mut frame: Vec<u8>, headers: &Parsed, input: &mut Input<'_>) {
    let Parsed::Ours(headers) = headers else { return };
    let was_ours = matches!(parse(&frame, Ports::DEFAULT), Ok(Some(_)));
    let changes = Changes { ttl: input.byte(), ecn: input.byte() & 3, pause: input.flag() };
    switch_view::write(frame.as_mut_slice(), headers.v6, &changes).expect("a parsed frame has all fields");
    assert!(
        !was_ours || matches!(parse(&frame, Ports::DEFAULT), Ok(Some(_))),
        "{:?} after {changes:?}",
        parse(&frame, Ports::DEFAULT)
    );
    if let Some(length) = switch_view::trim(&mut frame, Ports::DEFAULT) {
        assert!(length < frame.len());
        frame.truncate(length);
        assert!(
            !was_ours || matches!(parse(&frame, Ports::DEFAULT), Ok(Some(frame)) if frame.trimmed),
            "{:?}",
            parse(&frame, Ports::DEFAULT)
        );
    }
}
