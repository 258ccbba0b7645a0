//! Reunion: destinations tell sources which elephants collide, and sources move them (Wang et al., *Reunion: Receiver-driven network load
//! balancing mechanism in AI training clusters*, Computer Networks 2025).
//!
//! A base scheme chooses wherever Reunion has not given a flow a path. `docs/specs/reunion.md` states the rules (`REU-n`).

mod destination;
mod flows;
#[cfg(test)]
pub(super) mod leaf_spine;
pub(super) mod memory;
pub(super) mod note;
pub(super) mod path;
mod sketch;
mod source;

pub use destination::Sent;
pub(super) use memory::WORDS;

#[cfg(not(target_arch = "bpf"))]
use super::conweave;
use super::{Arrival, Forwarding, Scheme, conga};
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::word::Word;
use memory::{MARKED, Memory, single};
use note::Note;
use path::Course;

/// What a switch's memory holds when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Length of a statistical interval in ps, above 0: `s`.
    pub interval_ps: u64,
    /// Elephants that a link may have without a collision, 1 to 1,000: `t`.
    pub tolerance: u32,
    /// A pause in ps after which the base chooses for a flow again: the fallback.
    pub timeout_ps: u64,
    /// Whether notifications ride on frames that go back, instead of going as frames of their own.
    pub ride: bool,
}

impl Default for Settings {
    /// Those of the paper (Reunion §4, §4.2).
    fn default() -> Self {
        Self { interval_ps: 1_000_000_000, tolerance: 1, timeout_ps: 500_000_000, ride: false }
    }
}

impl Settings {
    /// The words of a switch with the ports of its ways up, each by its place behind what the base keeps.
    //= docs/specs/reunion.md#REU-6 among the largest
    pub fn words<'a>(&self, ways: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let hot = u64::from(self.tolerance).saturating_mul(ways.len() as u64);
        let singles = [
            (single::LENGTH_PS, self.interval_ps),
            (single::TOLERANCE, u64::from(self.tolerance)),
            (single::TIMEOUT_PS, self.timeout_ps),
            (single::HOT, hot),
            (single::RIDE, u64::from(self.ride)),
        ];
        let way = |(way, port): (u32, &u32)| (memory::WAYS.place(way), u64::from(*port) + 1);
        singles.into_iter().chain((1..).zip(ways).map(way))
    }
}

/// What a switch has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows given another path.
    pub rerouted: u64,
    /// Flows that were to be, and for which there was none.
    pub stuck: u64,
    /// Notifications sent.
    pub notified: u64,
}

/// Takes a frame through a switch: chooses its port, reads and writes its note.
#[inline(always)]
pub(super) fn route<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    base: Scheme,
) -> Option<u32> {
    let trail = tables.trail()?;
    let (from, target) = (trail.source(), super::leaf(tables, switch, host)?);
    let source = tables.switch(from)?;
    let course = Course { t_ps: frame.time_ps, from, host, target };
    if source.leaf == target {
        return base_port(tables, switch, frame, host, base, None);
    }
    if switch.leaf == source.leaf {
        return source::route(tables, switch, frame, base, &course);
    }
    let note = Note::of(trail.note.load());
    if switch.leaf == target {
        let _heard = match note.notified() {
            Some(_) => source::notified(tables, switch, base, frame.time_ps, source, note),
            None => destination::arrive(tables, &Memory::of(tables, switch, base), &course, note),
        };
        return base_port(tables, switch, frame, host, base, None);
    }
    go_through(tables, switch, frame, &course, base, note)
}

/// Takes a frame through a switch between source and destination, by its PathID.
//= docs/specs/reunion.md#REU-2 source routing
#[inline(always)]
fn go_through<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    course: &Course,
    base: Scheme,
    note: Note,
) -> Option<u32> {
    if frame.control && !note.is_elephant() {
        return base_port(tables, switch, frame, course.host, base, None);
    }
    let trail = tables.trail()?;
    let memory = Memory::of(tables, switch, base);
    let group = tables.group(frame.time_ps, frame.switch, course.host)?;
    let pinned = path::pinned(&memory, tables, &group, path::way(note.path(), note.hops()));
    let port = base_port(tables, switch, frame, course.host, base, pinned)?;
    let way = tables.way(port)?;
    let path = if way == 0 { note.path() } else { path::with_way(note.path(), note.hops(), way) };
    let mut note = note.with_path(path).further();
    if note.is_elephant() {
        let interval = memory.enter(frame.time_ps)?;
        note = collides(&memory, interval, (trail.flow() >> 32) as u32, port, note);
    }
    trail.note.store(note.into(trail.note.load()));
    Some(port)
}

/// Counts an elephant at a port, once an interval; notes whether the port has too many.
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
fn collides<F: Forwarding>(memory: &Memory<'_, F>, interval: u64, flow: u32, port: u32, note: Note) -> Note {
    let links = memory.links(interval);
    if let Some(entry) = memory.seen(interval).entry(flow)
        && entry.value != Some(port & 0xffff)
    {
        entry.set(port);
        links.count(port);
    }
    let elephants = links.value(port);
    let tolerance = memory.load(single::TOLERANCE).unwrap_or(u64::MAX);
    if elephants != MARKED && u64::from(elephants) > tolerance { note.collided() } else { note }
}

/// The port that the base chooses, or goes along with.
#[inline(always)]
fn base_port<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    base: Scheme,
    pinned: Option<u32>,
) -> Option<u32> {
    if base == Scheme::Conga {
        return conga::route(tables, switch, frame, host, pinned);
    }
    #[cfg(not(target_arch = "bpf"))]
    if base == Scheme::ConWeave {
        return conweave::go_along(tables, switch, frame, host, pinned);
    }
    match pinned {
        Some(port) => Some(port),
        None => Some(super::choose_by(tables, switch, &Arrival::of(frame, host), base)?.port),
    }
}

/// The next notification that a switch sends as a frame of its own, if it has one.
#[cfg(not(target_arch = "bpf"))]
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Sent> {
    let config = tables.switch(switch)?;
    let base = Scheme::from_number(config.scheme).reunion_base()?;
    destination::poll(&Memory::of(tables, config, base))
}

/// What a switch has done; `None`: it has no Reunion.
pub fn counts<F: Forwarding>(tables: &F, switch: u32) -> Option<Counts> {
    let config = tables.switch(switch)?;
    let memory = Memory::of(tables, config, Scheme::from_number(config.scheme).reunion_base()?);
    Some(Counts {
        rerouted: memory.load(single::REROUTED)?,
        stuck: memory.load(single::STUCK)?,
        notified: memory.load(single::NOTIFIED)?,
    })
}

#[cfg(test)]
mod tests;
