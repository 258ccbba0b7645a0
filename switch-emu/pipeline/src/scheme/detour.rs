//! Ways through a dragonfly over a third group: Valiant's, and UGAL's choice between that and the shortest one (Kim, Dally, Scott and
//! Abts, *Technology-Driven, Highly-Scalable Dragonfly Topology*, ISCA 2008).
//!
//! The first switch decides, and notes in the frame where it goes first. A switch of that group, or one that cannot make sense of
//! the note, sends the frame on by the shortest way, for good.

use super::{Arrival, Forwarding, Look, Measure, Scheme, hashed};
use crate::hash::{mix, pick};
use crate::routes::{Choice, Group, SwitchConfig};

/// A dragonfly's groups. Switches and hosts are numbered group by group, hosts switch by switch. All 0: there are none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// How many.
    pub count: u16,
    /// Switches of each.
    pub switches: u16,
    /// Hosts of each switch.
    pub hosts: u16,
}

/// Most groups that a frame's note can tell apart.
pub const MOST_GROUPS: u16 = 253;

/// Notes of a frame: nobody has decided; it goes by the shortest way; from here on the number of the group that it goes to first.
const UNDECIDED: u8 = 0;
const SHORTEST: u8 = 1;
const FIRST: u8 = 2;

impl Groups {
    /// Whether the fabric has any.
    pub const fn exist(self) -> bool {
        self.count > 0
    }

    /// The group of a switch.
    pub fn of_switch(self, switch: usize) -> u16 {
        (switch / usize::from(self.switches.max(1))) as u16
    }

    #[inline(always)]
    fn hosts_of_group(self) -> u32 {
        u32::from(self.switches) * u32::from(self.hosts)
    }

    /// The host of `group` that a frame goes toward: the same one at all switches, so that each leads nearer.
    #[inline(always)]
    fn toward(self, group: u8, crc: u32) -> u32 {
        let hosts = self.hosts_of_group();
        u32::from(group) * hosts + pick((mix(u64::from(crc)) >> 32) as u32, hosts)
    }
}

/// The ports toward a host, and one of them.
struct Way {
    group: Group,
    rank: u32,
}

/// Chooses a frame's port: on its way to another group, or on the shortest one.
//= docs/specs/switching.md#SWC-30 over a third group
#[inline(always)]
pub(super) fn choose<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Arrival,
    scheme: Scheme,
) -> Option<Choice> {
    if let Some(via) = via(switch, frame)
        && let Some(way) = way(tables, switch, frame, switch.groups.toward(via, frame.crc))
        && (frame.detour != UNDECIDED || scheme == Scheme::Valiant || is_worth_it(tables, switch, frame, via, &way))
    {
        return way.choice(tables, FIRST + via);
    }
    way(tables, switch, frame, frame.host)?.choice(tables, SHORTEST)
}

/// The group that the frame goes to first: the one that was noted, or that is drawn now.
//= docs/specs/switching.md#SWC-32 a note that makes no sense
#[inline(always)]
fn via(switch: &SwitchConfig, frame: &Arrival) -> Option<u8> {
    let here = u32::from(switch.group);
    match frame.detour {
        UNDECIDED => draw(switch, frame),
        SHORTEST => None,
        note => {
            Some(note - FIRST).filter(|via| u32::from(*via) < u32::from(switch.groups.count) && u32::from(*via) != here)
        }
    }
}

/// A random group that is neither this one nor the destination's.
//= docs/specs/switching.md#SWC-30 over a third group
#[inline(always)]
fn draw(switch: &SwitchConfig, frame: &Arrival) -> Option<u8> {
    let (here, count) = (u32::from(switch.group), u32::from(switch.groups.count.min(MOST_GROUPS)));
    let target = frame.host.checked_div(switch.groups.hosts_of_group())?;
    if count < 3 || target == here {
        return None;
    }
    let (low, high) = (here.min(target), here.max(target));
    let mut group = pick(frame.random(switch) as u32, count - 2);
    group += u32::from(group >= low);
    group += u32::from(group >= high);
    Some(group as u8)
}

/// The way from here toward a host; of several ports of equal cost a random one.
//= docs/specs/switching.md#SWC-33 among ports of equal cost
#[inline(always)]
fn way<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Arrival, host: u32) -> Option<Way> {
    let group = tables.group(frame.t_ps, frame.switch, host)?;
    match group.count {
        0 => None,
        1 => Some(Way { group, rank: 0 }),
        _ => Some(Way { group, rank: hashed::random(switch, &group, frame) }),
    }
}

/// Whether what waits on the shortest way, times its links, is more than on the way over group `via`.
//= docs/specs/switching.md#SWC-31 where a detour is worth it
#[inline(always)]
fn is_worth_it<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Arrival, via: u8, detour: &Way) -> bool {
    let Some(shortest) = way(tables, switch, frame, frame.host) else { return true };
    let third = switch.groups.toward(via, frame.crc);
    let Some(at) = third.checked_div(u32::from(switch.groups.hosts)) else { return false };
    let rest = tables.group(frame.t_ps, at, frame.host).map_or(0, |group| u64::from(group.hops));
    let links = u64::from(detour.group.hops) + rest;
    shortest.bytes(tables, frame) * u64::from(shortest.group.hops) > detour.bytes(tables, frame) * links
}

impl Way {
    #[inline(always)]
    fn member(&self) -> u32 {
        self.group.first.wrapping_add(self.rank)
    }

    #[inline(always)]
    fn choice<F: Forwarding>(&self, tables: &F, detour: u8) -> Option<Choice> {
        Some(Choice { port: tables.member(self.member())?, rank: self.rank, detour })
    }

    /// Bytes that wait at its port.
    #[inline(always)]
    fn bytes<F: Forwarding>(&self, tables: &F, frame: &Arrival) -> u64 {
        tables.score(self.member(), frame.t_ps, &Look { measure: Measure::Bytes, random: 0, row: 0 }, 0) >> 32
    }
}
