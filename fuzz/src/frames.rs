//! Frames as hosts, switches and the codec see them.

use std::sync::OnceLock;

use spray_fabric::{ChassisSpec, Fabric, LeafSpine, Thresholds, compile};
use spray_pipeline::Verdict;
use spray_test_support::{AnySeal, NativeSwitch};
use spray_wire::switch_view::{self, Changes, Parsed, addressed_to, classify, packet_fields};
use spray_wire::{
    Common, SEAL_BYTES, emit, emit_sealed, open, parse, peek_packet, peek_virtual_time, set_virtual_time,
};

use crate::input::Input;

/// Any bytes: no reader panics, and the readers agree on what they are.
pub(crate) fn frame(bytes: &[u8]) {
    let (ours, seen) = (parse(bytes), switch_view::parse(bytes));
    let class = classify(bytes);
    assert_eq!(addressed_to(bytes).is_some(), class.is_some());
    let _ = (peek_packet(bytes), packet_fields(bytes, false), packet_fields(bytes, true));
    if let Ok(Some(frame)) = ours {
        assert_eq!(class, Some(frame.envelope.dst.is_ipv6()));
        let Parsed::Ours(headers) = seen else { panic!("a host takes it, a switch does not: {seen:?}") };
        assert_eq!((headers.ttl, headers.dscp), (frame.envelope.ttl, frame.envelope.dscp));
        assert_eq!(headers.virtual_time_ps, frame.common.virtual_time_ps);
        assert_eq!(peek_virtual_time(bytes), Some(headers.virtual_time_ps));
        again(bytes);
    }
    believed(bytes);
    let mut stamped = bytes.to_vec();
    set_virtual_time(&mut stamped, 12_345);
    assert_eq!(parse(&stamped).is_ok_and(|frame| frame.is_some()), ours.is_ok_and(|frame| frame.is_some()));
}

/// A sealed frame is refused by who believes no tag. By who believes every tag it is read without a panic, and a switch takes it too.
fn believed(bytes: &[u8]) {
    let mut copy = bytes.to_vec();
    assert!(!matches!(open(&mut copy, |_| false), Ok(Some(_))));
    if let Ok(Some(frame)) = open(&mut copy, |_| true) {
        let Parsed::Ours(headers) = switch_view::parse(bytes) else { panic!("a host takes it, a switch does not") };
        assert!(frame.sealed && headers.virtual_time_ps == frame.common.virtual_time_ps);
    }
}

/// A frame that was taken, built again from what it says, says the same.
fn again(bytes: &[u8]) {
    let Ok(Some(frame)) = parse(bytes) else { return };
    if frame.trimmed {
        return;
    }
    let mut built = vec![0; bytes.len()];
    let length = emit(&mut built, &frame.envelope, &frame.common, &frame.body, frame.payload);
    let length = length.expect("what was read can be written, into no more room");
    let read = parse(&built[..length]).expect("it was just built").expect("as above");
    assert_eq!(
        (read.envelope, read.common, read.body, read.payload),
        (frame.envelope, frame.common, frame.body, frame.payload)
    );
}

/// A frame built from choices is read as it was built. With one byte changed it is refused, or means what it meant.
pub(crate) fn codec(bytes: &[u8]) {
    let mut input = Input(bytes);
    let v6 = input.flag();
    let envelope = input.envelope(v6);
    let common = Common { connection: input.u32(), cookie: input.u64(), virtual_time_ps: input.u64() };
    let (body, payload) = input.body();
    let mut built = [0; 2_048];
    let at = body.header_bytes(v6) + SEAL_BYTES;
    built[at..at + payload.len()].copy_from_slice(payload);
    let length = emit_sealed(&mut built, &envelope, &common, &body, payload.len(), &AnySeal).expect("it has room");
    let mut sealed = built[..length].to_vec();
    let place = usize::from(input.u16()) % length;
    let read = open(&mut sealed, |_| true).expect("it is whole").expect("it is ours");
    assert_eq!((read.envelope, read.common, read.body, read.payload), (envelope, common, body, payload));
    sealed[place] ^= input.byte();
    frame(&sealed);
    if let Some(length) = switch_view::trim(&mut sealed) {
        frame(&sealed[..length]);
    }
    let length = emit(&mut built, &envelope, &common, &body, payload).expect("it has room");
    let built = &mut built[..length];
    frame(built);
    let read = parse(built).expect("it is whole").expect("it is ours");
    assert_eq!((read.envelope, read.common, read.payload), (envelope, common, payload));
    assert_eq!(read.body, body);
    let place = usize::from(input.u16()) % built.len();
    built[place] ^= input.byte();
    frame(built);
    // A CRC finds every change of one byte. Ethernet addresses, virtual time and the note of a detour are not covered: switches rewrite
    // them.
    if let Ok(Some(changed)) = parse(built) {
        assert_eq!(
            (changed.body, changed.common.connection, changed.common.cookie),
            (body, common.connection, common.cookie)
        );
        assert!(changed.trimmed || changed.payload == payload);
        assert_eq!((changed.envelope.src, changed.envelope.dst), (envelope.src, envelope.dst));
    }
}

