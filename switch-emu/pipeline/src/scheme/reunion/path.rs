//! PathID: which ways up a frame takes, and the links that follow from it (Reunion §3.1).
//!
//! A PathID holds one way for each tier: the number of a port among those of its switch that lead up, from 1 on; 0 leaves the
//! choice to the switch. In two tiers these are the paper's eight bits.

use super::Here;
use super::memory::{IntervalTable, MARKED, Memory, before, single};
use crate::frame::Frame;
use crate::hash::pick;
use crate::routes::{Group, SwitchConfig};
use crate::scheme::{Forwarding, NO_PORT, OPEN, Step};

/// Bits of a way.
const WAY_BITS: u32 = 8;
const WAY_MASK: u32 = 0xff;
/// Tiers that have ways up.
const TIERS: u32 = 2;
/// Links between switches on a path.
pub(super) const MOST_LINKS: u32 = 4;
/// Paths that a reroute looks at.
const MOST_PATHS: u32 = 256;

/// The way that a PathID has for a frame that has taken so many links; 0: none.
#[inline(always)]
pub(in crate::scheme) const fn way(path: u32, hops: u32) -> u32 {
    if hops < TIERS { path >> (hops * WAY_BITS) & WAY_MASK } else { 0 }
}

/// A PathID with this way after so many links.
#[inline(always)]
pub(in crate::scheme) const fn with_way(path: u32, hops: u32, way: u32) -> u32 {
    if hops >= TIERS {
        return path;
    }
    let shift = hops * WAY_BITS;
    path & !(WAY_MASK << shift) | (way & WAY_MASK) << shift
}

/// The port of a PathID's way at a switch, if routes lead over it.
//= docs/specs/reunion.md#REU-2 source routing
#[inline(always)]
pub(super) fn pinned<F: Forwarding>(memory: &Memory<'_, F>, tables: &F, group: &Group, way: u32) -> Option<u32> {
    if way == 0 {
        return None;
    }
    memory.way(way).filter(|port| has(tables, group, *port))
}

/// Whether a port is in a group, whose ports ascend.
#[inline(always)]
pub(in crate::scheme) fn has<F: Forwarding>(tables: &F, group: &Group, port: u32) -> bool {
    let (mut low, mut count) = (0, u32::from(group.count));
    // Groups have less than 2^16 places.
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

/// The links of a path toward a host, one after the other: the numbers of their ports.
pub(super) struct Walk<'a, F> {
    tables: &'a F,
    t_ps: u64,
    at: u32,
    host: u32,
    target: u32,
    path: u32,
    hops: u32,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheme) struct Course {
    /// When.
    pub(in crate::scheme) t_ps: u64,
    /// From this switch.
    pub(in crate::scheme) from: u32,
    /// To this host.
    pub(in crate::scheme) host: u32,
    /// The number of its leaf.
    pub(in crate::scheme) target: u32,
}

impl<'a, F: Forwarding> Walk<'a, F> {
    /// Begins at the path's first switch.
    #[inline(always)]
    pub(super) fn new(tables: &'a F, course: &Course, path: u32) -> Self {
        let Course { t_ps, from, host, target } = *course;
        Self { tables, t_ps, at: from, host, target, path, hops: 0 }
    }

    /// The next link's port; `None` at the host's leaf, and where the PathID leaves the way open.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<u32> {
        let switch = self.tables.switch(self.at)?;
        if switch.leaf == self.target {
            return None;
        }
        let port = match way(self.path, self.hops) {
            0 => self.only(self.tables.group(self.t_ps, self.at, self.host)?)?,
            way => Memory::of(self.tables, switch)?.way(way)?,
        };
        self.at = self.tables.far_end(port)?;
        self.hops += 1;
        Some(port)
    }

    #[inline(always)]
    fn only(&self, group: Group) -> Option<u32> {
        if group.count == 1 { self.tables.member(group.first) } else { None }
    }

    /// The link with this number on the way, from 1 on.
    #[inline(always)]
    pub(super) fn link(mut self, number: u32) -> Option<u32> {
        for at in 1..=MOST_LINKS {
            let port = self.next()?;
            if at == number {
                return Some(port);
            }
        }
        None
    }
}

