//! One hop of a frame: through a switch, or over the link of its host.

use crate::config::{Globals, HOST};
use crate::frame::Frame;
use crate::port;
use crate::routes::Routes;
use crate::scheme::{Arrival, Scheme, choose};
use crate::tables::Tables;
use crate::verdict::Cause;
use crate::view::View;
use crate::word::Word;

/// Returns whether `switch` is the last one toward this host.
#[inline(always)]
pub fn is_last<T: Tables>(tables: &T, switch: u32, t_ps: u64, host: u32) -> bool {
    let group = View::of(tables).and_then(|view| view.group(t_ps, switch, host));
    let port = group.and_then(|group| tables.port(tables.member(group.first)?));
    switch < HOST && port.is_some_and(|port| port.next == HOST)
}

/// Moves a frame through its present switch: sets its egress port and next switch.
#[inline(always)]
pub fn cross<T: Tables>(tables: &T, frame: &mut Frame, host: u32) -> Result<(), Cause> {
    let globals = tables.globals().ok_or(Cause::NoRoute)?;
    let (number, detour) = next(tables, globals, frame, host).ok_or(Cause::NoRoute)?;
    let port = tables.port(number).ok_or(Cause::NoRoute)?;
    (frame.port, frame.detour) = (number, detour);
    frame.switch = port.next;
    //= docs/specs/virtual-queue.md#VQ-13 the host emulates the last port
    if port.next == HOST && frame.emulated {
        return Ok(());
    }
    let queues = tables.queues(number).ok_or(Cause::NoRoute)?;
    let counters = tables.counters(number).ok_or(Cause::NoRoute)?;
    port.transmit(frame, port::random(frame, number, globals.seed), queues, counters, |frame, transit| {
        tables.note(frame.port, transit);
    })
}

/// Moves a frame over its host's own link, `frame.port`, to the switch.
#[inline(always)]
pub fn enter<T: Tables>(tables: &T, frame: &mut Frame) -> Result<(), Cause> {
    let globals = tables.globals().ok_or(Cause::NoRoute)?;
    let port = tables.port(frame.port).ok_or(Cause::NoRoute)?;
    frame.switch = port.next;
    let number = frame.port;
    let queues = tables.queues(number).ok_or(Cause::NoRoute)?;
    let counters = tables.counters(number).ok_or(Cause::NoRoute)?;
    if frame.ttl == 0 {
        counters.drops_ttl.add(1);
        return Err(Cause::Ttl);
    }
    let random = port::random(frame, number, globals.seed);
    port.transmit_without_ttl(frame, random, port.limit, queues, counters, |_, _| {})
}

/// The egress port of a frame at its present switch, and its detour.
#[inline(always)]
fn next<T: Tables>(tables: &T, globals: &Globals, frame: &Frame, host: u32) -> Option<(u32, u8)> {
    let switch = tables.switch(frame.switch)?;
    if Scheme::from_number(switch.scheme).uses_trail() {
        return Some((frame.port, frame.detour));
    }
    let choice = choose(&View { tables, globals }, &Arrival::of(frame, host))?;
    Some((choice.port, choice.detour))
}
