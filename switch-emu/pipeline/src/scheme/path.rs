//! PathID: the uplinks of a frame's path.
//!
//! A PathID has an uplink per tier: the number of a port that leads up, from 1 on; 0: any. In two
//! tiers these are the eight bits of the Reunion paper (§3.1); ConWeave has the same.

use super::forwarding::Forwarding;
use crate::hash::mix;
use crate::routes::{Group, SwitchConfig};

const UPLINK_BITS: u32 = 8;
const UPLINK_MASK: u32 = 0xff;
const TIERS: u32 = 2;

/// The uplink of a PathID after `hops` links; 0: none.
#[inline(always)]
pub(super) const fn uplink(path: u32, hops: u32) -> u32 {
    if hops < TIERS { path >> (hops * UPLINK_BITS) & UPLINK_MASK } else { 0 }
}

/// Sets the uplink after `hops` links in a PathID.
#[inline(always)]
pub(super) const fn with_uplink(path: u32, hops: u32, uplink: u32) -> u32 {
    if hops >= TIERS {
        return path;
    }
    let shift = hops * UPLINK_BITS;
    path & !(UPLINK_MASK << shift) | (uplink & UPLINK_MASK) << shift
}

/// The ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathEnds {
    pub(super) t_ps: u64,
    /// The first switch.
    pub(super) from: u32,
    pub(super) host: u32,
    /// The number of the host's leaf.
    pub(super) target: u32,
}

/// Whether a group, whose ports ascend, has a port.
#[inline(always)]
pub(super) fn has<F: Forwarding>(tables: &F, group: &Group, port: u32) -> bool {
    let (mut low, mut count) = (0, u32::from(group.count));
    // Groups have fewer than 2^16 places.
    for _ in 0..16 {
        if count < 2 {
            break;
        }
        let half = count / 2;
        let above = tables.member(group.first.wrapping_add(low + half)).is_some_and(|member| member <= port);
        (low, count) = if above { (low + half, count - half) } else { (low, half) };
    }
    count == 1 && tables.member(group.first.wrapping_add(low)) == Some(port)
}

/// The paths to a host.
pub(super) struct Paths {
    first: Group,
    ports: u32,
    /// At least 1.
    pub(super) count: u32,
}

impl Paths {
    #[inline(always)]
    pub(super) fn of<F: Forwarding>(tables: &F, ends: &PathEnds) -> Option<Self> {
        let first = tables.group(ends.t_ps, ends.from, ends.host)?;
        let second = tables.group(ends.t_ps, tables.far_end(tables.member(first.first)?)?, ends.host)?;
        let ports = u32::from(first.count).max(1);
        Some(Self { first, ports, count: ports.wrapping_mul(u32::from(second.count).max(1)).max(1) })
    }

    /// The PathID of the path with this number.
    #[inline(always)]
    pub(super) fn path<F: Forwarding>(&self, tables: &F, ends: &PathEnds, number: u32) -> Option<u32> {
        path(tables, ends, &self.first, number % self.ports, number / self.ports)
    }
}

/// The PathID over these places of the groups on the first two switches.
#[inline(always)]
fn path<F: Forwarding>(tables: &F, ends: &PathEnds, group: &Group, first: u32, second: u32) -> Option<u32> {
    let port = tables.member(group.first.wrapping_add(first))?;
    let path = tables.uplink(port)?;
    let above = tables.group(ends.t_ps, tables.far_end(port)?, ends.host)?;
    if above.count < 2 {
        return Some(path);
    }
    let port = tables.member(above.first.wrapping_add(second % u32::from(above.count)))?;
    Some(with_uplink(path, 1, tables.uplink(port)?))
}

#[inline(always)]
pub(super) fn random_bits(switch: &SwitchConfig, flow: u64, t_ps: u64) -> u32 {
    (mix(flow ^ t_ps ^ switch.salt) >> 32) as u32
}
