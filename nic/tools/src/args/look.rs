//! The arguments of `spray paths` and `spray doctor`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use spray_nic::Ports;
use spray_nic::keys::PublicKey;

use super::{address, port_range, ports};

/// Each takes a socket, and the usual limit of open files is 1,024.
const MOST_VALUES: u16 = 512;

/// The arguments of `spray paths`.
#[derive(Debug, Args)]
pub struct Paths {
    /// Address of `spray recv`, `serve` or `tunnel`; other hosts answer too, but slowly
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub(crate) address: IpAddr,
    /// UDP source ports to choose entropy values from; by default those that all endpoints have
    #[arg(long, value_name = "FIRST-LAST", default_value = "49152-49183", value_parser = port_range)]
    pub(crate) ports: (u16, u16),
    /// Maximum number of values to try, spread over these ports
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_VALUES)))]
    pub(crate) values: u16,
    /// Probes of each value to the far end
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) probes: u32,
    /// Maximum number of hops to examine
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=60))]
    pub(crate) hops: u8,
    /// First of the 64 UDP ports of the endpoint there
    #[arg(long = "port", value_name = "PORT", default_value = "61440", value_parser = ports)]
    pub(crate) port: Ports,
    /// Source address; by default that of the route
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) from: Option<IpAddr>,
    /// Key of the endpoint there, if both sides share it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Public key of the endpoint there: if it has one, it does not answer without
    #[arg(long, value_name = "KEY", conflicts_with = "key")]
    pub(crate) trust: Option<PublicKey>,
}

impl Paths {
    /// The source ports, at an odd distance so that all of their bits vary.
    pub(crate) fn source_ports(&self) -> Vec<u16> {
        let (first, last) = self.ports;
        let (ports, values) = (u32::from(last - first) + 1, u32::from(self.values));
        let step = match ports / values {
            0 | 1 => 1,
            step => (step - 1) | 1,
        };
        (first..=last).step_by(step as usize).take(values as usize).collect()
    }
}

/// The arguments of `spray doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Interface to examine: driver, settings, placement, and sockets on each queue
    #[arg(value_name = "IF")]
    pub(crate) interface: Option<String>,
    /// Host behind it that answers echo requests, which are sent from each queue
    #[arg(long, value_name = "ADDRESS", requires = "interface")]
    pub(crate) peer: Option<IpAddr>,
    /// Change what is safe to change, and print the old values. Some drivers take the link down for
    /// seconds
    #[arg(long, requires = "interface")]
    pub(crate) fix: bool,
    /// Open no sockets and attach no program, for which some drivers take the link down
    #[arg(long, requires = "interface", conflicts_with = "peer")]
    pub(crate) no_probe: bool,
}

impl Doctor {
    /// Whether an interface is to be examined.
    #[must_use]
    pub fn has_interface(&self) -> bool {
        self.interface.is_some()
    }
}
