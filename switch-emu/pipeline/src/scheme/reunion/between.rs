//! Switches between leaves: follow notes, and note collisions (Reunion §3.1, §3.3).

use super::hop::Hop;
use super::links;
use super::memory::{IntervalTable, MAX_COUNT, Memory};
use super::regions::single;
use crate::frame::Frame;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::note::ReunionNote;
use crate::scheme::path;

/// Whether a frame's note is followed: control frames use the base.
#[inline(always)]
pub(super) fn follows_note<F: Forwarding>(hop: &Hop<'_, F>, frame: &Frame) -> bool {
    !frame.control || hop.note().elephant
}

/// The port by the frame's PathID.
//= docs/specs/reunion.md#REU-2 source routing
#[inline(always)]
pub(super) fn prepare<F: Forwarding>(hop: &Hop<'_, F>, frame: &Frame) -> Option<Option<u32>> {
    if !follows_note(hop, frame) {
        return Some(None);
    }
    let (note, tables) = (hop.note(), hop.tables);
    let group = tables.group(frame.time_ps, frame.switch, hop.ends.host)?;
    Some(links::pinned(&hop.memory, tables, &group, path::uplink(note.path, note.hops)))
}

/// The note of a frame behind this port.
//= docs/specs/reunion.md#REU-2 source routing
#[inline(always)]
pub(super) fn settle<F: Forwarding>(hop: &Hop<'_, F>, port: u32) -> Option<ReunionNote> {
    let (note, uplink) = (hop.note(), hop.tables.uplink(port)?);
    let path = if uplink == 0 { note.path } else { path::with_uplink(note.path, note.hops, uplink) };
    let note = ReunionNote { path, ..note }.further();
    if !note.elephant {
        return Some(note);
    }
    let interval = hop.memory.interval()?;
    Some(collides(&hop.memory, interval, (hop.trail.flow() >> 32) as u32, port, note))
}

/// Counts an elephant at a port, once per interval; notes a collision.
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
fn collides<F: Forwarding>(
    memory: &Memory<'_, F>,
    interval: u64,
    flow: u32,
    port: u32,
    note: ReunionNote,
) -> ReunionNote {
    let links = memory.links(interval);
    if let Some(entry) = memory.seen(interval).entry(flow)
        && entry.value != Some(port & 0xffff)
    {
        entry.set(port);
        links.count(port);
    }
    behind(memory, &links, port, note)
}

/// The note of an elephant behind a port: with a collision, if the port has too many.
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
pub(super) fn behind<F: Forwarding>(
    memory: &Memory<'_, F>,
    links: &IntervalTable<'_, F>,
    port: u32,
    note: ReunionNote,
) -> ReunionNote {
    let elephants = links.value(port) & MAX_COUNT;
    let tolerance = memory.load(single::TOLERANCE).unwrap_or(u64::MAX);
    if u64::from(elephants) > tolerance { note.collided() } else { note }
}
