//! Reunion: destinations notify sources of colliding elephants, to reroute (Wang et al., *Reunion:
//! Receiver-driven network load balancing mechanism in AI training clusters*, Computer Networks
//! 2025).
//!
//! A base scheme chooses for other flows. `docs/specs/reunion.md` states the rules (`REU-n`).

mod between;
mod destination;
mod flows;
mod hop;
mod links;
mod memory;
mod regions;
mod sketch;
mod source;

pub(super) use hop::Hop;
pub use memory::look_up;
pub(super) use regions::WORDS;

use hop::SwitchRole;
use memory::{INTERVALS, Memory};
use regions::{UPLINKS, single};

use super::forwarding::Forwarding;
#[cfg(not(target_arch = "bpf"))]
use super::notice::Notice;
use crate::frame::Frame;
use crate::word::Word;

/// The settings of Reunion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Length of a statistical interval in ps, above 0: `s`.
    pub interval_ps: u64,
    /// Elephants per link without a collision, 1 to 1,000: `t`.
    pub tolerance: u32,
    /// The pause in ps after which a flow returns to the base: the fallback.
    pub timeout_ps: u64,
    /// Whether notifications are piggybacked, instead of sent as control frames.
    pub piggyback: bool,
}

impl Default for Settings {
    /// Returns the settings of the paper (Reunion §4, §4.2).
    fn default() -> Self {
        Self { interval_ps: 1_000_000_000, tolerance: 1, timeout_ps: 500_000_000, piggyback: false }
    }
}

impl Settings {
    /// Returns a switch's initial words, with the ports of its uplinks, each after its place.
    //= docs/specs/reunion.md#REU-6 elephants
    pub fn words<'a>(&self, uplinks: &'a [u32]) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let hot = u64::from(self.tolerance).saturating_mul(uplinks.len() as u64);
        let singles = [
            (single::LENGTH_PS, self.interval_ps),
            (single::TOLERANCE, u64::from(self.tolerance)),
            (single::TIMEOUT_PS, self.timeout_ps),
            (single::MAX_ELEPHANTS, hot),
            (single::PIGGYBACK, u64::from(self.piggyback)),
            (single::THRESHOLD, 1),
        ];
        let uplink = |(uplink, port): (u32, &u32)| (UPLINKS.place(uplink), u64::from(*port) + 1);
        singles.into_iter().chain((1..).zip(uplinks).map(uplink))
    }
}

#[cfg(not(target_arch = "bpf"))]
super::counter::scheme_counters! {
    /// Flows that Reunion rerouted.
    rerouted: "rerouted", "Flows rerouted by Reunion", "", neither, sum, |seen| memory::read(seen, single::REROUTED);
    /// Flows that Reunion could not reroute because no path was available.
    stuck: "stuck", "Flows that Reunion could not reroute", "", less, sum, |seen| memory::read(seen, single::STUCK);
    /// Notifications of Reunion sent.
    notified: "notified", "Notifications of Reunion", "", neither, sum, |seen| memory::read(seen, single::NOTIFIED);
}

impl<F: Forwarding> Hop<'_, F> {
    #[inline(always)]
    pub(super) fn begin(&self) -> Option<()> {
        let counts = match self.place() {
            SwitchRole::Local => false,
            SwitchRole::Between => self.note().elephant,
            SwitchRole::Source | SwitchRole::Target => true,
        };
        if counts {
            enter(&self.memory, self.ends.t_ps)?;
        }
        Some(())
    }

    /// Reroutes the frame's flow at its source switch, if it is due.
    #[inline(always)]
    pub(super) fn reroute(&self, frame: &mut Frame) -> Option<()> {
        if self.place() == SwitchRole::Source && !frame.control { source::reroute(self, frame) } else { Some(()) }
    }

    /// Counts the frame or reads its note. Returns the port, if the flow has a path.
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

    /// Updates the frame's note, once the port is known.
    #[inline(always)]
    pub(super) fn settle(&self, frame: &Frame, port: u32) -> Option<()> {
        let note = match self.place() {
            SwitchRole::Source => source::settle(self, frame, port)?,
            SwitchRole::Between if between::follows_note(self, frame) => between::settle(self, port)?,
            _ => return Some(()),
        };
        self.trail.note.store(note.beside(self.trail.note.load()));
        Some(())
    }

    /// Tries a path of a search; returns its PathID, or [`OPEN`](super::OPEN) after the last.
    #[inline(always)]
    pub(super) fn take_path(&self, turn: u32) -> Option<u32> {
        links::take(self, turn)
    }
}

/// The interval at `t_ps`; ends the previous one. A late frame is of the present one.
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

/// Returns the next notification to be sent as a control frame.
#[cfg(not(target_arch = "bpf"))]
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Notice> {
    destination::poll(&Memory::of(tables, tables.switch(switch)?)?)
}

#[cfg(test)]
mod tests;
