//! Where a frame goes next: the choice among the equal-cost ports of a switch.

use crate::hash::{mix, pick};

/// Where a switch finds its routes.
///
/// The kernel's maps, the simulator's tables and the search for a connection's paths all choose by [`choose`] over this.
pub trait Routes {
    /// Expanded salt of a switch's path hash, see [`SwitchConfig`]; `None` = there is no such switch.
    fn salt(&self, switch: u32) -> Option<u64>;
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
    /// Number of members; 0 = no route.
    pub count: u32,
}

/// A switch's own constants.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Expanded salt of the path hash.
    pub salt: u64,
}

impl SwitchConfig {
    /// Expands a 32-bit salt so that neighbouring salts give unrelated choices.
    pub fn new(salt: u32) -> Self {
        Self { salt: mix(u64::from(salt) ^ 0x9e37_79b9_7f4a_7c15) }
    }
}

/// The port that a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its number.
    pub port: u32,
    /// Its place among its equals.
    pub rank: u32,
}

/// Chooses the port by which a frame to `host` leaves `switch`, where it arrives at `t_ps`.
///
/// `flow` is the digest of the frame's five-tuple. `None` = no route.
//= docs/specs/switch.md#SW-4 routes and epochs
//= docs/specs/switch.md#SW-5 the choice within a group
#[inline(always)]
pub fn choose(routes: &impl Routes, t_ps: u64, switch: u32, host: u32, flow: u64) -> Option<Choice> {
    let salt = routes.salt(switch)?;
    let group = routes.group(t_ps, switch, host)?;
    if group.count == 0 {
        return None;
    }
    let rank = pick((mix(flow ^ salt) >> 32) as u32, group.count);
    Some(Choice { port: routes.member(group.first.wrapping_add(rank))?, rank })
}

#[cfg(test)]
mod tests;
