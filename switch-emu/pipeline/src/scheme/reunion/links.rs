//! The links of a path, and the search for one that is available (Reunion §3.1, §3.6).

use super::hop::Hop;
use super::memory::{IntervalTable, MARKED, Memory, before};
use super::regions::single;
use crate::frame::Frame;
use crate::hash::pick;
use crate::routes::Group;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::path::{PathEnds, Paths, has, random_bits, uplink};
use crate::scheme::subprograms::{NO_PORT, OPEN, Step};

pub(super) const MAX_LINKS: u32 = 4;
/// Maximum number of paths tried by a reroute.
const MOST_PATHS: u32 = 256;

/// The port of a PathID's uplink at a switch, if it is on a route.
//= docs/specs/reunion.md#REU-2 source routing
#[inline(always)]
pub(super) fn pinned<F: Forwarding>(memory: &Memory<'_, F>, tables: &F, group: &Group, uplink: u32) -> Option<u32> {
    if uplink == 0 {
        return None;
    }
    memory.uplink(uplink).filter(|port| has(tables, group, *port))
}

/// Iterates over the links of a path, as the numbers of their ports.
pub(super) struct Walk<'a, F> {
    tables: &'a F,
    t_ps: u64,
    at: u32,
    host: u32,
    target: u32,
    path: u32,
    hops: u32,
}

impl<'a, F: Forwarding> Walk<'a, F> {
    #[inline(always)]
    pub(super) fn new(tables: &'a F, ends: &PathEnds, path: u32) -> Self {
        let PathEnds { t_ps, from, host, target } = *ends;
        Self { tables, t_ps, at: from, host, target, path, hops: 0 }
    }

    /// The next link's port; `None` at the host's leaf, and where the PathID is open.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<u32> {
        let switch = self.tables.switch(self.at)?;
        if switch.leaf == self.target {
            return None;
        }
        let port = match uplink(self.path, self.hops) {
            0 => self.only(self.tables.group(self.t_ps, self.at, self.host)?)?,
            uplink => Memory::of(self.tables, switch)?.uplink(uplink)?,
        };
        self.at = self.tables.far_end(port)?;
        self.hops += 1;
        Some(port)
    }

    #[inline(always)]
    fn only(&self, group: Group) -> Option<u32> {
        if group.count == 1 { self.tables.member(group.first) } else { None }
    }

    /// The link with this number on the path, from 1 on.
    #[inline(always)]
    pub(super) fn link(mut self, number: u32) -> Option<u32> {
        for at in 1..=MAX_LINKS {
            let port = self.next()?;
            if at == number {
                return Some(port);
            }
        }
        None
    }
}

/// Finds an available path, and counts an elephant on its links (Algorithm 2).
//= docs/specs/reunion.md#REU-16 an available path
#[inline(always)]
pub(super) fn find<F: Forwarding>(tables: &F, frame: &mut Frame, ends: &PathEnds) -> Option<u32> {
    for turn in 0..MOST_PATHS {
        match tables.step(Step::Path, frame, ends.host, turn) {
            NO_PORT => {}
            OPEN => return None,
            path => return Some(path),
        }
    }
    None
}

/// Tries a path of a search from a random one on. If its links had fewer elephants than the
/// tolerance, counts one more. Returns its PathID, or [`OPEN`] after the last path.
#[inline(always)]
pub(super) fn take<F: Forwarding>(hop: &Hop<'_, F>, turn: u32) -> Option<u32> {
    let Hop { tables, trail, switch, ref memory, ref ends, .. } = *hop;
    let paths = Paths::of(tables, ends)?;
    if turn >= paths.count {
        return Some(OPEN);
    }
    let number = pick(random_bits(switch, trail.flow(), ends.t_ps), paths.count).wrapping_add(turn) % paths.count;
    let path = paths.path(tables, ends, number)?;
    let links = memory.links(before(memory.interval()?));
    let tolerance = memory.load(single::TOLERANCE)? as u32;
    if !is_available(tables, ends, &links, tolerance, path) {
        return None;
    }
    count(tables, ends, &links, path, |_, _| {});
    Some(path)
}

/// Whether each link of a path has fewer elephants than the tolerance.
//= docs/specs/reunion.md#REU-16 an available path
#[inline(always)]
fn is_available<F: Forwarding>(
    tables: &F,
    ends: &PathEnds,
    links: &IntervalTable<'_, F>,
    tolerance: u32,
    path: u32,
) -> bool {
    let mut walk = Walk::new(tables, ends, path);
    for _ in 0..MAX_LINKS {
        let Some(port) = walk.next() else { break };
        if links.value(port) >= tolerance.min(MARKED) {
            return false;
        }
    }
    true
}

/// Counts one more elephant on every link of a path; calls `counted` with each link and its count.
#[inline(always)]
pub(super) fn count<F: Forwarding>(
    tables: &F,
    ends: &PathEnds,
    links: &IntervalTable<'_, F>,
    path: u32,
    mut counted: impl FnMut(u32, u32),
) {
    let mut walk = Walk::new(tables, ends, path);
    for _ in 0..MAX_LINKS {
        let Some(port) = walk.next() else { break };
        counted(port, links.count(port));
    }
}
