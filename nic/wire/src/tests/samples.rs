//! Frames to test with, fixed and random.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::*;

pub fn envelope(v6: bool) -> Envelope {
    Envelope {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        src: if v6 { "fd00::1".parse().unwrap() } else { "10.0.0.1".parse().unwrap() },
        dst: if v6 { "fd00::2".parse().unwrap() } else { "10.0.0.2".parse().unwrap() },
        src_port: EvPort::new(50_000),
        dst_port: Ports::DEFAULT.first(),
        dscp: DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: INITIAL_TTL,
    }
}

pub fn common() -> Common {
    Common { connection: 0xa1a2_a3a4, cookie: 0xb1b2_b3b4_b5b6_b7b8, shard: 0 }
}

/// The encoded time of data, ACK and NACK among [`bodies`].
pub const STAMP: u64 = 0x2122_2324_2526_2728;

/// Returns the time with this encoding.
pub fn time(count: u64) -> Time {
    Time::from_ns(count / 8).after(count % 8 * Time::STEP_PS)
}

/// Returns one body of each kind and an Ack with echoes, all fields nonzero, each with its payload.
pub fn bodies() -> Vec<(Body, Vec<u8>)> {
    let payload: Vec<u8> = (0..333).map(|i| (i * 7) as u8).collect();
    let data = Data {
        psn: 0x1112_1314_1516_1718,
        timestamp: time(STAMP),
        message: 0x3132_3334,
        offset: 0x4142_4344_4546_4748,
        message_bytes: 0x5152_5354_5556_5758,
        payload_bytes: payload.len() as u16,
        ack_now: true,
        retransmit: true,
        trailer: true,
        section: Section::new(4, 0x234),
    };
    let ack = Ack {
        cumulative: 0x1112_1314_1516_1718,
        timestamp_echo: time(STAMP),
        sack_base: 0x3132_3334_3536_3738,
        bitmap: [1, 1 << 63, 0x0102_0304_0506_0708, u64::MAX],
        port: EvPort::new(0x4142),
        hops: 5,
        packets: 4,
        marked_packets: 3,
        marked: true,
        trimmed: true,
        misrouted: true,
        max_data: 0x5152_5354_5556_5758,
        echoes: echoes([(0x6162, true), (0x7172, false), (0x8182, true)]),
    };
    let plain = Ack { echoes: Echoes::default(), ..ack };
    let nack = Nack {
        psn: 77,
        timestamp_echo: time(STAMP),
        port: EvPort::new(0x4142),
        hops: 3,
        marked: true,
        payload_bytes: 3000,
        missing: true,
        last_port: false,
        go_back: true,
    };
    let connect = Connect {
        connection: 1,
        cookie: u64::MAX - 5,
        window_packets: 512,
        max_payload: 3000,
        max_data: 1 << 40,
        ack_every: 4,
        exchange_bytes: 0,
        token: *b"a client's token",
    };
    let accept = Accept {
        connection: 9,
        cookie: 12_345,
        window_packets: 256,
        max_payload: 1400,
        max_data: 1 << 20,
        ack_every: 1,
        ..Accept::default()
    };
    let probe_ack =
        ProbeAck { token: 99, timestamp: time(123_456_789), port: EvPort::new(60_000), hops: 3, marked: true };
    vec![
        (Body::Data(data), payload),
        (Body::Ack(plain), vec![]),
        (Body::Nack(nack), vec![]),
        (Body::Connect(connect), vec![]),
        (Body::Accept(accept), vec![]),
        (Body::Close(Close { cumulative: 1 << 50, reason: CloseReason::Timeout, acknowledgement: true }), vec![]),
        (Body::Reset(Reset { reason: 7 }), vec![]),
        (Body::Probe(Probe { token: 99, timestamp: time(123_456_789) }), vec![]),
        (Body::ProbeAck(probe_ack), vec![]),
        (Body::Pull(Pull { credit_bytes: 0x1112_1314_1516_1718 }), vec![]),
        (Body::PullRequest(PullRequest { demand_bytes: 1 << 40, pulled_bytes: 0x2122_2324_2526_2728 }), vec![]),
        (Body::Retry(Retry { token: *b"a server's token" }), vec![]),
        (Body::Rekey(Rekey { generation: 0x1112, message: message(), answer: true }), vec![]),
        (Body::Ack(ack), vec![]),
    ]
}

/// Returns a message of a key exchange.
fn message() -> RekeyMessage {
    RekeyMessage(core::array::from_fn(|at| 1 + at as u8))
}

/// Returns echoes of packets with these ports and marks.
pub fn echoes(packets: impl IntoIterator<Item = (u16, bool)>) -> Echoes {
    let mut echoes = Echoes::default();
    packets.into_iter().for_each(|(port, marked)| echoes.push(EvPort::new(port), marked, MAX_ECHOES));
    echoes
}

pub fn build(e: &Envelope, c: &Common, body: &Body, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xee; 70_000];
    let len = emit(&mut out, e, c, body, payload).unwrap();
    out.truncate(len);
    out
}

/// Returns one frame of each kind and IP version.
pub fn frames() -> Vec<Vec<u8>> {
    [false, true]
        .into_iter()
        .flat_map(|v6| {
            bodies().into_iter().map(move |(body, payload)| build(&envelope(v6), &common(), &body, &payload))
        })
        .collect()
}

