//! Conga: flowlets take the least congested path to their leaf (Alizadeh et al., *CONGA:
//! Distributed Congestion-Aware Load Balancing for Datacenters*, SIGCOMM 2014, §3).
//!
//! A frame carries its uplink and the maximum congestion on its path; the destination's leaf stores
//! both, and returns them on frames in the other direction.

use super::flowlet::{self, FLOWLETS};
use super::forwarding::{Arrival, Forwarding, leaf};
use super::hashed;
use super::layout::Size;
use super::subprograms::{LoadMeasure, LoadQuery};
use crate::frame::Frame;
use crate::packed::packed;
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Congestion has three bits (§3.3, *Parameter choices*: Q = 3).
const MAX_METRIC: u64 = 7;

/// A port's estimate decays by 1/8 every 20 us, so that it spans 160 us (§3.2; the paper's tau).
const DECAY_PS: u64 = 20_000_000;
/// Maximum lateness of a frame in periods: 82 ms.
const LATE: u64 = 1 << 12;
const SPAN_PS: u64 = 8 * DECAY_PS;

/// The feedback of a path fades when it is not renewed for 10 ms (§3.3).
const FADES_US: u64 = 10_000;

/// (7/8)^1, ^2, ^4 and so on in units of 2^-16.
const POWERS: [u64; 6] = [57_344, 50_176, 38_416, 22_519, 7_737, 913];

/// Uplinks per word of metrics to return: four bits each, the metric and whether it is new.
const TAGS_IN_WORD: u32 = 16;
const NEW: u64 = 8;
const ALL_NEW: u64 = 0x8888_8888_8888_8888;

packed! {
    struct CongaNote {
        /// Its uplink, and the congestion of its path.
        tag: u32 in 8,
        load: u64 in 8,
        /// Feedback: an uplink of the destination's leaf, and its congestion.
        back: u32 in 8,
        back_load: u64 in 8,
        /// With feedback.
        returns: bool in 1,
        /// Of a scheme with this base.
        rest: u64 in 31,
    }
}

packed! {
    /// A port's rate estimate: bytes, and their last [period](DECAY_PS) of decay.
    struct Estimate {
        bytes: u64 in 32,
        period: u64 in 32,
    }
}

packed! {
    /// The feedback of a path: its congestion, and the time in us.
    struct Feedback {
        load: u64 in 3,
        at_us: u64 in 61,
    }
}

/// Words of a leaf: flowlets, congestion to each leaf by uplink, and metrics to return.
pub(super) const fn words(size: &Size) -> u32 {
    FLOWLETS + size.leaves * (size.uplinks + 1 + returned(size.uplinks))
}

const fn returned(uplinks: u32) -> u32 {
    uplinks.div_ceil(TAGS_IN_WORD)
}

/// Routes a frame at a switch: chooses its port, unless `pinned`, and updates its note.
#[inline(always)]
pub(super) fn route<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    pinned: Option<u32>,
) -> Option<u32> {
    let trail = tables.trail()?;
    let arrival = Arrival::of(frame, host);
    let group = tables.group(arrival.t_ps, arrival.switch, host)?;
    let (source, target) = (tables.switch(trail.source())?.leaf, leaf(tables, switch, host)?);
    if switch.leaf == target {
        if source != target {
            learn(tables, switch, source, CongaNote::unpack(trail.note.load()), arrival.t_ps);
        }
        return tables.member(group.first);
    }
    let rank = match group.count {
        0 => return None,
        1 => 0,
        _ if pinned.is_some() => 0,
        _ if switch.leaf != source => hashed::rank(switch, &group, arrival.flow),
        _ => flowlet::rank(tables, switch, &group, &arrival, |before| {
            least(tables, switch, &group, &arrival, target, before)
        })?,
    };
    let port = match pinned {
        Some(port) => port,
        None => tables.member(group.first.wrapping_add(rank))?,
    };
    let load = crosses(tables, port, &arrival, frame.len);
    let note = CongaNote::unpack(trail.note.load());
    //= docs/specs/switching.md#SWC-52 metrics in a frame
    let note = if switch.leaf == source {
        let (back, back_load, returns) = next_feedback(tables, switch, target);
        CongaNote { tag: tables.tag(port)?, load, back, back_load, returns, rest: note.rest }
    } else {
        CongaNote { load: load.max(note.load), ..note }
    };
    trail.note.store(note.pack());
    Some(port)
}

/// The least congested path's place; the previous flowlet's, if no other is better.
//= docs/specs/switching.md#SWC-51 the least congested path
#[inline(always)]
fn least<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    target: u32,
    before: Option<u32>,
) -> u32 {
    let row = to_leaf(switch, target);
    let query = LoadQuery { measure: LoadMeasure::Path, random: (frame.random(switch) >> 32) as u32, row };
    let best = tables.least(group, frame.t_ps, &query);
    let load = |place: u32| tables.score(group.first.wrapping_add(place), frame.t_ps, &query, place) >> 32;
    match before {
        Some(before) if load(before) <= load(best) => before,
        _ => best,
    }
}

/// Index of the congestion toward a leaf.
#[inline(always)]
fn to_leaf(switch: &SwitchConfig, leaf: u32) -> u32 {
    switch.memory.wrapping_add(FLOWLETS).wrapping_add(leaf.wrapping_mul(switch.uplinks))
}

/// Index of a leaf's metrics to return: the next uplink, then the metrics.
#[inline(always)]
fn from_leaf(switch: &SwitchConfig, leaf: u32) -> u32 {
    to_leaf(switch, switch.leaves).wrapping_add(leaf.wrapping_mul(1 + returned(switch.uplinks)))
}

