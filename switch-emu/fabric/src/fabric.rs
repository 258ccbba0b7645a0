//! The engine-neutral description of a fabric: what a topology compiles into and every engine runs.
//!
//! All times are scenario picoseconds, all rates bits per second, all sizes bytes of Ethernet frame.

pub use spray_pipeline::config::{MAX_CHANGES, MAX_EPOCHS, MAX_RATE_BPS, MIN_RATE_BPS, MIN_RATE_PPM, Thresholds};
pub use spray_pipeline::link::{DropEvery, Flap, LinkChange, LinkState};
use std::net::{Ipv4Addr, Ipv6Addr};

use spray_pipeline::shim::SHIM_BYTES;

use crate::node::Node;
use crate::{Groups, Switching};

/// Hosts, switches, egress ports, and the routes between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// Root of every random decision that the switches take (marking, random loss).
    pub seed: u64,
    /// End points, indexed by host number.
    pub hosts: Vec<FabricHost>,
    /// Salts of the switches' path hashes, indexed by switch number: they make the switches' choices independent.
    pub salts: Vec<u32>,
    /// How switches choose among ports of equal cost.
    pub switching: Switching,
    /// A dragonfly's groups.
    pub groups: Groups,
    /// Egress ports of all switches, indexed by port number.
    pub ports: Vec<Port>,
    /// Routing tables in order of `valid_from_ps`; the first is valid from 0. At most [`MAX_EPOCHS`].
    pub routes: Vec<RouteEpoch>,
}

/// Largest IP packet that the links of a testbed carry: with its shim, native XDP on veth takes no more in one page.
pub const MAX_IP_BYTES: u32 = 3_498 - SHIM_BYTES as u32;

/// An end point; switches know it by either address.
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
    /// Timed changes of the link that leaves it, as [`Port::changes`].
    pub changes: Vec<LinkChange>,
}

/// An egress port and the cable that leaves it.
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
    /// Timed changes in order of `at_ps`; before the first the link is [`LinkState::UP`]. At most [`MAX_CHANGES`].
    pub changes: Vec<LinkChange>,
}

/// The routes that hold from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEpoch {
    /// When these routes come into force.
    pub valid_from_ps: u64,
    /// `[switch][host]` -> the egress ports that share the load; empty where the switch has no route.
    pub groups: Vec<Vec<Vec<usize>>>,
}
