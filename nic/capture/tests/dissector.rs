//! Compares the Wireshark dissector with the parser, for every kind of frame.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use spray_capture::{Capture, Content, FrameRecord, PortAction};
use spray_test_support::{AnySeal, Folder, WRONG, tshark};
use spray_wire::{
    Ack, Body, Close, CloseReason, Common, DSCP_CONTROL, DSCP_DATA, DSCP_TRIMMED_LAST, Data, Echoes, Ecn, Envelope,
    EvPort, Kind, MAX_ECHOES, Nack, Probe, ProbeAck, Pull, PullRequest, Rekey, RekeyMessage, Reset, Retry, SEAL_BYTES,
    Seal, Section, TAG_BYTES, Terms, Time, emit, emit_sealed, open, parse, switch_view,
};

/// Returns one body of each kind; also an Ack with echoes, a key exchange message and a trailer.
fn bodies() -> Vec<(Body, Vec<u8>)> {
    let payload: Vec<u8> = (0..133).map(|i| (i * 7) as u8).collect();
    let data = Data {
        psn: 0x1112_1314_1516_1718,
        timestamp: counted(0x0122_2324_2526_2728),
        message: 0x3132_3334,
        offset: 0x4142_4344_4546_4748,
        message_bytes: 0x5152_5354_5556_5758,
        payload_bytes: payload.len() as u16,
        ack_now: true,
        retransmit: false,
        trailer: false,
        section: Section::new(4, 0x234),
    };
    let trailer = Data { payload_bytes: 0, trailer: true, retransmit: true, section: Section::NONE, ..data };
    let mut echoes = Echoes::default();
    [(0x6162, true), (0x7172, false), (0x8182, true)]
        .into_iter()
        .for_each(|(port, marked)| echoes.push(EvPort::new(port), marked, MAX_ECHOES));
    let ack = Ack {
        cumulative: 1_000,
        timestamp_echo: counted(0x0122_2324_2526_2728),
        sack_base: 1_001,
        bitmap: [0b1011, 1 << 63, 0x0102_0304_0506_0708, 1 << 63],
        port: EvPort::new(0x4142),
        hops: 5,
        packets: 4,
        marked_packets: 3,
        marked: true,
        trimmed: true,
        misrouted: true,
        max_data: 0x5152_5354_5556_5758,
        echoes,
    };
    let nack = Nack {
        psn: 77,
        timestamp_echo: counted(0x0122_2324_2526_2728),
        port: EvPort::new(0x4142),
        hops: 3,
        marked: true,
        payload_bytes: 3000,
        missing: true,
        last_port: false,
        go_back: true,
    };
    let terms = Terms {
        connection: 9,
        cookie: u64::MAX - 5,
        window_packets: 512,
        max_payload: 3000,
        max_data: 1 << 40,
        ack_every: 4,
        exchange_bytes: 0,
        token: *b"a client's token",
    };
    let exchange = Terms { exchange_bytes: 48, ..terms };
    let answer =
        ProbeAck { token: 99, timestamp: counted(123_456_789), port: EvPort::new(60_000), hops: 3, marked: true };
    let none = Vec::new;
    vec![
        (Body::Data(data), payload.clone()),
        (Body::Data(trailer), none()),
        (Body::Ack(ack), none()),
        (
            Body::Ack(Ack {
                echoes: Echoes::default(),
                bitmap: [0; 4],
                trimmed: false,
                misrouted: false,
                marked: false,
                ..ack
            }),
            none(),
        ),
        (Body::Nack(nack), none()),
        (Body::Connect(terms), none()),
        (Body::Accept(exchange), payload[..48].to_vec()),
        (Body::Close(Close { cumulative: 1 << 50, reason: CloseReason::Timeout, acknowledgement: true }), none()),
        (Body::Reset(Reset { reason: 7 }), none()),
        (Body::Probe(Probe { token: 99, timestamp: counted(123_456_789) }), none()),
        (Body::ProbeAck(answer), none()),
        (Body::Pull(Pull { credit_bytes: 0x1112_1314_1516_1718 }), none()),
        (Body::PullRequest(PullRequest { demand_bytes: 1 << 40, pulled_bytes: 0x2122_2324_2526_2728 }), none()),
        (Body::Retry(Retry { token: *b"a server's token" }), none()),
        (Body::Rekey(Rekey { generation: 0x1112, message: RekeyMessage([0x21; 96]), answer: true }), none()),
    ]
}

/// Returns the time of a number of eighths of a nanosecond.
fn counted(eighths: u64) -> Time {
    Time::from_ns(eighths / 8).after(eighths % 8 * Time::STEP_PS)
}

