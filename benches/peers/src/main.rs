//! Throughput and round-trip times of the kernel's UDP and TCP and of QUIC libraries over veth:
//! `cargo run --release -- [SECONDS [ROUNDS [PAYLOAD_BYTES]]]` as root. Compare with `spray bench
//! veth`.
#![expect(clippy::disallowed_methods, reason = "measurements")]

mod kernel;
mod net;
mod quic;

use std::io;
use std::time::Duration;

use net::Pair;

const WAYS: [(&str, Way); 6] = [
    ("kernel UDP, sendmmsg/recvmmsg", Way::Udp { segments: false }),
    ("kernel UDP with GSO and GRO", Way::Udp { segments: true }),
    ("kernel TCP without TSO", Way::Tcp { tso: false }),
    ("kernel TCP with TSO", Way::Tcp { tso: true }),
    ("QUIC, quinn", Way::Quic(quic::Library::Quinn)),
    ("QUIC, s2n-quic", Way::Quic(quic::Library::S2n)),
];

#[derive(Clone, Copy)]
enum Way {
    Udp { segments: bool },
    Tcp { tso: bool },
    Quic(quic::Library),
}

#[derive(Clone, Copy)]
pub struct Terms {
    pub duration: Duration,
    pub payload_bytes: usize,
    /// Measure round trips of [`REQUEST_BYTES`] instead of throughput.
    pub latency: bool,
}

pub const REQUEST_BYTES: usize = 64;

#[derive(Debug, Default)]
pub struct Outcome {
    /// Received bytes, and the time from the first to the last.
    pub bytes: u64,
    pub took: Duration,
    pub round_trips: Vec<Duration>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: f64| match arguments.get(place) {
        Some(word) => word.parse().map_err(|error| io::Error::other(format!("{word}: {error}"))),
        None => Ok(default),
    };
    let (seconds, rounds, payload) = (number(0, 1.0)?, number(1, 5.0)?.max(1.0) as usize, number(2, 3000.0)?);
    let terms = Terms { duration: Duration::from_secs_f64(seconds), payload_bytes: payload as usize, latency: false };
    let pair = Pair::new()?;
    let mut rows: Vec<(Vec<f64>, Vec<f64>, Vec<Duration>)> = WAYS.map(|_| Default::default()).into();
    for _ in 0..rounds {
        for ((_, way), (gbps, cpu, round_trips)) in WAYS.iter().zip(&mut rows) {
            let busy = net::busy()?;
            let carried = run(*way, &pair, terms)?;
            let busy = net::busy()?.saturating_sub(busy);
            gbps.push(carried.bytes as f64 * 8e-9 / carried.took.as_secs_f64());
            cpu.push(busy.as_secs_f64() / (carried.bytes as f64 * 1e-9));
            round_trips.extend(run(*way, &pair, Terms { latency: true, ..terms })?.round_trips);
        }
    }
    println!("{payload}-byte payloads, medians of {rounds} rounds of {seconds} s, interleaved\n");
    println!("| | Gb/s | least to most | CPU s/GB | round trip us p50 | p99 | p99.9 |\n|---|--:|--:|--:|--:|--:|--:|");
    for ((name, _), (mut gbps, mut cpu, mut round_trips)) in WAYS.iter().zip(rows) {
        gbps.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        round_trips.sort();
        let us = |share: f64| {
            let place = (round_trips.len() as f64 * share) as usize;
            round_trips.get(place).map_or("-".into(), |took| format!("{:.0}", took.as_secs_f64() * 1e6))
        };
        let (middle, most) = (gbps[rounds / 2], gbps[rounds - 1]);
        println!(
            "| {name} | {middle:.2} | {:.2} to {most:.2} | {:.2} | {} | {} | {} |",
            gbps[0],
            cpu[rounds / 2],
            us(0.5),
            us(0.99),
            us(0.999)
        );
    }
    Ok(())
}

fn run(way: Way, pair: &Pair, terms: Terms) -> io::Result<Outcome> {
    match way {
        Way::Udp { segments } => kernel::udp(pair.udp()?, terms, segments),
        Way::Tcp { tso } => {
            pair.set_tso(tso)?;
            kernel::tcp(pair.tcp()?, terms)
        }
        Way::Quic(library) => quic::run(library, pair.udp()?, terms),
    }
}
