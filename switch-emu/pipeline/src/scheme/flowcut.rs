//! Flowcut in switches (Bonato et al., *Flowcut Switching*, §II-A to §II-C): a flow changes its
//! port only with no packet in flight, and its host pauses while a congested path drains.
//!
//! Acknowledgements echo the time at which a packet was sent. A flowcut's packets stay in order, so
//! that all have arrived when the latest has.

use spray_wire::flowcut::{Congestion, HOPS, Sample};

use super::forwarding::{Arrival, Forwarding, leaf, least_loaded};
use super::subprograms::LoadMeasure;
use super::{detour, hashed};
use crate::frame::{Frame, PAUSE};
use crate::hash::mix;
use crate::packed::packed;
use crate::routes::{Choice, Group, SwitchConfig};
use crate::trail::Trail;
use crate::verdict::Cause;
use crate::word::Word;

/// The table of flows: sets of four entries, each after its count of packets without an entry.
const SETS: u32 = 512;
const WAYS: u32 = 4;
const SET: u32 = 1 + WAYS * ENTRY;

/// Words of an entry: the flow; the times of its latest packet sent and arrived; its [`Latest`]
/// packet; its [`Port`]; its [`PathAverage`] and [`Trend`]; when its latest packet passed.
const ENTRY: u32 = 8;
const SENT: u32 = 1;
const ARRIVED: u32 = 2;
const LATEST: u32 = 3;
const PORT: u32 = 4;
const PATH: u32 = 5;
const TREND: u32 = 6;
const PASSED: u32 = 7;

packed! {
    struct Latest {
        number: u32 in 32,
        bytes: u32 in 32,
    }
}

packed! {
    struct Port {
        number: u32 in 24,
        /// The port back plus 1; 0: none.
        back: u32 in 24,
        place: u32 in 16,
    }
}

packed! {
    /// The congestion of a flow's path, without its trend.
    struct PathAverage {
        average: u32 in 32,
        previous: u32 in 32,
    }
}

packed! {
    struct Trend {
        trend: i32 in 32,
        drains: bool in 1,
        /// The outgoing note of its packets.
        note: u8 in 8,
    }
}

packed! {
    /// The number of flows with packets in flight, and its maximum.
    struct Active {
        now: u32 in 32,
        most: u32 in 32,
    }
}

/// Layout of a switch's memory: the least round-trip times by hops, [`Active`], the table.
const ACTIVE: u32 = HOPS as u32;
const TABLE: u32 = ACTIVE + 1;

pub(super) const WORDS: u32 = TABLE + SETS * SET;

#[cfg(not(target_arch = "bpf"))]
super::counter::scheme_counters! {
    /// Maximum number of flows with packets in flight through one switch at once.
    flowcut_entries: "entries", "Entries of Flowcut in a switch", "", less, most,
        |seen| Active::unpack(seen.word(seen.switch.memory + ACTIVE)).most.into();
    /// Packets of flows without an entry because the table was full.
    flowcut_entries_missing: "no entry", "Packets without an entry of Flowcut", "packets", less, sum,
        |seen| (0..SETS).map(|set| seen.word(seen.switch.memory + TABLE + set * SET)).sum();
}

/// Routes a frame at a switch. `everywhere`: all switches keep entries, and replies return by the
/// switches that the data passed.
//= docs/specs/flowcut-switch.md#FCS-1 switches with entries
#[inline(always)]
pub(super) fn route<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &mut Frame,
    host: u32,
    everywhere: bool,
) -> Result<u32, Cause> {
    let trail = tables.trail().ok_or(Cause::NoRoute)?;
    let is_first = trail.source() == frame.switch && trail.previous_port().is_none();
    // A detour may cross a switch twice: toward the third group, and from there.
    let is_last_leg = !is_first && !trail.is_reply() && frame.detour == detour::SHORTEST;
    let flow = trail.flow() ^ if is_last_leg { LAST_LEG } else { 0 };
    let port = Here { tables, switch, trail, flow, is_first }.port(frame, host, everywhere)?;
    trail.set_egress_port(port);
    Ok(port)
}

struct Here<'a, F: Forwarding> {
    tables: &'a F,
    switch: &'a SwitchConfig,
    trail: &'a Trail<F::TrailWord>,
    /// The key of its entry.
    flow: u64,
    is_first: bool,
}