/// Returns frames with every body, over IPv4 and IPv6, plain and sealed; Data also trimmed.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (v6, sealed) in [(false, false), (true, false), (false, true), (true, true)] {
        for (number, (body, payload)) in bodies().into_iter().enumerate() {
            let is_handshake = matches!(body, Body::Connect(_) | Body::Accept(_) | Body::Retry(_));
            if sealed && is_handshake {
                continue;
            }
            let is_data = matches!(body, Body::Data(_));
            let envelope = Envelope {
                src_mac: [2, 0, 0, 0, 0, 1],
                dst_mac: [2, 0, 0, 0, 0, 2],
                src: if v6 { "fd00::1".parse().unwrap() } else { "10.0.0.1".parse().unwrap() },
                dst: if v6 { "fd00::2".parse().unwrap() } else { "10.0.0.2".parse().unwrap() },
                // An entropy value may be the well-known port of another protocol in Wireshark.
                src_port: EvPort::new([50_000, 53, 67, 123, 161, 514, 1_812, 2_152, 4_500, 1][number % 10]),
                dst_port: spray_wire::Ports::DEFAULT.first(),
                dscp: if is_data { DSCP_DATA } else { DSCP_CONTROL },
                ecn: [Ecn::Ect0, Ecn::Ce, Ecn::NotEct][number % 3],
                ttl: 64 - number as u8,
            };
            let common = Common { connection: 0xa1a2_a3a4, cookie: 0xb1b2_b3b4_b5b6_b7b8, shard: 5 };
            let frame = build(&envelope, &common, &body, &payload, sealed);
            if is_data && !payload.is_empty() {
                frames.extend([DSCP_TRIMMED_LAST, spray_wire::DSCP_TRIMMED].map(|dscp| trimmed(&frame, dscp)));
            }
            frames.push(frame);
        }
    }
    frames
}

fn build(envelope: &Envelope, common: &Common, body: &Body, payload: &[u8], sealed: bool) -> Vec<u8> {
    let mut out = vec![0; 2_000];
    let len = if sealed {
        let at = body.header_bytes(envelope.is_v6()) + SEAL_BYTES;
        out[at..at + payload.len()].copy_from_slice(payload);
        emit_sealed(&mut out, envelope, common, body, payload.len(), &AnySeal)
    } else {
        emit(&mut out, envelope, common, body, payload)
    };
    out.truncate(len.unwrap());
    out
}

fn trimmed(frame: &[u8], dscp: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let switch_view::Parsed::Ours(headers) = switch_view::parse(&frame[..], spray_wire::Ports::DEFAULT) else {
        panic!("ours")
    };
    let len = switch_view::cut(&mut frame[..], headers.v6, dscp, headers.trimmed_len).unwrap();
    frame.truncate(len as usize);
    frame
}

fn capture(folder: &Folder, frames: &[Vec<u8>]) -> PathBuf {
    let path = folder.path().join("frames.pcapng");
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut capture = Capture::new(file, ["if0"], Duration::ZERO, 1_000).unwrap();
    for (number, frame) in frames.iter().enumerate() {
        capture.write(&FrameRecord {
            at_ps: number as i64 * 1_000,
            interface: 0,
            outbound: true,
            content: Content::of(frame, false),
            action: PortAction::default(),
            waiting_bytes: None,
        });
    }
    assert_eq!(capture.finish().unwrap().frames, frames.len() as u64);
    path
}

