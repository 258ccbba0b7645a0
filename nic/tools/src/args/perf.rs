//! The arguments of `spray serve` and `spray perf`.

use std::net::IpAddr;

use clap::Args;

use super::{Interface, address, seconds};
use crate::settings::Overrides;

/// The arguments of `spray serve`.
#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) interface: Interface,
}

/// The arguments of `spray perf`.
#[derive(Debug, Args)]
pub struct Perf {
    /// Address of `spray serve`
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub(crate) server: IpAddr,
    /// Duration of the measurement
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) time: u32,
    /// Rate limit of each connection in bits a second, 0 for none; K, M and G are powers of 1000
    #[arg(long, short, value_name = "RATE", default_value = "0", conflicts_with = "latency", value_parser = bitrate)]
    pub(crate) bitrate: u64,
    /// Number of parallel connections
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) parallel: u32,
    /// Time between two lines
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: f64,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with_all = ["bidirectional", "latency"])]
    pub(crate) reverse: bool,
    /// Both send at the same time
    #[arg(long, visible_alias = "bidir", conflicts_with = "latency")]
    pub(crate) bidirectional: bool,
    /// Measure round trips of small messages, one at a time on each connection
    #[arg(long)]
    pub(crate) latency: bool,
    /// Number of further connections that send meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, requires = "latency", value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) load: u32,
    /// Size of a message; by default 1 MiB, with --latency 64, with --bitrate what goes in 10 ms
    #[arg(long, short, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::perf::MOST_BYTES)))]
    pub(crate) length: Option<u32>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) interface: Interface,
}

/// Parses a rate with one of iperf3's suffixes, which are powers of 1000.
fn bitrate(text: &str) -> Result<u64, &'static str> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let power = ["", "k", "m", "g", "t"].iter().position(|known| suffix.eq_ignore_ascii_case(known));
    let rate = digits.parse().ok().zip(power).map(|(value, power): (f64, _)| value * 1000_f64.powi(power as i32));
    let rate = rate.filter(|rate| *rate == 0.0 || (1e3..=1e12).contains(rate));
    rate.map(|rate| rate as u64).ok_or("expected bits a second from 1K to 1T, as in 100M, or 0 for as many as go")
}
