//! Reunion: destinations tell sources which elephants collide, and sources move them (Wang et al., *Reunion: Receiver-driven network load
//! balancing mechanism in AI training clusters*, Computer Networks 2025).
//!
//! A base scheme chooses wherever Reunion has not given a flow a path. `docs/specs/reunion.md` states the rules (`REU-n`).

mod between;
mod destination;
mod flows;
mod here;
mod links;
mod memory;
mod regions;
mod sketch;
mod source;

pub(super) use here::Here;
pub use memory::look_up;
pub(super) use regions::WORDS;

use here::SwitchRole;
use memory::{INTERVALS, Memory};
use regions::{WAYS, single};

use super::forwarding::Forwarding;
#[cfg(not(target_arch = "bpf"))]
use super::notice::Notice;
use crate::frame::Frame;
use crate::word::Word;

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
    //= docs/specs/reunion.md#REU-6 elephants
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
        let way = |(way, port): (u32, &u32)| (WAYS.place(way), u64::from(*port) + 1);
        singles.into_iter().chain((1..).zip(ways).map(way))
    }
}

#[cfg(not(target_arch = "bpf"))]
super::counter::scheme_counters! {
    /// Flows that Reunion gave another path.
    rerouted: "rerouted", "Flows rerouted by Reunion", "", neither, sum, |seen| memory::read(seen, single::REROUTED);
    /// Flows that Reunion was to give another path, and for which there was none.
    stuck: "stuck", "Flows that Reunion could not reroute", "", less, sum, |seen| memory::read(seen, single::STUCK);
    /// Notifications of Reunion sent.
    notified: "notified", "Notifications of Reunion", "", neither, sum, |seen| memory::read(seen, single::NOTIFIED);
}

impl<F: Forwarding> Here<'_, F> {
    /// Ends the interval if it is over.
    #[inline(always)]
    pub(super) fn begin(&self) -> Option<()> {
        let counts = match self.place() {
            SwitchRole::Local => false,
            SwitchRole::Between => self.note().elephant,
            SwitchRole::Source | SwitchRole::Target => true,
        };
        if counts {
            enter(&self.memory, self.course.t_ps)?;
        }
        Some(())
    }

    /// Gives the frame's flow another path, if this is its source switch and time to.
    #[inline(always)]
    pub(super) fn reroute(&self, frame: &mut Frame) -> Option<()> {
        if self.place() == SwitchRole::Source && !frame.control { source::reroute(self, frame) } else { Some(()) }
    }

    /// What a switch does before a port is chosen: it counts the frame or reads its note. Gives the port, if the flow has a path.
    #[inline(always)]
    pub(super) fn prepare(&self, frame: &Frame) -> Option<Option<u32>> {
        match self.place() {
            SwitchRole::Source => source::prepare(self, frame),
            SwitchRole::Between => between::prepare(self, frame),
            SwitchRole::Target => {
                let note = self.note();
                let _heard = match note.notified() {
                    Some(_) => source::notified(self, note),
                    None => destination::arrive(self, note),
                };
                Some(None)
            }
            SwitchRole::Local => Some(None),
        }
    }

    /// What a switch does once the port is known: the frame takes a note of it along.
    #[inline(always)]
    pub(super) fn settle(&self, frame: &Frame, port: u32) -> Option<()> {
        let note = match self.place() {
            SwitchRole::Source => source::settle(self, frame, port)?,
            SwitchRole::Between if between::is_told(self, frame) => between::settle(self, port)?,
            _ => return Some(()),
        };
        self.trail.note.store(note.beside(self.trail.note.load()));
        Some(())
    }

    /// Takes the path whose turn it is in a search, if it is available; gives its PathID, or [`OPEN`](super::OPEN) when there are no more.
    #[inline(always)]
    pub(super) fn take_path(&self, turn: u32) -> Option<u32> {
        links::take(self, turn)
    }
}

/// The interval at `t_ps`; ends the one before if it is over. A frame that comes late is of the present one.
//= docs/specs/reunion.md#REU-3 intervals end with a frame
#[inline(always)]
fn enter<F: Forwarding>(memory: &Memory<'_, F>, t_ps: u64) -> Option<u64> {
    let (end, number) = (memory.word(single::END_PS)?, memory.word(single::INTERVAL)?);
    if t_ps < end.load() {
        return Some(number.load());
    }
    let length_ps = memory.load(single::LENGTH_PS)?.max(1);
    end.store((t_ps / length_ps + 1) * length_ps);
    let next = number.load() % INTERVALS + 1;
    number.store(next);
    memory.word(single::CURSOR)?.store(0);
    sketch::begin(memory, next)?;
    Some(next)
}

/// The next notification that a switch sends as a frame of its own, if it has one.
#[cfg(not(target_arch = "bpf"))]
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Notice> {
    destination::poll(&Memory::of(tables, tables.switch(switch)?)?)
}

#[cfg(test)]
mod tests;