/// Distinguishes the key of a flow on its last leg, the shortest path.
const LAST_LEG: u64 = 2;

/// The next ports of a frame, and its outgoing note.
struct Onward {
    group: Group,
    note: u8,
}

impl<F: Forwarding> Here<'_, F> {
    #[inline(always)]
    fn port(&self, frame: &mut Frame, host: u32, everywhere: bool) -> Result<u32, Cause> {
        let Self { tables, switch, trail, is_first, .. } = *self;
        let source = tables.switch(trail.source()).ok_or(Cause::NoRoute)?.leaf;
        let target = leaf(tables, switch, host).ok_or(Cause::NoRoute)?;
        if source == target {
            return self.shortest(frame, host);
        }
        if trail.is_reply() {
            if switch.leaf == target {
                frame.detour = if self.arrived(frame.time_ps, true) { PAUSE } else { 0 };
            } else if everywhere && let Some(port) = self.way_back(frame.time_ps) {
                return Ok(port);
            }
            return self.shortest(frame, host);
        }
        if is_first {
            frame.detour = 0;
        }
        if (is_first || everywhere)
            && let Some(port) = self.forward(frame, host)?
        {
            return Ok(port);
        }
        let onward = self.onward(frame, host, frame.detour)?;
        frame.detour = onward.note;
        self.hashed(frame, &onward)
    }

    /// The port of the shortest path, hashed among several.
    #[inline(always)]
    fn shortest(&self, frame: &Frame, host: u32) -> Result<u32, Cause> {
        self.hashed(frame, &self.onward(frame, host, detour::SHORTEST)?)
    }

    #[inline(always)]
    fn onward(&self, frame: &Frame, host: u32, note: u8) -> Result<Onward, Cause> {
        let (toward, note) = detour::aim(self.switch, note, host, self.random_bits());
        let group = self.tables.group(frame.time_ps, frame.switch, toward).ok_or(Cause::NoRoute)?;
        Ok(Onward { group, note })
    }

    /// Random bits of the flow, in place of the frame's.
    #[inline(always)]
    fn random_bits(&self) -> u32 {
        (self.trail.flow() >> 32) as u32
    }

    #[inline(always)]
    fn hashed(&self, frame: &Frame, onward: &Onward) -> Result<u32, Cause> {
        let Group { first, count, .. } = onward.group;
        let rank = match count {
            0 => return Err(Cause::NoRoute),
            1 => 0,
            _ => hashed::rank(self.switch, &onward.group, frame.flow),
        };
        self.tables.member(first.wrapping_add(rank)).ok_or(Cause::NoRoute)
    }

    #[inline(always)]
    fn word(&self, index: u32) -> Option<&F::Word> {
        self.tables.word(self.switch.memory.wrapping_add(index))
    }

    #[inline(always)]
    fn load(&self, index: u32) -> u64 {
        self.word(index).map_or(0, Word::load)
    }

    #[inline(always)]
    fn store(&self, index: u32, value: u64) {
        if let Some(word) = self.word(index) {
            word.store(value);
        }
    }

    #[inline(always)]
    fn latest(&self, entry: u32) -> Latest {
        Latest::unpack(self.load(entry + LATEST))
    }

    #[inline(always)]
    fn port_of(&self, entry: u32) -> Port {
        Port::unpack(self.load(entry + PORT))
    }

    #[inline(always)]
    fn trend(&self, entry: u32) -> Trend {
        Trend::unpack(self.load(entry + TREND))
    }

    /// When the frame's packet was sent, plus 1, so that it is after 0 in a new entry.
    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.trail.stamp().saturating_add(1)
    }

    /// Index of the flow's set: the count of packets without an entry, then the entries.
    #[inline(always)]
    fn set(&self) -> u32 {
        let number = (mix(self.flow ^ self.switch.salt) >> 32) as u32 & (SETS - 1);
        TABLE + number * SET
    }

    /// The last entry of the flow's set that meets a condition.
    #[inline(always)]
    fn entry(&self, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.set() + 1;
        let mut found = None;
        for way in 0..WAYS {
            let entry = first + way * ENTRY;
            if is_wanted(entry) {
                found = Some(entry);
            }
        }
        found
    }

    #[inline(always)]
    fn known(&self) -> Option<u32> {
        self.entry(|entry| self.load(entry) == self.flow)
    }

    /// Whether no packet of an entry's flow is in flight.
    #[inline(always)]
    fn is_idle(&self, entry: u32) -> bool {
        self.load(entry + SENT) <= self.load(entry + ARRIVED)
    }

    /// The port of a data frame at a switch with entries; `None`: no entry, the port is hashed.
    //= docs/specs/flowcut-switch.md#FCS-2 one port for a flowcut
    #[inline(always)]
    fn forward(&self, frame: &mut Frame, host: u32) -> Result<Option<u32>, Cause> {
        // A trimmed header is no data: it may overtake, and does not count as arrived.
        let is_data = !frame.control;
        let (entry, is_new) = match self.known() {
            Some(entry) => (entry, false),
            None if !is_data => return Ok(None),
            None => match self.allocate_entry() {
                Some(entry) => (entry, true),
                None => return Ok(None),
            },
        };
        let Trend { note, .. } = self.trend(entry);
        let onward = self.onward(frame, host, if self.is_first && !is_new { note } else { frame.detour })?;
        let Port { number: port, place, .. } = self.port_of(entry);
        // The source changes a flow's path only when none of its packets is in flight.
        let is_moved = onward.note != note;
        let stays = !is_new
            && !is_moved
            && place < u32::from(onward.group.count)
            && self.tables.member(onward.group.first.wrapping_add(place)) == Some(port);
        if !is_data {
            return Ok(if stays { Some(port) } else { None });
        }
        let is_idle = is_new || self.is_idle(entry);
        //= docs/specs/flowcut-switch.md#FCS-7 ports removed by routing
        let is_over = || frame.time_ps.saturating_sub(self.load(entry + PASSED)) > self.switch.gap_ps;
        let (port, note) = if is_idle || is_moved || (!stays && is_over()) {
            self.begin(entry, frame, host, onward, is_new).ok_or(Cause::NoRoute)?
        } else if stays {
            (port, note)
        } else {
            return Err(Cause::NoRoute);
        };
        frame.detour = note;
        if is_idle {
            self.store(entry + ARRIVED, self.stamp() - 1);
            self.count_active(1);
        }
        self.store(entry + SENT, self.stamp());
        self.store(entry + LATEST, Latest { number: self.trail.number() as u32, bytes: frame.len }.pack());
        self.store(entry + PASSED, frame.time_ps);
        Ok(Some(port))
    }

    //= docs/specs/flowcut-switch.md#FCS-6 a full table
    #[inline(always)]
    fn allocate_entry(&self) -> Option<u32> {
        let Some(entry) = self.entry(|entry| self.is_idle(entry)) else {
            self.word(self.set())?.add(1);
            return None;
        };
        self.store(entry, self.flow);
        Some(entry)
    }

    /// Chooses the port and the outgoing note of a new flowcut, or of one without its port.
    #[inline(always)]
    fn begin(&self, entry: u32, frame: &Frame, host: u32, onward: Onward, is_new: bool) -> Option<(u32, u8)> {
        // Once the table was full, a new entry's flow may have packets in flight by the hash.
        let overflowed = is_new && self.load(self.set()) != 0;
        let arrival = Arrival { checksum: self.random_bits(), detour: 0, ..Arrival::of(frame, host) };
        //= docs/specs/flowcut-switch.md#FCS-3 the least loaded port
        let least = |group: &Group| least_loaded(self.tables, self.switch, group, &arrival, LoadMeasure::Bytes);
        let Choice { port, rank, detour } = if self.is_first && self.switch.groups.exist() && !overflowed {
            //= docs/specs/flowcut-switch.md#FCS-11 detours
            detour::decide(self.tables, self.switch, &arrival, false, least)?
        } else {
            let Onward { group, note } = onward;
            let rank = match group.count {
                0 => return None,
                1 => 0,
                _ if overflowed => hashed::rank(self.switch, &group, frame.flow),
                _ => least(&group),
            };
            Choice { port: self.tables.member(group.first.wrapping_add(rank))?, rank, detour: note }
        };
        let back =
            self.trail.previous_port().and_then(|port| self.tables.back(port)).map_or(0, |at| at.wrapping_add(1));
        self.store(entry + PORT, Port { number: port, back, place: rank }.pack());
        self.keep(entry, &Congestion::NONE, false, detour);
        Some((port, detour))
    }

    /// The port back to the flow's data, where all switches keep entries. A reply takes the last
    /// leg of a detour first, if known, then the first leg, and notes so: a switch may be on both.
    //= docs/specs/flowcut-switch.md#FCS-8 reverse path
    #[inline(always)]
    fn way_back(&self, now_ps: u64) -> Option<u32> {
        let last = Here { flow: self.flow ^ LAST_LEG, ..*self };
        if self.switch.groups.exist()
            && self.trail.note.load() == 0
            && let Some(entry) = last.known()
            && !last.is_idle(entry)
        {
            return last.back(now_ps);
        }
        let port = self.back(now_ps)?;
        self.trail.note.store(1);
        Some(port)
    }

    #[inline(always)]
    fn back(&self, now_ps: u64) -> Option<u32> {
        let Port { back, .. } = self.port_of(self.known()?);
        self.arrived(now_ps, false);
        back.checked_sub(1)
    }

    /// Processes a reply; returns whether the host must pause. Only the source's switch measures.
    //= docs/specs/flowcut-switch.md#FCS-4 acknowledged packets
    //= docs/specs/flowcut-switch.md#FCS-5 draining
    #[inline(always)]
    fn arrived(&self, now_ps: u64, measures: bool) -> bool {
        let Some(entry) = self.known() else { return false };
        let Trend { trend, mut drains, note } = self.trend(entry);
        if self.is_idle(entry) {
            return false;
        }
        // The echo of a packet that has not passed here is ignored.
        let stamp = self.stamp();
        if !self.trail.acknowledges() || stamp <= self.load(entry + ARRIVED) || stamp > self.load(entry + SENT) {
            return drains;
        }
        self.store(entry + ARRIVED, stamp);
        if self.is_idle(entry) {
            self.count_active(-1);
            return false;
        }
        if !measures {
            return false;
        }
        let PathAverage { average, previous } = PathAverage::unpack(self.load(entry + PATH));
        let mut path = Congestion { average, previous, trend };
        let rule = &self.switch.flowcut;
        path.on_sample(rule, self.normalised(entry, now_ps));
        drains |= path.is_slow(rule) || path.is_growing(rule);
        //= docs/specs/flowcut-switch.md#FCS-9 early resumption
        let open = self.latest(entry).number.wrapping_sub(self.trail.number() as u32).wrapping_add(1);
        drains &= open > self.switch.resume_packets;
        self.keep(entry, &path, drains, note);
        drains
    }

    /// The acknowledged packet's round-trip time from here, over the least for its hops and bytes.
    /// The host's clock differs: its passing time follows from both times of the latest packet.
    #[inline(always)]
    fn normalised(&self, entry: u32, now_ps: u64) -> u32 {
        let port = self.port_of(entry).number;
        let kib_ps = self.tables.queue_state(port, now_ps).map_or(0, |waiting| waiting.kib_ps()) as u32;
        let earlier_ps = self.load(entry + SENT).saturating_sub(self.stamp());
        let rtt_ps = now_ps.saturating_sub(self.load(entry + PASSED)).saturating_add(earlier_ps);
        let bytes = self.latest(entry).bytes;
        let sample = Sample::new(rtt_ps, bytes, kib_ps, self.trail.hops());
        let index = sample.hops() as u32;
        let known = self.load(index) as u32;
        let least = if known == 0 || sample.queueless() < known { sample.queueless() } else { known };
        self.store(index, u64::from(least));
        sample.over(sample.reference(least))
    }

    #[inline(always)]
    fn keep(&self, entry: u32, path: &Congestion, drains: bool, note: u8) {
        let Congestion { average, previous, trend } = *path;
        self.store(entry + PATH, PathAverage { average, previous }.pack());
        self.store(entry + TREND, Trend { trend, drains, note }.pack());
    }

    #[inline(always)]
    fn count_active(&self, change: i32) {
        let Active { now, most } = Active::unpack(self.load(ACTIVE));
        let now = now.wrapping_add_signed(change);
        self.store(ACTIVE, Active { now, most: if now > most { now } else { most } }.pack());
    }
}

#[cfg(test)]
mod tests;
