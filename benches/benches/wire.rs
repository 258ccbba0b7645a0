//! Cost per frame of the wire codec: a full data frame and an ACK, parsed and emitted, over both IP
//! versions.
//!
//! `checksum 3000 B` is the minimum cost of a data frame. Over IPv6 the UDP checksum reads the
//! payload a second time.

use std::hint::black_box;
use std::net::IpAddr;

use criterion::{BenchmarkId, Criterion, Throughput};
use spray_wire::{Ack, Body, Common, Data, Ecn, Envelope, EvPort, Kind, emit, emit_in_place, header_bytes, parse};

/// Payload of a full data frame, in bytes.
const PAYLOAD: usize = 3000;

fn envelope(v6: bool) -> Envelope {
    let address = |host: u8| -> IpAddr {
        if v6 { [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host].into() } else { [10, 0, 0, host].into() }
    };
    Envelope {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        src: address(1),
        dst: address(2),
        src_port: EvPort::new(50_000),
        dst_port: spray_wire::Ports::DEFAULT.first(),
        dscp: spray_wire::DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: spray_wire::INITIAL_TTL,
    }
}

fn data() -> Body {
    Body::Data(Data { psn: 7, message_bytes: 1 << 20, payload_bytes: PAYLOAD as u16, ..Data::default() })
}

fn ack() -> Body {
    Body::Ack(Ack { cumulative: 7, sack_base: 7, bitmap: [u64::MAX; 4], packets: 4, ..Ack::default() })
}

fn frames(criterion: &mut Criterion) {
    let payload: Vec<u8> = (0..PAYLOAD).map(|i| i as u8).collect();
    let common = Common { connection: 1, cookie: 2, ..Common::default() };
    let mut group = criterion.benchmark_group("wire");
    for v6 in [false, true] {
        let e = envelope(v6);
        for (name, body, payload) in [("data", data(), &payload[..]), ("ack", ack(), &[])] {
            let case = format!("{name}/{}", if v6 { "ipv6" } else { "ipv4" });
            let mut frame = vec![0; 4096];
            let len = emit(&mut frame, &e, &common, &body, payload).expect("fits");
            frame.truncate(len);
            group.throughput(Throughput::Bytes(len as u64));
            group.bench_function(BenchmarkId::new("parse", &case), |b| {
                b.iter(|| parse(black_box(&frame), spray_wire::Ports::DEFAULT).is_ok());
            });
            let mut out = vec![0; 4096];
            group.bench_function(BenchmarkId::new("emit", &case), |b| {
                b.iter(|| emit(&mut out, black_box(&e), &common, black_box(&body), payload));
            });
            if body.kind() == Kind::Data {
                out[header_bytes(v6, Kind::Data)..][..PAYLOAD].copy_from_slice(payload);
                group.bench_function(BenchmarkId::new("emit_in_place", &case), |b| {
                    b.iter(|| emit_in_place(&mut out, black_box(&e), &common, black_box(&body), PAYLOAD));
                });
            }
        }
    }
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.bench_function("checksum 3000 B", |b| b.iter(|| spray_wire::xxh3(black_box(&payload))));
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    frames(&mut criterion);
    criterion.final_summary();
}