/// Two leaves, two spines, two hosts at each leaf.
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

/// Frames through a chassis, some of them built and some any bytes: what a host would take stays what a host takes.
pub(crate) fn switch(bytes: &[u8]) {
    let chassis = NativeSwitch::new(&ChassisSpec::whole(fabric())).expect("a valid fabric");
    let mut input = Input(bytes);
    let mut now_ps = 1_000_000_000;
    for _ in 0..16 {
        if input.is_empty() {
            return;
        }
        now_ps += u64::from(input.u16()) * 1_000;
        let mut frame = made(&mut input, now_ps);
        let was_ours = matches!(parse(&frame), Ok(Some(_)));
        let (written, headers) = (frame.clone(), switch_view::parse(frame.as_slice()));
        rewrite(written, &headers, &mut input);
        let ingress = usize::from(input.byte() % 4);
        let verdict = chassis.process(&mut frame, ingress, now_ps);
        if let Verdict::Redirect { trimmed_len, .. } = verdict {
            let length = if trimmed_len > 0 { trimmed_len as usize } else { frame.len() };
            assert!(length <= frame.len());
            frame.truncate(length);
            assert!(!was_ours || matches!(parse(&frame), Ok(Some(_))), "{:?}", parse(&frame));
        }
    }
}

/// A frame of choices, or any bytes.
fn made(input: &mut Input<'_>, now_ps: u64) -> Vec<u8> {
    let kind = input.byte();
    if kind & 7 == 0 {
        let length = usize::from(input.byte());
        return input.bytes(length).to_vec();
    }
    let envelope = input.envelope(kind & 8 != 0);
    let late_ps = u64::from(input.u16()) * 1_000;
    let common = Common { connection: 1, cookie: 2, virtual_time_ps: now_ps.saturating_sub(late_ps) };
    let (body, payload) = input.body();
    let mut frame = vec![0; 2_048];
    let length = emit(&mut frame, &envelope, &common, &body, payload).expect("it has room");
    frame.truncate(length);
    if kind & 16 != 0 {
        let place = usize::from(input.u16()) % frame.len();
        frame[place] ^= input.byte();
    }
    frame
}

/// Whatever a switch writes into a frame that it took, and however it cuts it, a host still takes it if it did before.
fn rewrite(mut frame: Vec<u8>, headers: &Parsed, input: &mut Input<'_>) {
    let Parsed::Ours(headers) = headers else { return };
    let was_ours = matches!(parse(&frame), Ok(Some(_)));
    let changes = Changes {
        ttl: input.byte(),
        ecn: input.byte() & 3,
        virtual_time_ps: input.flag().then(|| input.u64()),
        detour: input.byte(),
    };
    switch_view::write(frame.as_mut_slice(), headers.v6, &changes).expect("it was long enough to be read");
    assert!(!was_ours || matches!(parse(&frame), Ok(Some(_))), "{:?} after {changes:?}", parse(&frame));
    if let Some(length) = switch_view::trim(&mut frame) {
        assert!(length < frame.len());
        frame.truncate(length);
        assert!(!was_ours || matches!(parse(&frame), Ok(Some(frame)) if frame.trimmed), "{:?}", parse(&frame));
    }
}