/// Returns a data frame with a payload of 333 bytes.
pub fn data_frame(v6: bool) -> Vec<u8> {
    let (body, payload) = bodies().swap_remove(0);
    build(&envelope(v6), &common(), &body, &payload)
}

pub fn any_envelope() -> impl Strategy<Value = Envelope> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (a.into(), b.into())),
    ];
    let tos = (0..64u8, 0..4u8, any::<u8>());
    let ports = (any::<u16>(), 0..Ports::COUNT);
    (any::<[u8; 6]>(), any::<[u8; 6]>(), addresses, ports, tos).prop_map(
        |(src_mac, dst_mac, (src, dst), (src_port, to), (dscp, ecn, ttl))| Envelope {
            src_mac,
            dst_mac,
            src,
            dst,
            src_port: EvPort::new(src_port),
            dst_port: Ports::DEFAULT.first() + to,
            dscp,
            ecn: Ecn::from_tos(ecn),
            ttl,
        },
    )
}

pub fn any_common() -> impl Strategy<Value = Common> {
    any::<(u32, u64, u8)>().prop_map(|(connection, cookie, shard)| Common { connection, cookie, shard })
}

fn any_data() -> impl Strategy<Value = (Body, Vec<u8>)> {
    let payload = prop::collection::vec(any::<u8>(), 0..4000);
    (any::<(u64, u64, u32, u64, u64, [bool; 3], u16)>(), payload).prop_map(|(f, payload)| {
        let data = Data {
            psn: f.0,
            timestamp: time(f.1),
            message: f.2,
            offset: f.3,
            message_bytes: f.4,
            payload_bytes: payload.len() as u16,
            ack_now: f.5[0],
            retransmit: f.5[1],
            trailer: f.5[2],
            section: Section::from_bits(f.6),
        };
        (Body::Data(data), payload)
    })
}

fn any_control() -> impl Strategy<Value = Body> {
    let others = prop::collection::vec(any::<(u16, bool)>(), 0..=MAX_ECHOES);
    let ack = (any::<(u64, u64, u64, [u64; 4], u16, [u8; 3], [bool; 3], u64)>(), others).prop_map(|(f, others)| {
        let [hops, packets, marked_packets] = f.5;
        Body::Ack(Ack {
            cumulative: f.0,
            timestamp_echo: time(f.1),
            sack_base: f.2,
            bitmap: f.3,
            port: EvPort::new(f.4),
            hops,
            packets,
            marked_packets,
            marked: f.6[0],
            trimmed: f.6[1],
            misrouted: f.6[2],
            max_data: f.7,
            echoes: echoes(others),
        })
    });
    let nack = any::<(u64, u64, u16, u8, [bool; 4], u16)>().prop_map(|f| {
        let [marked, missing, last_port, go_back] = f.4;
        let (psn, timestamp_echo) = (f.0, time(f.1));
        Body::Nack(Nack {
            psn,
            timestamp_echo,
            port: EvPort::new(f.2),
            hops: f.3,
            marked,
            payload_bytes: f.5,
            missing,
            last_port,
            go_back,
        })
    });
    let handshake = any::<(bool, u32, u64, u32, u32, u64, u32, [u8; 16])>().prop_map(|f| {
        let (is_connect, connection, cookie, window_packets, max_payload, max_data, ack_every, token) = f;
        let exchange_bytes = 0;
        let terms =
            Terms { connection, cookie, window_packets, max_payload, max_data, ack_every, exchange_bytes, token };
        if is_connect { Body::Connect(terms) } else { Body::Accept(terms) }
    });
    let retry = any::<[u8; 16]>().prop_map(|token| Body::Retry(Retry { token }));
    let rekey = any::<(u16, [[u8; 32]; 3], bool)>().prop_map(|(generation, message, answer)| {
        let message = RekeyMessage(message.as_flattened().try_into().unwrap());
        Body::Rekey(Rekey { generation, message, answer })
    });
    let close = (any::<u64>(), 0..5u32, any::<bool>()).prop_map(|(cumulative, reason, acknowledgement)| {
        Body::Close(Close { cumulative, reason: CloseReason::from_u32(reason).unwrap(), acknowledgement })
    });
    let reset = any::<u32>().prop_map(|reason| Body::Reset(Reset { reason }));
    let probe =
        any::<(u64, u64)>().prop_map(|(token, timestamp)| Body::Probe(Probe { token, timestamp: time(timestamp) }));
    let probe_ack = any::<(u64, u64, u16, u8, bool)>().prop_map(|f| {
        Body::ProbeAck(ProbeAck { token: f.0, timestamp: time(f.1), port: EvPort::new(f.2), hops: f.3, marked: f.4 })
    });
    let pull = any::<u64>().prop_map(|credit_bytes| Body::Pull(Pull { credit_bytes }));
    let request = any::<(u64, u64)>()
        .prop_map(|(demand_bytes, pulled_bytes)| Body::PullRequest(PullRequest { demand_bytes, pulled_bytes }));
    prop_oneof![ack, nack, handshake, close, reset, probe, probe_ack, pull, request, retry, rekey]
}

/// Generates any body, with its payload.
pub fn any_body() -> impl Strategy<Value = (Body, Vec<u8>)> {
    prop_oneof![any_data(), any_control().prop_map(|body| (body, vec![]))]
}