/// The congestion of the path by a port: of the port itself, or the feedback of the rest.
#[inline(always)]
pub(super) fn load<F: Forwarding>(tables: &F, port: u32, t_ps: u64, row: u32) -> Option<u64> {
    let feedback = Feedback::unpack(tables.word(row.wrapping_add(tables.tag(port)?))?.load());
    Some(congestion(tables, port, t_ps)?.max(faded(feedback, t_ps)))
}

/// The congestion by feedback, halved for each period without renewal.
//= docs/specs/switching.md#SWC-54 ageing of metrics
#[inline(always)]
fn faded(feedback: Feedback, t_ps: u64) -> u64 {
    let age_us = (t_ps / 1_000_000).saturating_sub(feedback.at_us);
    feedback.load >> (age_us / FADES_US).min(63)
}

/// Counts a frame at a port; returns the congestion of the port.
//= docs/specs/switching.md#SWC-50 congestion metric of a port
#[inline(always)]
fn crosses<F: Forwarding>(tables: &F, port: u32, frame: &Arrival, len: u32) -> u64 {
    let Some(word) = tables.rate_word(port) else { return 0 };
    let Estimate { bytes, period } = decayed(word.load(), frame.t_ps);
    let bytes = (bytes + u64::from(len)).min(u64::from(u32::MAX));
    word.store(Estimate { bytes, period }.pack());
    quantised(tables, port, frame.t_ps, bytes)
}

#[inline(always)]
fn congestion<F: Forwarding>(tables: &F, port: u32, t_ps: u64) -> Option<u64> {
    let Estimate { bytes, .. } = decayed(tables.rate_word(port)?.load(), t_ps);
    Some(quantised(tables, port, t_ps, bytes))
}

/// An estimate decayed to the period of `t_ps`, or unchanged for a late frame. Period numbers wrap
/// after a day: those up to [`LATE`] before the estimate's are of late frames.
#[inline(always)]
fn decayed(word: u64, t_ps: u64) -> Estimate {
    let Estimate { mut bytes, period } = Estimate::unpack(word);
    let now = (t_ps / DECAY_PS) & 0xffff_ffff;
    let periods = now.wrapping_sub(period) & 0xffff_ffff;
    if periods.wrapping_sub(1) >= 0xffff_ffff - LATE {
        return Estimate { bytes, period };
    }
    for (bit, power) in POWERS.iter().enumerate() {
        if periods >> bit & 1 != 0 {
            bytes = (bytes * power) >> 16;
        }
    }
    Estimate { bytes: if periods >> POWERS.len() != 0 { 0 } else { bytes }, period: now }
}

/// Bytes of an estimate as a share of the link's capacity in its span: 0 to [`MAX_METRIC`].
#[inline(always)]
fn quantised<F: Forwarding>(tables: &F, port: u32, t_ps: u64, bytes: u64) -> u64 {
    let full = tables.queue_state(port, t_ps).map_or(1, |waiting| waiting.bytes_in(SPAN_PS)).max(1);
    ((bytes << 3) / full).min(MAX_METRIC)
}

/// Stores a frame's congestion, to be returned, and its feedback.
//= docs/specs/switching.md#SWC-53 metrics kept by a leaf
#[inline(always)]
fn learn<F: Forwarding>(tables: &F, switch: &SwitchConfig, source: u32, note: CongaNote, t_ps: u64) {
    let (tag, load) = (note.tag, note.load & MAX_METRIC);
    if tag < switch.uplinks
        && let Some(word) = tables.word(from_leaf(switch, source).wrapping_add(1 + tag / TAGS_IN_WORD))
    {
        let shift = 4 * (tag % TAGS_IN_WORD);
        let known = word.load();
        if known >> shift & MAX_METRIC != load {
            word.store(known & !(0xf << shift) | (load | NEW) << shift);
        }
    }
    if note.returns
        && note.back < switch.uplinks
        && let Some(word) = tables.word(to_leaf(switch, source).wrapping_add(note.back))
    {
        word.store(Feedback { load: note.back_load, at_us: t_ps / 1_000_000 }.pack());
    }
}

/// The feedback for a leaf: an uplink, its congestion, and whether there is any. Round robin over
/// the uplinks, new metrics first.
//= docs/specs/switching.md#SWC-53 metrics kept by a leaf
#[inline(always)]
fn next_feedback<F: Forwarding>(tables: &F, switch: &SwitchConfig, leaf: u32) -> (u32, u64, bool) {
    let row = from_leaf(switch, leaf);
    let Some(turn) = tables.word(row) else { return (0, 0, false) };
    let first = turn.next() as u32 % switch.uplinks.max(1);
    let Some(word) = tables.word(row.wrapping_add(1 + first / TAGS_IN_WORD)) else {
        return (0, 0, false);
    };
    let known = word.load();
    let start = first % TAGS_IN_WORD;
    let new = (known & ALL_NEW).rotate_right(4 * start);
    let tag = if new == 0 { start } else { start.wrapping_add(lowest(new) / 4) % TAGS_IN_WORD };
    word.store(known & !(NEW << (4 * tag)));
    (first - start + tag, known >> (4 * tag) & MAX_METRIC, true)
}

/// The lowest set bit: BPF has no instruction, and the compiler would use a table.
#[inline(always)]
fn lowest(bits: u64) -> u32 {
    let mut at = 0;
    let mut left = bits;
    for shift in [32, 16, 8, 4, 2, 1] {
        if left & ((1 << shift) - 1) == 0 {
            left >>= shift;
            at += shift;
        }
    }
    at
}

#[cfg(test)]
mod tests;
