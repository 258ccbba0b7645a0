//! Where a frame may go next: the equal-cost ports of a switch. [`scheme`](crate::scheme) chooses among them.

use crate::flow_hash::{FlowHash, HashFunction};
use crate::scheme::{FlowcutRule, Groups, Scheme};

/// Where a switch finds its routes: the kernel's maps, or the table of the simulator and of the search for a connection's paths.
pub trait Routes {
    /// A switch's constants; `None` = there is no such switch.
    fn switch(&self, switch: u32) -> Option<&SwitchConfig>;
    /// The equal-cost ports of `switch` toward `host` by the routes in force at `t_ps`; ports whose failure routing knows
    /// of are not among them. `None` = there is no such switch or host.
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group>;
    /// The port with this index among all members of groups.
    fn member(&self, index: u32) -> Option<u32>;
}

/// A run of members: the equal-cost egress ports of a switch toward a host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Index of the first member.
    pub first: u32,
    /// Number of places; 0 = no route. A port with a weight has as many.
    pub count: u16,
    /// Orders of the places, one run of `count` behind the other.
    pub orders: u8,
    /// Links to the host's switch, for schemes that compare ways.
    pub hops: u8,
    /// Index of the pointer among the switches' words, for schemes that have pointers.
    pub pointer: u32,
}

impl Group {
    /// The only way: one port.
    pub const fn one(first: u32) -> Self {
        Self { first, count: 1, orders: 1, hops: 0, pointer: 0 }
    }
}

/// A switch's own constants.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Expanded salt of its random choices.
    pub salt: u64,
    /// What its hash adds to a digest, see [`HashFunction::seed`].
    pub hash_seed: u64,
    /// A pause that ends a flowlet; for schemes that drain the longest time that a frame is under way.
    pub gap_ps: u64,
    /// A [`Scheme`].
    pub scheme: u32,
    /// Index of its scheme's memory among the switches' words, for schemes that have some.
    pub memory: u32,
    /// A [`FlowHash`].
    pub hash: u32,
    /// Bits by which it rotates a hash to the right.
    pub hash_offset: u32,
    /// The fabric's groups.
    pub groups: Groups,
    /// The group that it is of.
    pub group: u16,
    /// 1 = some scheme of the fabric [remembers](Scheme::remembers); else the fields below are 0.
    pub remembers: u32,
    /// Index of the hosts' words: the number of each one's leaf.
    pub hosts: u32,
    /// Its number among the switches with hosts; [`u32::MAX`]: it has none.
    pub leaf: u32,
    /// Switches with hosts in the fabric.
    pub leaves: u32,
    /// Most ports of such a switch that lead to switches.
    pub uplinks: u32,
    /// A draining flow may go on when at most so many of its packets are on their way, for schemes that drain.
    pub resume_packets: u32,
    /// When a flow drains, for schemes that drain.
    pub flowcut: FlowcutRule,
}

impl SwitchConfig {
    /// Expands a 32-bit salt so that neighbouring salts give unrelated choices.
    pub fn new(salt: u32, scheme: Scheme) -> Self {
        let salt = HashFunction::Ideal.seed(salt);
        Self { salt, hash_seed: salt, scheme: scheme as u32, ..Self::default() }
    }

    /// The same with another hash.
    pub fn hashed_by(self, hash: FlowHash, seed: u32, offset: u32) -> Self {
        Self { hash_seed: hash.function.seed(seed), hash: hash.number(), hash_offset: offset, ..self }
    }
}

/// The port that a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its number.
    pub port: u32,
    /// Its place among its equals.
    pub rank: u32,
    /// How it goes on, see [`Arrival::detour`](crate::scheme::Arrival::detour).
    pub detour: u8,
}
