//! How a frame goes through a switch: its source's, its destination's, or one between.

use super::memory::{Memory, OUTBOX, SENT_WORDS, single};
use super::tag::{Kind, Tag};
use super::{destination, source};
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::reunion::note::Note;
use crate::scheme::reunion::path::{self, Course};
use crate::scheme::{Arrival, Forwarding, Notice, Scheme, choose_by, leaf};
use crate::word::Word;

/// Takes a frame through a switch: chooses its port, reads and writes its note.
pub(in crate::scheme) fn route<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
) -> Option<u32> {
    let trail = tables.trail()?;
    let (from, target) = (trail.source(), leaf(tables, switch, host)?);
    let here = tables.switch(from)?.leaf == switch.leaf;
    if here && switch.leaf != target && !frame.control && !trail.is_reply() {
        return send(tables, switch, frame, &Course { t_ps: frame.time_ps, from, host, target }, 0);
    }
    let note = Note::of(trail.note.load());
    let way = if here || switch.leaf == target { 0 } else { path::way(note.path(), note.hops()) };
    let port = go_along(tables, switch, frame, host, pinned(tables, switch, frame, host, way));
    trail.note.store(note.further().into(trail.note.load()));
    port
}

/// Takes a frame through a switch with Reunion. `port` is the one that Reunion gives the frame. At the source of its flow, the note has the
/// path that Reunion gives.
//= docs/specs/conweave.md#CWV-19 under Reunion
pub(in crate::scheme) fn under_reunion<F: Forwarding>(
    tables: &F,
    frame: &Frame,
    host: u32,
    port: Option<u32>,
) -> Option<u32> {
    let (switch, trail) = (tables.switch(frame.switch)?, tables.trail()?);
    let (from, target) = (trail.source(), leaf(tables, switch, host)?);
    if tables.switch(from)?.leaf != switch.leaf || switch.leaf == target || frame.control {
        return go_along(tables, switch, frame, host, port);
    }
    let given = Note::of(trail.note.load()).path();
    send(tables, switch, frame, &Course { t_ps: frame.time_ps, from, host, target }, given)
}

/// Takes a frame of a flow that its host sends to another leaf: returns its port, and notes its path. A flow that has been `given` a path (not 0)
/// takes that as soon as it may.
fn send<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Frame, course: &Course, given: u32) -> Option<u32> {
    let trail = tables.trail()?;
    let path = match source::send(tables, switch, frame, course, given) {
        Some(packet) => {
            trail.set_more([frame.time_ps, packet.tag.word()]);
            packet.path
        }
        None => 0,
    };
    trail.note.store(Note::data(path, false).into(0));
    let pinned = pinned(tables, switch, frame, course.host, path::way(path, 0));
    hashed(tables, switch, frame, course.host, pinned)
}

/// Takes a frame through a switch that is not its source's, by the port of its path if that is known; at its destination's it is
/// heeded.
fn go_along<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    pinned: Option<u32>,
) -> Option<u32> {
    let trail = tables.trail()?;
    let tag = Tag::of(trail.more()[1]);
    if tag.kind != Kind::Other && leaf(tables, switch, host)? == switch.leaf {
        match tag.kind {
            Kind::Reply | Kind::Clear | Kind::Notify => source::hear(tables, switch, frame.time_ps, tag),
            _ => destination::arrive(tables, switch, frame, host, tag),
        }
    }
    hashed(tables, switch, frame, host, pinned)
}

/// The port of a way, if routes lead over it.
//= docs/specs/conweave.md#CWV-2 source routing
fn pinned<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Frame, host: u32, way: u32) -> Option<u32> {
    if way == 0 {
        return None;
    }
    let group = tables.group(frame.time_ps, frame.switch, host)?;
    Memory::of(tables, switch).way(way).filter(|port| path::has(tables, &group, *port))
}

fn hashed<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    pinned: Option<u32>,
) -> Option<u32> {
    match pinned {
        Some(port) => Some(port),
        None => Some(choose_by(tables, switch, &Arrival::of(frame, host), Scheme::Ecmp)?.port),
    }
}

/// Puts a frame of its own among those to send.
pub(super) fn tell<F: Forwarding>(memory: &Memory<'_, F>, to: u32, tag: Tag, flow: u64, path: u32) {
    let waiting = memory.load(single::TO_SEND);
    let counter = match tag.kind {
        Kind::Reply => single::REPLIES,
        Kind::Clear => single::CLEARS,
        _ => single::NOTIFIES,
    };
    memory.add(counter, 1);
    let first = OUTBOX.place(waiting as u32 * SENT_WORDS);
    memory.store(first, u64::from(to) << 32 | u64::from(path));
    memory.store(first + 1, flow);
    memory.store(first + 2, tag.word());
    memory.store(single::TO_SEND, (waiting + 1) % (u64::from(super::memory::MOST_TO_SEND) + 1));
}

/// The next frame of its own that a switch has to send.
//= docs/specs/conweave.md#CWV-12 frames of their own
pub(in crate::scheme) fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Notice> {
    let config = tables.switch(switch)?;
    if !Scheme::from_number(config.scheme).holds() {
        return None;
    }
    let memory = Memory::of(tables, config);
    let left = memory.load(single::TO_SEND).checked_sub(1)?;
    memory.store(single::TO_SEND, left);
    let first = OUTBOX.place(left as u32 * SENT_WORDS);
    let (head, flow, tag) = (memory.load(first), memory.load(first + 1), memory.load(first + 2));
    Some(Notice { to: (head >> 32) as u32, flow, more: [head & u64::from(u32::MAX), tag], ..Notice::default() })
}
