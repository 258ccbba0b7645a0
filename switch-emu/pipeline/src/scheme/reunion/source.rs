//! What a source switch does: it knows its elephants, and moves those that it is told to (Reunion §3.2, §3.3, §3.6).

use super::memory::{MARKED, Memory, before, single};
use super::note::Note;
use super::path::{self, Course};
use super::{base_port, destination, flows, sketch};
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::{Forwarding, Scheme};
use crate::word::Word;

/// Takes a frame that its host sends to another leaf; returns its port.
#[inline(always)]
pub(super) fn route<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    base: Scheme,
    course: &Course,
) -> Option<u32> {
    let trail = tables.trail()?;
    let memory = Memory::of(tables, switch, base);
    let interval = memory.enter(frame.time_ps)?;
    if frame.control {
        let own = Note::of(trail.note.load());
        let port = base_port(tables, switch, frame, course.host, base, None)?;
        let note = match own.notified() {
            Some(_) => own,
            None => destination::ride(tables, &memory, interval, course.target).unwrap_or_default(),
        };
        trail.note.store(note.into(trail.note.load()));
        return Some(port);
    }
    let flow = trail.flow();
    let known = place(tables, switch, &memory, flow, interval, course)?;
    let given = known.as_ref().map_or(0, flows::Known::path);
    let group = tables.group(frame.time_ps, frame.switch, course.host)?;
    let pinned = path::pinned(&memory, tables, &group, path::way(given, 0));
    let given_now = if pinned.is_some() { given } else { 0 };
    let (port, path) = chosen(tables, switch, frame, base, course, (given_now, pinned))?;
    let elephant = known.as_ref().is_some_and(|known| known.is_elephant(interval));
    let mut note = Note::data(path, elephant);
    if let Some(known) = known {
        if given != 0 && pinned.is_none() {
            known.give(0);
        }
        if elephant {
            note = collides(tables, &memory, &known, interval, course, path, note, port);
        }
    }
    trail.note.store(note.into(trail.note.load()));
    Some(port)
}

/// The port and the path of a frame of a flow that has been given this path, by this port; ([0](path::way), `None`): none.
#[inline(always)]
fn chosen<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    base: Scheme,
    course: &Course,
    (given, pinned): (u32, Option<u32>),
) -> Option<(u32, u32)> {
    //= docs/specs/conweave.md#CWV-19 under Reunion
    #[cfg(not(target_arch = "bpf"))]
    if base == Scheme::ConWeave {
        return crate::scheme::conweave::send(tables, switch, frame, course, given);
    }
    let port = base_port(tables, switch, frame, course.host, base, pinned)?;
    Some((port, path::with_way(given, 0, tables.way(port)?)))
}

/// Counts a frame of a flow, moves it if it is time, and returns what is known of it: `None` of a flow that is none of the elephants.
#[inline(always)]
fn place<'a, F: Forwarding>(
    tables: &'a F,
    switch: &SwitchConfig,
    memory: &Memory<'a, F>,
    flow: u64,
    interval: u64,
    course: &Course,
) -> Option<Option<flows::Known<'a, F::Word>>> {
    let frames = sketch::count(memory, flow, interval)?;
    let timeout_ps = memory.load(single::TIMEOUT_PS)?;
    let known = flows::find(memory, flow, course.t_ps);
    if let Some(known) = &known {
        //= docs/specs/reunion.md#REU-8 the fallback
        if known.has_paused(timeout_ps) {
            known.give(0);
        }
        known.comes();
        move_it(tables, switch, memory, known, flow, interval, course)?;
    }
    if known.as_ref().is_some_and(|known| known.is_elephant(interval)) {
        return Some(known);
    }
    if !sketch::is_large(memory, frames) || !sketch::admit(memory, interval)? {
        return Some(known);
    }
    let known = known.or_else(|| flows::enter(memory, flow, course.t_ps, timeout_ps));
    if let Some(known) = &known {
        // On no path yet.
        known.counts(interval, 0);
    }
    Some(known)
}

/// Moves a flow that was notified in the interval that is over, if there is an available path (Algorithm 2).
//= docs/specs/reunion.md#REU-15 rerouting
#[inline(always)]
fn move_it<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    memory: &Memory<'_, F>,
    known: &flows::Known<'_, F::Word>,
    flow: u64,
    interval: u64,
    course: &Course,
) -> Option<()> {
    let notified = known.notified();
    if notified == 0 || notified == interval {
        return Some(());
    }
    if notified == before(interval) {
        let links = memory.links(notified);
        let tolerance = memory.load(single::TOLERANCE)? as u32;
        let random = path::lot(switch, flow, course.t_ps);
        match path::find(tables, course, &links, tolerance, random) {
            Some(path) => {
                known.moves(interval, path);
                memory.word(single::REROUTED)?.add(1);
                return Some(());
            }
            None => memory.word(single::STUCK)?.add(1),
        }
    }
    known.give(known.path());
    Some(())
}

/// Counts an elephant on the links of its path, once an interval and path; notes whether its first link has too many.
//= docs/specs/reunion.md#REU-9 links of the source
//= docs/specs/reunion.md#REU-10 a collision
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "all of them are registers in the kernel")]
fn collides<F: Forwarding>(
    tables: &F,
    memory: &Memory<'_, F>,
    known: &flows::Known<'_, F::Word>,
    interval: u64,
    course: &Course,
    path: u32,
    note: Note,
    port: u32,
) -> Note {
    let links = memory.links(interval);
    if known.counts(interval, path) {
        path::count(tables, course, &links, path, |_, _| {});
    }
    let elephants = links.value(port);
    let tolerance = memory.load(single::TOLERANCE).unwrap_or(u64::MAX);
    if elephants != MARKED && u64::from(elephants) > tolerance { note.collided() } else { note }
}

/// A notification has come: its links are not to be chosen in this interval, and its flow is to be moved when it ends.
//= docs/specs/reunion.md#REU-14 what a notification does
#[inline(always)]
pub(super) fn notified<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    base: Scheme,
    t_ps: u64,
    source: &SwitchConfig,
    note: Note,
) -> Option<()> {
    let (place, low) = note.notified()?;
    let memory = Memory::of(tables, switch, base);
    let interval = memory.enter(t_ps)?;
    let links = memory.links(interval);
    let sender = Memory::of(tables, source, base);
    let notification = destination::read(&sender, place, low)?;
    let mark = |link: u32| {
        if let Some(entry) = links.entry(link) {
            entry.set(MARKED);
        }
    };
    mark(notification.link);
    destination::for_high(&sender, notification.interval, mark);
    flows::find(&memory, notification.flow, t_ps)?.notify(interval);
    Some(())
}
