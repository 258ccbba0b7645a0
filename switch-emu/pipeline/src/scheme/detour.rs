//! Paths through a dragonfly over a third group: Valiant's and UGAL's (Kim, Dally, Scott and Abts,
//! *Technology-Driven, Highly-Scalable Dragonfly Topology*, ISCA 2008).
//!
//! The first switch decides, and notes the third group in the frame. A switch of that group, or one
//! for which the note is invalid, sends the frame on the shortest path from there on.

use super::forwarding::{Arrival, Forwarding};
use super::groups::MAX_GROUPS;
use super::hashed;
use super::list::Scheme;
use super::subprograms::{LoadMeasure, LoadQuery};
use crate::hash::pick;
use crate::routes::{Choice, Group, SwitchConfig};

/// Notes of a frame: undecided; on the shortest path; from 2 on, the number of the third group.
const UNDECIDED: u8 = 0;
pub(super) const SHORTEST: u8 = 1;
const FIRST: u8 = 2;

/// The ports toward a host, perhaps none, and one of them.
struct Way {
    group: Group,
    rank: u32,
}

/// Chooses a frame's port: toward the third group, or on the shortest path.
//= docs/specs/switching.md#SWC-30 over a third group
#[inline(always)]
pub(super) fn choose<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Arrival,
    scheme: Scheme,
) -> Option<Choice> {
    //= docs/specs/switching.md#SWC-33 among ports of equal cost
    let random = |group: &Group| hashed::random(switch, group, frame);
    if frame.detour == UNDECIDED {
        return decide(tables, switch, frame, scheme == Scheme::Valiant, random);
    }
    let (toward, note) = aim(switch, frame.detour, frame.host, frame.checksum);
    let onward = way(tables, frame, toward, random);
    if note != SHORTEST && onward.exists() {
        return onward.choice(tables, note);
    }
    way(tables, frame, frame.host, random).choice(tables, SHORTEST)
}

/// Decides at the first switch: over a third group, `always` or where that is worth it, or on the
/// shortest path. `rank` chooses among ports of equal cost.
#[inline(always)]
pub(super) fn decide<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Arrival,
    always: bool,
    rank: impl Fn(&Group) -> u32,
) -> Option<Choice> {
    let shortest = way(tables, frame, frame.host, &rank);
    if let Some(via) = draw(switch, frame) {
        let third = switch.groups.toward(via, frame.checksum);
        let detour = way(tables, frame, third, &rank);
        let takes = always || !shortest.exists() || is_worth_it(tables, switch, frame, &shortest, &detour, third);
        if detour.exists() && takes {
            return detour.choice(tables, FIRST + via);
        }
    }
    shortest.choice(tables, SHORTEST)
}

/// The host toward which a frame with this note is sent next, and its new note. `random_bits` is
/// the checksum used in [`decide`]. Without groups: its own host, and the same note.
//= docs/specs/switching.md#SWC-32 invalid notes
#[inline(always)]
pub(super) fn aim(switch: &SwitchConfig, note: u8, host: u32, random_bits: u32) -> (u32, u8) {
    if !switch.groups.exist() {
        return (host, note);
    }
    match note {
        FIRST.. if u16::from(note - FIRST) < switch.groups.count && u16::from(note - FIRST) != switch.group => {
            (switch.groups.toward(note - FIRST, random_bits), note)
        }
        _ => (host, SHORTEST),
    }
}

/// A random group that is neither this one nor the destination's.
//= docs/specs/switching.md#SWC-30 over a third group
#[inline(always)]
fn draw(switch: &SwitchConfig, frame: &Arrival) -> Option<u8> {
    let (here, count) = (u32::from(switch.group), u32::from(switch.groups.count.min(MAX_GROUPS)));
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

/// The path toward a host by the port at place `rank`.
#[inline(always)]
fn way<F: Forwarding>(tables: &F, frame: &Arrival, host: u32, rank: impl Fn(&Group) -> u32) -> Way {
    // Not an `Option`, whose unwritten payload the kernel may not read.
    let group = tables.group(frame.t_ps, frame.switch, host).unwrap_or_default();
    let rank = if group.count > 1 { rank(&group) } else { 0 };
    Way { group, rank }
}

/// Whether the shortest path's queue, times its links, exceeds that toward the host `third`.
//= docs/specs/switching.md#SWC-31 choice of the detour
#[inline(always)]
fn is_worth_it<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Arrival,
    shortest: &Way,
    detour: &Way,
    third: u32,
) -> bool {
    let Some(at) = third.checked_div(u32::from(switch.groups.hosts)) else { return false };
    let rest = tables.group(frame.t_ps, at, frame.host).map_or(0, |group| u64::from(group.hops));
    let links = u64::from(detour.group.hops) + rest;
    shortest.bytes(tables, frame) * u64::from(shortest.group.hops) > detour.bytes(tables, frame) * links
}

impl Way {
    #[inline(always)]
    fn exists(&self) -> bool {
        self.group.count != 0
    }

    #[inline(always)]
    fn member(&self) -> u32 {
        self.group.first.wrapping_add(self.rank)
    }

    #[inline(always)]
    fn choice<F: Forwarding>(&self, tables: &F, detour: u8) -> Option<Choice> {
        if !self.exists() {
            return None;
        }
        Some(Choice { port: tables.member(self.member())?, rank: self.rank, detour })
    }

    /// Queued bytes at its port.
    #[inline(always)]
    fn bytes<F: Forwarding>(&self, tables: &F, frame: &Arrival) -> u64 {
        tables.score(self.member(), frame.t_ps, &LoadQuery { measure: LoadMeasure::Bytes, random: 0, row: 0 }, 0) >> 32
    }
}

#[cfg(test)]
mod tests;
