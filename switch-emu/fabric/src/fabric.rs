//! The engine-neutral description of a fabric: what a topology compiles into and every engine runs.
//!
//! All times are scenario picoseconds, all rates bits per second, all sizes bytes of Ethernet frame.

use spray_pipeline::config::Thresholds;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Hosts, switches, egress ports, and the routes between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// Root of every random decision that the switches take (marking, random loss).
    pub seed: u64,
    /// End points, indexed by host number.
    pub hosts: Vec<Host>,
    /// Switches, indexed by switch number.
    pub switches: Vec<Switch>,
    /// Egress ports of all switches, indexed by port number.
    pub ports: Vec<Port>,
    /// Routing tables in order of `valid_from_ps`; the first is valid from 0. At most [`MAX_EPOCHS`].
    pub routes: Vec<RouteEpoch>,
}

/// Most routing epochs that a fabric may have.
pub const MAX_EPOCHS: usize = spray_pipeline::config::MAX_EPOCHS;
/// Most timed changes that one port may have.
pub const MAX_CHANGES: usize = spray_pipeline::config::MAX_CHANGES;

/// An end point; switches know it by either address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique name, such as `h3`.
    pub name: String,
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// IPv6 address.
    pub v6: Ipv6Addr,
    /// Ethernet address of the host's interface.
    pub mac: [u8; 6],
}

/// A switch: a name and the salt of its path hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Unique name, such as `leaf0`.
    pub name: String,
    /// Makes this switch's choice independent of the others'.
    pub salt: u32,
}

/// Where a port's cable ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// At the host with this number.
    Host(usize),
    /// At the switch with this number.
    Switch(usize),
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
    pub queue: QueueConfig,
    /// Timed changes in order of `at_ps`; before the first the link is [`LinkState::UP`]. At most [`MAX_CHANGES`].
    pub changes: Vec<LinkChange>,
}

/// Limits of a port's queue; the kernel's switch takes at most 8 MiB each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Data bytes that may wait; a frame that would exceed it is trimmed or dropped.
    pub limit_bytes: u32,
    /// Below this many waiting data bytes nothing is marked.
    pub mark_min_bytes: u32,
    /// From this many waiting data bytes everything is marked; in between linearly.
    pub mark_max_bytes: u32,
    /// Control bytes (acknowledgements, trimmed headers) that may wait.
    pub control_limit_bytes: u32,
    /// Whether a data frame over the limit is cut to its header instead of dropped.
    pub trim: bool,
}

impl From<&QueueConfig> for Thresholds {
    fn from(queue: &QueueConfig) -> Self {
        Self {
            limit: queue.limit_bytes,
            mark_min: queue.mark_min_bytes,
            mark_max: queue.mark_max_bytes,
            control_limit: queue.control_limit_bytes,
            trim: queue.trim,
        }
    }
}

/// A link's state from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// When the state begins.
    pub at_ps: u64,
    /// The whole state, not a difference.
    pub state: LinkState,
}

/// What a link does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// False: administratively down; frames are dropped with the cause `down`.
    pub up: bool,
    /// True: every frame vanishes although the link looks healthy.
    pub silent_drop: bool,
    /// Share of the line rate that is left, in millionths.
    pub rate_ppm: u32,
    /// Probability that a frame vanishes, in millionths.
    pub loss_ppm: u32,
    /// Periodic outages.
    pub flap: Option<Flap>,
    /// Losses counted in frames; only the simulator plays them.
    pub drop_every: Option<DropEvery>,
}

impl LinkState {
    /// A healthy link.
    pub const UP: Self =
        Self { up: true, silent_drop: false, rate_ppm: 1_000_000, loss_ppm: 0, flap: None, drop_every: None };
}

impl Default for LinkState {
    fn default() -> Self {
        Self::UP
    }
}

/// Periodic outage: the link is out for the first `down_ps` of every `period_ps`, counted from the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// Length of a cycle, above 0.
    pub period_ps: u64,
    /// Part of the cycle during which every frame vanishes.
    pub down_ps: u64,
}

/// Periodic loss: of every `pass + lose` frames, counted from the change, the last `lose` vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropEvery {
    /// Frames that get through.
    pub pass: u32,
    /// Frames after them that vanish.
    pub lose: u32,
}

/// The routes that hold from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEpoch {
    /// When these routes come into force.
    pub valid_from_ps: u64,
    /// `[switch][host]` -> the egress ports that share the load; empty where the switch has no route.
    pub groups: Vec<Vec<Vec<usize>>>,
}
