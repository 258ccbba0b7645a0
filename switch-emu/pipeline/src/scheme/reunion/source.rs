//! The source switch: detects elephants, and reroutes notified ones (Reunion §3.2, §3.3, §3.6).

use super::between::behind;
use super::hop::Hop;
use super::links::{self, pinned};
use super::memory::{Memory, before};
use super::regions::single;
use super::{destination, flows, sketch};
use crate::frame::Frame;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::note::ReunionNote;
use crate::scheme::path::{self, PathEnds};
use crate::word::Word;

/// Reroutes a flow that was notified in the last interval, if a path is available (Algorithm 2).
//= docs/specs/reunion.md#REU-15 rerouting
#[inline(always)]
pub(super) fn reroute<F: Forwarding>(hop: &Hop<'_, F>, frame: &mut Frame) -> Option<()> {
    let Hop { tables, trail, ref memory, ref ends, .. } = *hop;
    let interval = memory.interval()?;
    let Some(known) = flows::find(memory, trail.flow(), ends.t_ps) else { return Some(()) };
    //= docs/specs/reunion.md#REU-8 the fallback
    if known.has_paused(memory.load(single::TIMEOUT_PS)?) {
        known.give(0);
    }
    known.comes();
    let notified = known.notified();
    if notified == 0 || notified == interval {
        return Some(());
    }
    if notified == before(interval) {
        if let Some(path) = links::find(tables, frame, ends) {
            known.moves(interval, path);
            memory.word(single::REROUTED)?.add(1);
            return Some(());
        }
        memory.word(single::STUCK)?.add(1);
    }
    known.give(known.path());
    Some(())
}

/// Counts a frame to another leaf; if its flow has a path, notes that and returns its port.
#[inline(always)]
pub(super) fn prepare<F: Forwarding>(hop: &Hop<'_, F>, frame: &Frame) -> Option<Option<u32>> {
    let Hop { tables, trail, ref memory, ref ends, .. } = *hop;
    let interval = memory.interval()?;
    if frame.control {
        return Some(None);
    }
    let known = count(hop, trail.flow(), interval)?;
    let Some(known) = known.filter(|known| known.path() != 0) else { return Some(None) };
    let group = tables.group(frame.time_ps, frame.switch, ends.host)?;
    let pinned = pinned(memory, tables, &group, path::uplink(known.path(), 0));
    match pinned {
        Some(_) => trail.note.store(ReunionNote::data(known.path(), false).beside(trail.note.load())),
        None => known.give(0),
    }
    Some(pinned)
}

/// The note of a frame behind this port, on the path that it has noted, if any.
#[inline(always)]
pub(super) fn settle<F: Forwarding>(hop: &Hop<'_, F>, frame: &Frame, port: u32) -> Option<ReunionNote> {
    let Hop { tables, trail, ref memory, ref ends, .. } = *hop;
    let interval = memory.interval()?;
    if frame.control {
        let own = hop.note();
        let ridden = || destination::piggyback(tables, memory, interval, ends.target).unwrap_or_default();
        return Some(if own.notified().is_some() { own } else { ridden() });
    }
    let path = path::with_uplink(hop.note().path, 0, tables.uplink(port)?);
    let elephant = flows::find(memory, trail.flow(), ends.t_ps).filter(|known| known.is_elephant(interval));
    let note = ReunionNote::data(path, elephant.is_some());
    Some(match elephant {
        Some(known) => collides(hop, &known, interval, path, note, port),
        None => note,
    })
}

/// Counts a frame of a flow, and returns its entry; `None` if it is no elephant.
#[inline(always)]
fn count<'a, F: Forwarding>(hop: &Hop<'a, F>, flow: u64, interval: u64) -> Option<Option<flows::Entry<'a, F::Word>>> {
    let Hop { ref memory, ref ends, .. } = *hop;
    let frames = sketch::count(memory, flow, interval)?;
    let known = flows::find(memory, flow, ends.t_ps);
    if known.as_ref().is_some_and(|known| known.is_elephant(interval)) {
        return Some(known);
    }
    if !sketch::is_large(memory, frames) || !sketch::admit(memory, interval)? {
        return Some(known);
    }
    let timeout_ps = memory.load(single::TIMEOUT_PS)?;
    let known = known.or_else(|| flows::enter(memory, flow, ends.t_ps, timeout_ps));
    if let Some(known) = &known {
        // Without a path yet.
        known.counts(interval, 0);
    }
    Some(known)
}

/// Counts an elephant on its path's links, once per interval and path; notes a collision.
//= docs/specs/reunion.md#REU-9 links of the source
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
fn collides<F: Forwarding>(
    hop: &Hop<'_, F>,
    known: &flows::Entry<'_, F::Word>,
    interval: u64,
    path: u32,
    note: ReunionNote,
    port: u32,
) -> ReunionNote {
    let Hop { tables, ref memory, ref ends, .. } = *hop;
    let table = memory.links(interval);
    if known.counts(interval, path) {
        links::count(tables, ends, &table, path, |_, _| {});
    }
    behind(memory, &table, port, note)
}

/// Processes a notification: excludes its links now, and moves its flow after the interval.
//= docs/specs/reunion.md#REU-14 notifications
#[inline(always)]
pub(super) fn notified<F: Forwarding>(hop: &Hop<'_, F>, note: ReunionNote) -> Option<()> {
    let Hop { tables, source, ref memory, ends: PathEnds { t_ps, .. }, .. } = *hop;
    let (place, low) = note.notified()?;
    let interval = memory.interval()?;
    let links = memory.links(interval);
    let sender = Memory::of(tables, source)?;
    let notification = destination::read(&sender, place, low)?;
    links.mark(notification.link);
    destination::for_high(&sender, notification.interval, |link| links.mark(link));
    flows::find(memory, notification.flow, t_ps)?.notify(interval);
    Some(())
}
