//! What the commands take that send real packets.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use crate::settings::{Overrides, TransportOverrides};

#[derive(Debug, Args)]
pub struct Demo {
    /// The payload that every host sends, otherwise generated
    #[arg(long, value_name = "FILE", conflicts_with = "bytes")]
    pub file: Option<PathBuf>,
    /// Payload bytes of each host, when no file is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub bytes: Option<u64>,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The scenario: see docs/scenario.md and tests/scenarios/
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Common {
    /// Where to write the results, otherwise ./results/ and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Root of all random choices, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Send {
    /// The file to send
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where `spray recv` listens
    #[arg(long, value_name = "ADDRESS")]
    pub to: IpAddr,
    /// The Ethernet address to send to, otherwise asked of the kernel: the receiver's, or that of the next router
    #[arg(long, value_name = "MAC")]
    pub peer_mac: Option<Mac>,
    #[command(flatten)]
    pub overrides: TransportOverrides,
    /// The path's rate: that of the slowest link
    #[arg(long, value_name = "GBPS", default_value_t = 10.0, value_parser = rate)]
    pub gbps: f64,
    /// Round-trip time of the empty network
    #[arg(long, value_name = "US", default_value_t = 100.0, value_parser = microseconds)]
    pub rtt_us: f64,
    /// The switches trim (cut to the header) instead of dropping
    #[arg(long)]
    pub trimming: bool,
    #[command(flatten)]
    pub interface: Interface,
}

#[derive(Debug, Args)]
pub struct Recv {
    /// A folder to receive into under the sender's file name, or the file to write
    #[arg(long, value_name = "DIR|FILE", default_value = ".")]
    pub out: PathBuf,
    /// Go on after the first file
    #[arg(long)]
    pub keep: bool,
    #[command(flatten)]
    pub overrides: TransportOverrides,
    #[command(flatten)]
    pub interface: Interface,
}

/// The interface that an endpoint takes over, and how.
#[derive(Debug, Args)]
pub struct Interface {
    /// The interface to send and receive on
    #[arg(long, value_name = "IF")]
    pub interface: String,
    /// The interface's queue; flows to UDP port 4793 must be steered to it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub queue: u32,
    /// The own address, otherwise the interface's first one of the right family
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// Let the driver use our memory directly, or fail
    #[arg(long, conflicts_with = "copy")]
    pub zero_copy: bool,
    /// Let the kernel copy every frame: works everywhere
    #[arg(long)]
    pub copy: bool,
    /// Give up when the peer has been silent for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchVeth {
    /// Payload bytes per packet
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(64..=3300))]
    pub payload: u32,
    /// Seconds per measurement
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub seconds: u64,
    /// Times that each is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}

/// An Ethernet address such as `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl std::str::FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected six pairs of hexadecimal digits, such as 02:00:00:00:00:01";
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(EXPECTED)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| EXPECTED)?;
        }
        if parts.next().is_some() { Err(EXPECTED) } else { Ok(Self(bytes)) }
    }
}

fn rate(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|gbps| (0.001..=1000.0).contains(gbps)).ok_or("expected Gb/s from 0.001 to 1000")
}

fn microseconds(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|us| (1.0..=1e6).contains(us)).ok_or("expected microseconds from 1 to 1000000")
}
