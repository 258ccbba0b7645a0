//! Stateless choices: a hash of the five-tuple (ECMP, WCMP), or random bits (OFAN §6.1).

use super::forwarding::Arrival;
use super::list::Scheme;
use crate::flow_hash::{FlowHash, place};
#[cfg(not(target_arch = "bpf"))]
use crate::frame::Frame;
use crate::hash::pick;
use crate::routes::{Choice, Group, Routes, SwitchConfig};

/// The place of a flow in a group. A port has as many places as its weight.
//= docs/specs/switch.md#SW-5 the choice within a group
//= docs/specs/switching.md#SWC-4 weights
#[inline(always)]
pub(super) fn rank(switch: &SwitchConfig, group: &Group, flow: u64) -> u32 {
    let function = FlowHash::from_number(switch.hash).function;
    place(function, flow ^ switch.hash_seed, switch.hash_offset, u32::from(group.count))
}

#[cfg(not(target_arch = "bpf"))]
pub(super) fn port(routes: &impl Routes, switch: &SwitchConfig, frame: &Frame, host: u32) -> Option<u32> {
    let group = routes.group(frame.time_ps, frame.switch, host)?;
    let rank = match group.count {
        0 => return None,
        1 => 0,
        _ => rank(switch, &group, frame.flow),
    };
    routes.member(group.first.wrapping_add(rank))
}

#[inline(always)]
pub(super) fn random(switch: &SwitchConfig, group: &Group, frame: &Arrival) -> u32 {
    pick((frame.random(switch) >> 32) as u32, u32::from(group.count))
}

/// Returns the choice by hash, for path discovery without frames. `None` = no route, or the scheme
/// does not hash. In a resilient group the rank is that of the port's first place.
#[inline]
pub fn hashed(routes: &impl Routes, t_ps: u64, switch: u32, host: u32, flow: u64) -> Option<Choice> {
    let config = routes.switch(switch)?;
    let group = routes.group(t_ps, switch, host)?;
    let scheme = Scheme::from_number(config.scheme);
    let rank = match group.count {
        0 => return None,
        1 => 0,
        _ if scheme.hashes() => rank(config, &group, flow),
        _ => return None,
    };
    let port_at = |place: u32| routes.member(group.first.wrapping_add(place));
    let port = port_at(rank)?;
    let first = || (0..rank).find(|place| port_at(*place) == Some(port));
    let rank = if scheme == Scheme::EcmpResilient { first().unwrap_or(rank) } else { rank };
    Some(Choice { port, rank, detour: 0 })
}
