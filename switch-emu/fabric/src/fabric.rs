//! The engine-neutral description of a fabric, compiled from a topology. Times are scenario
//! picoseconds, rates bits per second, sizes bytes of Ethernet frame.

pub use spray_pipeline::config::{MAX_CHANGES, MAX_EPOCHS, MAX_RATE_BPS, MIN_RATE_BPS, MIN_RATE_PPM, Thresholds};
pub use spray_pipeline::link::{DropEvery, Flap, LinkChange, LinkState};
use std::net::{Ipv4Addr, Ipv6Addr};

use spray_pipeline::shim::SHIM_BYTES;

use crate::node::Node;
use crate::{Groups, Switching};

/// Hosts, switches, egress ports, and the routes between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// Seed of the switches' random decisions (marking, random loss).
    pub seed: u64,
    /// Hosts, by number.
    pub hosts: Vec<FabricHost>,
    /// Salts of the switches' path hashes, by switch number, which make their choices independent.
    pub salts: Vec<u32>,
    /// How switches choose among equal-cost ports.
    pub switching: Switching,
    /// A dragonfly's groups.
    pub groups: Groups,
    /// Egress ports of all switches, by port number.
    pub ports: Vec<Port>,
    /// At most [`MAX_EPOCHS`] routing tables, in order of `valid_from_ps`, from 0 on.
    pub routes: Vec<RouteEpoch>,
}

/// Largest IP packet on a testbed: the limit of native XDP on veth (one page), less the shim.
pub const MAX_IP_BYTES: u32 = 3_498 - SHIM_BYTES as u32;

/// A host; switches accept either address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricHost {
    /// Unique name, such as `h3`.
    pub name: String,
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
    /// Ethernet address of the host's interface.
    pub mac: [u8; 6],
    /// Timed changes of the host's own link, as [`Port::changes`].
    pub changes: Vec<LinkChange>,
}

/// An egress port and its cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Unique name: `leaf0->spine1` or `leaf0->h3`.
    pub name: String,
    /// The switch that owns the port.
    pub switch: usize,
    /// The cable's far end.
    pub to: Node,
    /// Line rate, 10 Mb/s to 1 Tb/s.
    pub rate_bps: u64,
    /// Propagation delay of the cable.
    pub latency_ps: u64,
    /// Queue limits and marking thresholds.
    pub queue: Thresholds,
    /// At most [`MAX_CHANGES`] timed changes, in order of `at_ps`; [`LinkState::UP`] before.
    pub changes: Vec<LinkChange>,
}

/// The routes from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEpoch {
    /// Start of the epoch.
    pub valid_from_ps: u64,
    /// `[switch][host]`: the equal-cost egress ports; empty if the switch has no route.
    pub groups: Vec<Vec<Vec<usize>>>,
}
