//! Routing at the source switch, the destination switch, or one in between.

use super::tag::{Kind, Tag};
use super::{destination, source};
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::forwarding::{Forwarding, leaf};
use crate::scheme::hashed;
use crate::scheme::note::ReunionNote;
use crate::scheme::path::{self, PathEnds};
use crate::word::Word;

/// Routes a frame at a switch: chooses its port, and updates its note.
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
        return send(tables, switch, frame, &PathEnds { t_ps: frame.time_ps, from, host, target }, 0);
    }
    let note = ReunionNote::unpack(trail.note.load());
    let uplink = if here || switch.leaf == target { 0 } else { path::uplink(note.path, note.hops) };
    let port = follow(tables, switch, frame, host, pinned(tables, frame, host, uplink));
    trail.note.store(note.further().beside(trail.note.load()));
    port
}

/// Routes a frame under Reunion, which chose `port` or, at the source, the path in its note.
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
        return follow(tables, switch, frame, host, port);
    }
    let given = ReunionNote::unpack(trail.note.load()).path;
    send(tables, switch, frame, &PathEnds { t_ps: frame.time_ps, from, host, target }, given)
}

/// Routes a frame to another leaf at its source: returns its port, and notes its path. A flow takes
/// a `given` path (not 0) as soon as it may.
fn send<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Frame, ends: &PathEnds, given: u32) -> Option<u32> {
    let trail = tables.trail()?;
    let state = tables.state(frame.switch);
    let path = match state.and_then(|state| source::send(tables, &mut state.borrow_mut(), switch, frame, ends, given)) {
        Some(packet) => {
            trail.set_more([frame.time_ps, packet.tag.word()]);
            packet.path
        }
        None => 0,
    };
    trail.note.store(ReunionNote::data(path, false).pack());
    let pinned = pinned(tables, frame, ends.host, path::uplink(path, 0));
    pinned.or_else(|| hashed::port(tables, switch, frame, ends.host))
}

/// Routes a frame by the port of its path, if known; its destination processes its tag.
fn follow<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    host: u32,
    pinned: Option<u32>,
) -> Option<u32> {
    let trail = tables.trail()?;
    let tag = Tag::of(trail.more()[1]);
    if tag.kind != Kind::Other && leaf(tables, switch, host)? == switch.leaf {
        let mut state = tables.state(frame.switch)?.borrow_mut();
        match tag.kind {
            Kind::Reply | Kind::Clear | Kind::Notify => source::on_control(tables, &mut state, frame.time_ps, tag),
            _ => destination::arrive(tables, &mut state, frame, host, tag),
        }
    }
    pinned.or_else(|| hashed::port(tables, switch, frame, host))
}

/// The port of an uplink, if it is on a route.
//= docs/specs/conweave.md#CWV-2 source routing
fn pinned<F: Forwarding>(tables: &F, frame: &Frame, host: u32, uplink: u32) -> Option<u32> {
    if uplink == 0 {
        return None;
    }
    let group = tables.group(frame.time_ps, frame.switch, host)?;
    tables.state(frame.switch)?.borrow().uplinks.port(uplink).filter(|port| path::has(tables, &group, *port))
}
