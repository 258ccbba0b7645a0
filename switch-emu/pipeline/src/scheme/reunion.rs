//! Reunion: destinations tell sources which elephants collide, and sources move them (Wang et al., *Reunion: Receiver-driven network load
//! balancing mechanism in AI training clusters*, Computer Networks 2025).
//!
//! A base scheme chooses wherever Reunion has not given a flow a path. `docs/specs/reunion.md` states the rules (`REU-n`).

mod destination;
mod flows;
pub(super) mod memory;
pub(super) mod note;
pub(super) mod path;
mod sketch;
mod source;

pub use destination::Sent;
pub(super) use memory::WORDS;
pub use memory::look_up;

use super::Forwarding;
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::trail::Trail;
use crate::word::Word;
use memory::{IntervalTable, MOST, Memory, single};
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
            (single::THRESHOLD, 1),
        ];
        let way = |(way, port): (u32, &u32)| (memory::WAYS.place(way), u64::from(*port) + 1);
        singles.into_iter().chain((1..).zip(ways).map(way))
    }
}

#[cfg(not(target_arch = "bpf"))]
super::counted::counters! {
    /// Flows that Reunion gave another path.
    rerouted: "rerouted", "Flows rerouted by Reunion", "", neither, sum, |seen| memory::read(seen, single::REROUTED);
    /// Flows that Reunion was to give another path, and for which there was none.
    stuck: "stuck", "Flows that Reunion could not reroute", "", less, sum, |seen| memory::read(seen, single::STUCK);
    /// Notifications of Reunion sent.
    notified: "notified", "Notifications of Reunion", "", neither, sum, |seen| memory::read(seen, single::NOTIFIED);
}

/// A frame at a switch, on the way to another leaf or to hosts of its own.
pub(super) struct Here<'a, F: Forwarding> {
    tables: &'a F,
    trail: &'a Trail<F::Note>,
    switch: &'a SwitchConfig,
    source: &'a SwitchConfig,
    memory: Memory<'a, F>,
    course: Course,
}

impl<'a, F: Forwarding> Here<'a, F> {
    #[inline(always)]
    pub(super) fn new(tables: &'a F, switch: &'a SwitchConfig, frame: &Frame, host: u32) -> Option<Self> {
        let trail = tables.trail()?;
        let (from, target) = (trail.source(), super::leaf(tables, switch, host)?);
        let source = tables.switch(from)?;
        let memory = Memory::of(tables, switch)?;
        let course = Course { t_ps: frame.time_ps, from, host, target };
        Some(Self { tables, trail, switch, source, memory, course })
    }

    /// Ends the interval if it is over.
    #[inline(always)]
    pub(super) fn begin(&self) -> Option<()> {
        let counts = match self.place() {
            Place::Local => false,
            Place::Between => self.note().elephant,
            Place::Source | Place::Target => true,
        };
        if counts {
            self.memory.enter(self.course.t_ps)?;
        }
        Some(())
    }

    /// Gives the frame's flow another path, if this is its source switch and time to.
    #[inline(always)]
    pub(super) fn reroute(&self, frame: &mut Frame) -> Option<()> {
        if self.place() == Place::Source && !frame.control { source::reroute(self, frame) } else { Some(()) }
    }

    /// What a switch does before a port is chosen: it counts the frame or reads its note. Gives the port, if the flow has a path.
    #[inline(always)]
    pub(super) fn prepare(&self, frame: &Frame) -> Option<Option<u32>> {
        match self.place() {
            Place::Source => source::prepare(self, frame),
            Place::Between => self.pinned(frame),
            Place::Target => {
                let note = self.note();
                let _heard = match note.notified() {
                    Some(_) => source::notified(self, note),
                    None => destination::arrive(self, note),
                };
                Some(None)
            }
            Place::Local => Some(None),
        }
    }

    /// What a switch does once the port is known: the frame takes a note of it along.
    #[inline(always)]
    pub(super) fn settle(&self, frame: &Frame, port: u32) -> Option<()> {
        let note = match self.place() {
            Place::Source => source::settle(self, frame, port)?,
            Place::Between if self.is_told(frame) => self.further(port)?,
            _ => return Some(()),
        };
        self.trail.note.store(note.beside(self.trail.note.load()));
        Some(())
    }

    /// Takes the path whose turn it is in a search, if it is available; gives its PathID, or [`OPEN`](super::OPEN) when there are no more.
    #[inline(always)]
    pub(super) fn take_path(&self, turn: u32) -> Option<u32> {
        path::take(self, turn)
    }

    #[inline(always)]
    fn place(&self) -> Place {
        let Self { switch, source, course, .. } = self;
        if source.leaf == course.target {
            Place::Local
        } else if switch.leaf == source.leaf {
            Place::Source
        } else if switch.leaf == course.target {
            Place::Target
        } else {
            Place::Between
        }
    }

    #[inline(always)]
    fn note(&self) -> Note {
        Note::unpack(self.trail.note.load())
    }

    /// Whether switches between leaves go by its note: control frames go by the base.
    #[inline(always)]
    fn is_told(&self, frame: &Frame) -> bool {
        !frame.control || self.note().elephant
    }

    /// The port that the frame's PathID tells.
    //= docs/specs/reunion.md#REU-2 source routing
    #[inline(always)]
    fn pinned(&self, frame: &Frame) -> Option<Option<u32>> {
        if !self.is_told(frame) {
            return Some(None);
        }
        let (note, tables) = (self.note(), self.tables);
        let group = tables.group(frame.time_ps, frame.switch, self.course.host)?;
        Some(path::pinned(&self.memory, tables, &group, path::way(note.path, note.hops)))
    }

    /// The frame's note behind this port.
    //= docs/specs/reunion.md#REU-2 source routing
    #[inline(always)]
    fn further(&self, port: u32) -> Option<Note> {
        let (note, way) = (self.note(), self.tables.way(port)?);
        let path = if way == 0 { note.path } else { path::with_way(note.path, note.hops, way) };
        let note = Note { path, ..note }.further();
        if !note.elephant {
            return Some(note);
        }
        let interval = self.memory.interval()?;
        Some(collides(&self.memory, interval, (self.trail.flow() >> 32) as u32, port, note))
    }
}

/// Where a switch is on a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The only one: both hosts are at it.
    Local,
    Source,
    Between,
    Target,
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
    behind(memory, &links, port, note)
}

/// The note of an elephant behind a port: a collision, if the port has too many.
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
fn behind<F: Forwarding>(memory: &Memory<'_, F>, links: &IntervalTable<'_, F>, port: u32, note: Note) -> Note {
    let elephants = links.value(port) & MOST;
    let tolerance = memory.load(single::TOLERANCE).unwrap_or(u64::MAX);
    if u64::from(elephants) > tolerance { note.collided() } else { note }
}

/// The next notification that a switch sends as a frame of its own, if it has one.
#[cfg(not(target_arch = "bpf"))]
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Sent> {
    destination::poll(&Memory::of(tables, tables.switch(switch)?)?)
}

#[cfg(test)]
mod tests;