/// Returns the expected output of the dissector, by field.
fn expected(bytes: &[u8]) -> HashMap<&'static str, String> {
    let mut fields = HashMap::new();
    let mut own = bytes.to_vec();
    let frame = match parse(bytes, spray_wire::Ports::DEFAULT) {
        Err(spray_wire::Error::Sealed) => open(&mut own, spray_wire::Ports::DEFAULT, |_| true).unwrap().unwrap(),
        parsed => parsed.unwrap().unwrap(),
    };
    let mut insert = |name, value: String| drop(fields.insert(name, value));
    let flag = |set: bool| u8::from(set).to_string();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (envelope, common) = (&frame.envelope, &frame.common);
    insert("version", if frame.sealed { "2".into() } else { "1".into() });
    insert("kind", (frame.body.kind() as u8).to_string());
    insert("shard", common.shard.to_string());
    insert("connection", common.connection.to_string());
    match frame.sealed {
        true => insert("number", common.cookie.to_string()),
        false => insert("cookie", format!("0x{:016x}", common.cookie)),
    }
    insert("ev", envelope.src_port.number().to_string());
    insert("hops", envelope.hops().to_string());
    insert("marked", flag(envelope.marked()));
    if frame.sealed {
        let tag = AnySeal.header(&[]);
        insert(
            "header_tag",
            format!("{},{}", hex(&tag[..TAG_BYTES - SEAL_BYTES]), hex(&tag[TAG_BYTES - SEAL_BYTES..])),
        );
    }
    match &frame.body {
        Body::Data(data) => {
            insert("psn", data.psn.to_string());
            insert("timestamp", (data.timestamp.ps() / Time::STEP_PS).to_string());
            insert("message", data.message.to_string());
            insert("offset", data.offset.to_string());
            insert("message_bytes", data.message_bytes.to_string());
            insert("payload_bytes", data.payload_bytes.to_string());
            insert("flags.ack_now", flag(data.ack_now));
            insert("flags.retransmit", flag(data.retransmit));
            insert("flags.trailer", flag(data.trailer));
            if let Some((subflows, behind)) = data.section.get() {
                insert("section.subflows", subflows.to_string());
                insert("section.behind", behind.to_string());
            }
            insert("trimmed", flag(frame.trimmed));
            if frame.trimmed {
                insert("trimmed_last", flag(frame.is_trimmed_last()));
            }
            let at = bytes.len() - frame.payload.len() - if frame.sealed { TAG_BYTES } else { 0 };
            if !frame.payload.is_empty() && bytes.len() <= spray_capture::SNAP_BYTES {
                insert("payload", hex(frame.payload));
            } else if !frame.payload.is_empty() {
                // Only the captured bytes.
                insert("payload", hex(&bytes[at..spray_capture::SNAP_BYTES]));
            }
        }
        Body::Ack(ack) => {
            insert("cumulative", ack.cumulative.to_string());
            insert("timestamp_echo", (ack.timestamp_echo.ps() / Time::STEP_PS).to_string());
            insert("sack_base", ack.sack_base.to_string());
            insert("selected", runs((0..300).map(|i| ack.sack_base + i).filter(|psn| ack.selected(*psn))));
            insert("port_echo", ack.port.number().to_string());
            insert("hops_echo", ack.hops.to_string());
            insert("packets", ack.packets.to_string());
            insert("marked_packets", ack.marked_packets.to_string());
            insert("mark_echo", flag(ack.marked));
            insert("flags.trimmed", flag(ack.trimmed));
            insert("flags.misrouted", flag(ack.misrouted));
            insert("echoes", ack.echoes.len().to_string());
            insert("max_data", ack.max_data.to_string());
            if !ack.echoes.is_empty() {
                let ports: Vec<String> = ack.echoes.iter().map(|(port, _)| port.number().to_string()).collect();
                insert("echo_port", ports.join(","));
                let marks = ack.echoes.iter().enumerate().map(|(at, (_, marked))| u16::from(marked) << at);
                insert("echo_marks", format!("0x{:04x}", marks.sum::<u16>()));
            }
        }
        Body::Nack(nack) => {
            insert("psn", nack.psn.to_string());
            insert("timestamp_echo", (nack.timestamp_echo.ps() / Time::STEP_PS).to_string());
            insert("port_echo", nack.port.number().to_string());
            insert("hops_echo", nack.hops.to_string());
            insert("mark_echo", flag(nack.marked));
            insert("payload_bytes", nack.payload_bytes.to_string());
            insert("flags.missing", flag(nack.missing));
            insert("flags.last_port", flag(nack.last_port));
            insert("flags.go_back", flag(nack.go_back));
        }
        Body::Connect(terms) | Body::Accept(terms) => {
            insert("own_connection", terms.connection.to_string());
            insert("own_cookie", format!("0x{:016x}", terms.cookie));
            insert("window_packets", terms.window_packets.to_string());
            insert("max_payload", terms.max_payload.to_string());
            insert("max_data", terms.max_data.to_string());
            insert("ack_every", terms.ack_every.to_string());
            insert("exchange_bytes", terms.exchange_bytes.to_string());
            insert("token", hex(&terms.token));
            if terms.exchange_bytes > 0 {
                insert("exchange", hex(frame.payload));
            }
        }
        Body::Close(close) => {
            insert("cumulative", close.cumulative.to_string());
            insert("close_reason", (close.reason as u32).to_string());
            insert("flags.acknowledgement", flag(close.acknowledgement));
        }
        Body::Reset(reset) => insert("reset_reason", reset.reason.to_string()),
        Body::Probe(probe) => {
            insert("probe_token", format!("0x{:016x}", probe.token));
            insert("timestamp", (probe.timestamp.ps() / Time::STEP_PS).to_string());
        }
        Body::ProbeAck(answer) => {
            insert("probe_token", format!("0x{:016x}", answer.token));
            insert("timestamp_echo", (answer.timestamp.ps() / Time::STEP_PS).to_string());
            insert("port_echo", answer.port.number().to_string());
            insert("hops_echo", answer.hops.to_string());
            insert("mark_echo", flag(answer.marked));
        }
        Body::Pull(pull) => insert("credit_bytes", pull.credit_bytes.to_string()),
        Body::PullRequest(request) => {
            insert("demand_bytes", request.demand_bytes.to_string());
            insert("pulled_bytes", request.pulled_bytes.to_string());
        }
        Body::Retry(retry) => insert("token", hex(&retry.token)),
        Body::Rekey(rekey) => {
            insert("generation", rekey.generation.to_string());
            insert("exchange", hex(&rekey.message.0));
            insert("flags.answer", flag(rekey.answer));
        }
    }
    fields
}