/// A path all of whose links have fewer elephants than are tolerated, which counts there from now on (Algorithm 2). `None`: there is none.
//= docs/specs/reunion.md#REU-16 an available path
#[inline(always)]
pub(super) fn find<F: Forwarding>(tables: &F, frame: &mut Frame, course: &Course) -> Option<u32> {
    for turn in 0..MOST_PATHS {
        match tables.part(Step::Path, frame, course.host, turn) {
            NO_PORT => {}
            OPEN => return None,
            path => return Some(path),
        }
    }
    None
}

/// Takes the path whose turn it is in a search, which begins at a random one: counts one more elephant on its links in the interval that is
/// over, if all of them have fewer than are tolerated. Gives its PathID, or [`OPEN`] when all paths have had their turn.
#[inline(always)]
pub(super) fn take<F: Forwarding>(here: &Here<'_, F>, turn: u32) -> Option<u32> {
    let Here { tables, trail, switch, ref memory, ref course, .. } = *here;
    let paths = Paths::of(tables, course)?;
    if turn >= paths.count {
        return Some(OPEN);
    }
    let number = pick(lot(switch, trail.flow(), course.t_ps), paths.count).wrapping_add(turn) % paths.count;
    let path = paths.path(tables, course, number)?;
    let links = memory.links(before(memory.interval()?));
    let tolerance = memory.load(single::TOLERANCE)? as u32;
    if !is_available(tables, course, &links, tolerance, path) {
        return None;
    }
    count(tables, course, &links, path, |_, _| {});
    Some(path)
}

/// The paths to a host.
pub(in crate::scheme) struct Paths {
    /// The ports of the first switch.
    first: Group,
    ports: u32,
    /// How many there are, at least 1.
    pub(in crate::scheme) count: u32,
}

impl Paths {
    #[inline(always)]
    pub(in crate::scheme) fn of<F: Forwarding>(tables: &F, course: &Course) -> Option<Self> {
        let first = tables.group(course.t_ps, course.from, course.host)?;
        let second = tables.group(course.t_ps, tables.far_end(tables.member(first.first)?)?, course.host)?;
        let ports = u32::from(first.count).max(1);
        Some(Self { first, ports, count: ports.wrapping_mul(u32::from(second.count).max(1)).max(1) })
    }

    /// The PathID of the path with this number.
    #[inline(always)]
    pub(in crate::scheme) fn path<F: Forwarding>(&self, tables: &F, course: &Course, number: u32) -> Option<u32> {
        path(tables, course, &self.first, number % self.ports, number / self.ports)
    }
}

/// The PathID over these places of the groups on the way up.
#[inline(always)]
fn path<F: Forwarding>(tables: &F, course: &Course, group: &Group, first: u32, second: u32) -> Option<u32> {
    let port = tables.member(group.first.wrapping_add(first))?;
    let path = tables.way(port)?;
    let above = tables.group(course.t_ps, tables.far_end(port)?, course.host)?;
    if above.count < 2 {
        return Some(path);
    }
    let port = tables.member(above.first.wrapping_add(second % u32::from(above.count)))?;
    Some(with_way(path, 1, tables.way(port)?))
}

/// Whether fewer elephants than are tolerated take each link of a path.
//= docs/specs/reunion.md#REU-16 an available path
#[inline(always)]
fn is_available<F: Forwarding>(
    tables: &F,
    course: &Course,
    links: &IntervalTable<'_, F>,
    tolerance: u32,
    path: u32,
) -> bool {
    let mut walk = Walk::new(tables, course, path);
    for _ in 0..MOST_LINKS {
        let Some(port) = walk.next() else { break };
        if links.value(port) >= tolerance.min(MARKED) {
            return false;
        }
    }
    true
}

/// Counts one more elephant on every link of a path; tells `counted` each of them, and how many it then has.
#[inline(always)]
pub(super) fn count<F: Forwarding>(
    tables: &F,
    course: &Course,
    links: &IntervalTable<'_, F>,
    path: u32,
    mut counted: impl FnMut(u32, u32),
) {
    let mut walk = Walk::new(tables, course, path);
    for _ in 0..MOST_LINKS {
        let Some(port) = walk.next() else { break };
        counted(port, links.count(port));
    }
}

/// The random bits of a search.
#[inline(always)]
pub(in crate::scheme) fn lot(switch: &SwitchConfig, flow: u64, t_ps: u64) -> u32 {
    (crate::hash::mix(flow ^ t_ps ^ switch.salt) >> 32) as u32
}
