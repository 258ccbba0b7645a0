//! The arguments of the commands.

mod look;
mod perf;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use spray_nic::Ports;
use spray_nic::device::BusyPoll;
use spray_nic::keys::{KeyError, PublicKey};

use crate::captures::Captures;
use crate::metrics::Publish;
use crate::settings::Overrides;

pub use self::look::{Doctor, Paths};
pub use self::perf::{Perf, Serve};

/// The arguments of `spray send`.
#[derive(Debug, Args)]
pub struct Send {
    /// Files and folders to send, each under its own name
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Address of `spray recv`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) to: IpAddr,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// The switches trim packets (cut them to their headers) instead of dropping them
    #[arg(long)]
    pub(crate) trimming: bool,
    #[command(flatten)]
    pub(crate) interface: Interface,
}

/// The arguments of `spray recv`.
#[derive(Debug, Args)]
pub struct Recv {
    /// Folder for files, under the sender's names; by default the current folder, unless it is `/`
    /// or a user's home
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Keep receiving after the first transfer, from several senders at once
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) interface: Interface,
}

/// The arguments of `spray tunnel`.
#[derive(Debug, Args)]
pub struct Tunnel {
    /// Other machine; if several, each with its networks: 10.0.0.2=10.9.0.2,10.8.0.0/16
    #[arg(long, value_name = "ADDRESS[=NETWORK,...]", required = true)]
    pub(crate) peer: Vec<crate::tunnel::remote::Remote>,
    /// Address of this machine in the tunnel, with the prefix of its network; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", required = true)]
    pub(crate) address: Vec<crate::tunnel::remote::Subnet>,
    /// Name of the TUN device; the kernel replaces %d by a number
    #[arg(long, value_name = "NAME", default_value = "spray%d")]
    pub(crate) name: String,
    /// MTU of the TUN device; TCP uses super-packets of 64 KiB regardless of it
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_000))]
    pub(crate) mtu: u32,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) interface: Interface,
}

/// The arguments of `spray keygen`.
#[derive(Debug, Args)]
pub struct Keygen {
    /// File to create (mode 0600); must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// The keys of the command and its peers.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Key of this side (`spray keygen FILE`): the same on all, or --trust the others' public keys
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Public key of another side; may be repeated. With an address, valid only there
    #[arg(long = "trust", value_name = "[ADDRESS=]KEY", requires = "key")]
    pub(crate) trusted: Vec<Trusted>,
    /// Pre-shared key of all sides, which protects recorded traffic against quantum computers
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) psk: Option<PathBuf>,
    /// Without keys: any host on the network may send, answer and read
    #[arg(long, conflicts_with = "key")]
    pub(crate) insecure: bool,
}

/// A trusted key, everywhere or at one address only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trusted {
    pub(crate) address: Option<IpAddr>,
    pub(crate) key: PublicKey,
}

impl std::str::FromStr for Trusted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, key) = text.split_once('=').map_or((None, text), |(address, key)| (Some(address), key));
        let address = address.map(|address| address.parse().map_err(|_| format!("{address:?} is no IP address")));
        Ok(Self { address: address.transpose()?, key: key.parse().map_err(|error: KeyError| error.to_string())? })
    }
}

/// The interface or device to use.
#[derive(Clone, Debug, Args)]
pub(crate) struct Way {
    /// Interface to send and receive on; optional with `--device udp`, which follows routes
    #[arg(long, value_name = "IF", required_unless_present = "device", required_if_eq("device", "xdp"))]
    pub(crate) interface: Option<String>,
    /// Kind of device, the same on all sides; by default xdp
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<Device>,
}

/// The kind of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// AF_XDP sockets on all queues of the interface, as root
    #[default]
    Xdp,
    /// UDP sockets of the kernel, as any user and in any container
    Udp,
}

/// The arguments of endpoints.
#[derive(Debug, Args)]
pub(crate) struct Interface {
    #[command(flatten)]
    pub(crate) way: Way,
    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) steered: Steered,
    /// Require zero-copy: the driver uses our memory directly
    #[arg(long, conflicts_with = "copy")]
    pub(crate) zero_copy: bool,
    /// Let the kernel copy every frame, which works with every driver
    #[arg(long)]
    pub(crate) copy: bool,
    /// Busy-poll the NIC: on, off, or auto (where published measurements show a gain)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "on", default_value = "auto")]
    pub(crate) busy_poll: BusyPoll,
    /// End a connection after this time without an answer of the peer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) publish: Publish,
    #[command(flatten)]
    pub(crate) captures: Captures,
}

/// The queue, ports and address to use.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Steered {
    /// Use only this queue, to which the NIC steers the UDP ports; by default all queues
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
    /// First of the 64 UDP ports for frames, the same on all sides
    #[arg(long = "port", short, value_name = "PORT", default_value = "61440", value_parser = ports)]
    pub(crate) ports: Ports,
    /// Own address; by default the interface's first of the right family, or that of the route
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) from: Option<IpAddr>,
}

fn address(text: &str) -> Result<IpAddr, String> {
    match text.split_once('%') {
        Some((address, zone)) => Err(format!("give {address} without %{zone}: --interface says where it is")),
        None => text.parse().map_err(|error: std::net::AddrParseError| error.to_string()),
    }
}

fn port_range(text: &str) -> Result<(u16, u16), &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok()).filter(|(first, last)| 0 < *first && first <= last);
    range.ok_or("expected two ports from 1 to 65535, as in 49152-49215")
}

fn ports(text: &str) -> Result<Ports, String> {
    let allowed = || format!("allowed: multiples of {} from 1024 to 65472, such as 4992", Ports::COUNT);
    text.parse().ok().and_then(Ports::new).ok_or_else(allowed)
}

/// Reads a time of seconds, from a tenth of one to a minute.
///
/// # Errors
/// What is expected, for anything else.
pub fn seconds(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|seconds| (0.1..=60.0).contains(seconds)).ok_or("expected seconds from 0.1 to 60")
}
