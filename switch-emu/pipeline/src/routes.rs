//! The equal-cost ports of a switch. [`scheme`](crate::scheme) chooses among them.

use crate::flow_hash::{FlowHash, HashFunction};
use crate::scheme::{FlowcutRule, Groups, Scheme};

/// The source of routes: the kernel's maps, or a table of the simulator or of path discovery.
pub trait Routes {
    /// Returns a switch's constants; `None` = no such switch.
    fn switch(&self, switch: u32) -> Option<&SwitchConfig>;
    /// Returns the equal-cost ports of `switch` toward `host` at `t_ps`, without those whose
    /// failure routing has seen. `None` = no such switch or host.
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group>;
    /// Returns the port with this index among all members of groups.
    fn member(&self, index: u32) -> Option<u32>;
}

/// A run of members: the equal-cost egress ports of a switch toward a host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Index of the first member.
    pub first: u32,
    /// Number of places; 0 = no route. A port with a weight has that many.
    pub count: u16,
    /// Number of orders of the places, each a run of `count`.
    pub orders: u8,
    /// Links to the host's switch, for schemes that compare paths.
    pub hops: u8,
    /// Index of the pointer among the switches' words, for schemes that have pointers.
    pub pointer: u32,
}

impl Group {
    /// A group of one port.
    pub const fn one(first: u32) -> Self {
        Self { first, count: 1, orders: 1, hops: 0, pointer: 0 }
    }
}

/// The constants of a switch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Expanded salt of random choices.
    pub salt: u64,
    /// Added to a digest, see [`HashFunction::seed`].
    pub hash_seed: u64,
    /// The pause that ends a flowlet; for schemes that drain, a frame's maximum time in flight.
    pub gap_ps: u64,
    /// A [`Scheme`].
    pub scheme: u32,
    /// Index of the scheme's memory among the switches' words.
    pub memory: u32,
    /// A [`FlowHash`].
    pub hash: u32,
    /// Bits by which a hash is rotated to the right.
    pub hash_offset: u32,
    /// The fabric's groups.
    pub groups: Groups,
    /// The group of this switch.
    pub group: u16,
    /// 1 = a scheme of the fabric [uses trails](Scheme::uses_trail); else the next fields are 0.
    pub uses_trail: u32,
    /// Index of the words with each host's leaf number.
    pub hosts: u32,
    /// Its number among the switches with hosts; [`u32::MAX`]: it has no hosts.
    pub leaf: u32,
    /// Number of switches with hosts.
    pub leaves: u32,
    /// Maximum number of ports to switches of such a switch.
    pub uplinks: u32,
    /// A draining flow resumes with at most this many packets in flight, for schemes that drain.
    pub resume_packets: u32,
    /// The condition for draining, for schemes that drain.
    pub flowcut: FlowcutRule,
}

impl SwitchConfig {
    /// Creates constants from a 32-bit salt; neighbouring salts give unrelated choices.
    pub fn new(salt: u32, scheme: Scheme) -> Self {
        let salt = HashFunction::Ideal.seed(salt);
        Self { salt, hash_seed: salt, scheme: scheme as u32, ..Self::default() }
    }

    /// Replaces the hash.
    pub fn hashed_by(self, hash: FlowHash, seed: u32, offset: u32) -> Self {
        Self { hash_seed: hash.function.seed(seed), hash: hash.number(), hash_offset: offset, ..self }
    }
}

/// The chosen port of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The port's number.
    pub port: u32,
    /// Its place in the group.
    pub rank: u32,
    /// The frame's further detour, see [`Arrival::detour`](crate::scheme::Arrival::detour).
    pub detour: u8,
}