/// Formats numbers as ranges: `3,5-7`.
fn runs(numbers: impl Iterator<Item = u64>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// Fields that repeat others in another form, or that the parser checks but does not return.
const OTHERS: [&str; 8] =
    ["flags", "header_checksum", "header_tag", "payload_checksum", "payload_tag", "section", "bitmap", "flags2"];

#[test]
fn wireshark_reads_every_kind_of_frame_as_we_do() {
    let (folder, frames) = (Folder::new(), frames());
    let path = capture(&folder, &frames);
    let expected: Vec<_> = frames.iter().map(|frame| expected(frame)).collect();
    let kinds: BTreeSet<&String> = expected.iter().map(|fields| &fields["kind"]).collect();
    assert_eq!(kinds.len(), Kind::ALL.len());
    let script = std::fs::read_to_string(spray_test_support::root().join("deploy/wireshark/spray.lua")).unwrap();
    let declared = script.lines().filter_map(|line| line.strip_prefix("field(\"")?.split('"').next());
    let names: Vec<&str> = declared.collect();
    for name in expected.iter().flat_map(HashMap::keys) {
        assert!(names.contains(name), "the dissector has no field {name}");
    }
    let fields: Vec<String> = names.iter().map(|name| format!("spraynic.{name}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let Some(rows) = tshark(&path, "", &fields) else { return };
    assert_eq!(rows.len(), frames.len());
    for (row, (fields, frame)) in rows.iter().zip(expected.iter().zip(&frames)) {
        for (name, value) in names.iter().zip(row) {
            let expected = fields.get(name).map_or("", String::as_str);
            let also = expected.is_empty() && OTHERS.contains(name);
            assert!(value == expected || also, "{name} is {value} and not {expected} in {frame:02x?}");
        }
    }
    assert_eq!(tshark(&path, WRONG, &["frame.number"]), Some(vec![]));
    let trimmed = tshark(&path, "spraynic.expert.trimmed", &["frame.number"]).unwrap();
    assert_eq!(trimmed.len(), 8, "two of each IP version, plain and sealed");
}

/// Truncated, extended and modified frames are shown as malformed, and never crash the dissector.
#[test]
fn malformed_frames_are_shown_as_malformed() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for frame in frames().iter().filter(|frame| frame[12..14] == [8, 0]) {
        for len in [43, 50, 69, 80, frame.len() - 1] {
            wrong.push(frame[..len.min(frame.len() - 1)].to_vec());
        }
        // A shorter but complete IP datagram, and a frame of an unknown kind or version.
        let mut short = frame[..frame.len() - 1].to_vec();
        let bytes = (short.len() - 14) as u16;
        short[16..18].copy_from_slice(&bytes.to_be_bytes());
        short[38..40].copy_from_slice(&(bytes - 20).to_be_bytes());
        wrong.push(short);
        for (at, value) in [(42, 9), (43, 0), (43, 200), (132, 99)] {
            let mut other = frame.clone();
            if let Some(byte) = other.get_mut(at) {
                *byte = value;
                wrong.push(other);
            }
        }
    }
    let path = capture(&folder, &wrong);
    let Some(failed) = tshark(&path, "_ws.lua.error", &["frame.number", "_ws.lua.error"]) else { return };
    assert!(failed.is_empty(), "{failed:?}");
    let shown = tshark(&path, "spraynic.expert.length || spraynic.expert.short", &["frame.number"]).unwrap();
    assert!(shown.len() > 20, "{}", shown.len());
}

/// Other programs may use the same ports: their payloads are left to other dissectors.
#[test]
fn payloads_of_other_programs_are_not_dissected() {
    let folder = Folder::new();
    let mut rtp = frames().into_iter().find(|frame| frame[12..14] == [8, 0]).unwrap();
    rtp[42] = 0x80;
    let path = capture(&folder, &[rtp]);
    let Some(shown) = tshark(&path, "", &["udp.dstport", "spraynic"]) else { return };
    assert_eq!(shown, [["61440", ""]]);
}
