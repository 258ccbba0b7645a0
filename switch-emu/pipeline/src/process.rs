//! Processes a frame: parses it, moves it through all switches of a chassis, and returns a verdict.

use spray_wire::switch_view::{self, Headers, Packet, PacketFields, Parsed};
use spray_wire::{DSCP_CONTROL, DSCP_PAUSE, Ports};

use crate::config::{HOST, MAX_HOPS};
use crate::counters::ChassisCounters;
use crate::deployment::{KERNEL, NO_HOST};
use crate::frame::{self, Frame};
use crate::scheme::{NO_PORT, Scheme};
use crate::shim::{Shim, Shimmed, with_shim};
use crate::stages::Stages;
use crate::verdict::{Cause, Verdict};
use crate::word::Word;

/// Moves a frame with a [`Shim`] through the chassis from `ingress` on. Others are not emulated.
///
/// `now_ps` is called for the arrival time of a frame with virtual time 0. The frame is only
/// written when it is redirected.
//= docs/specs/switch.md#SW-1 accepted frames
#[inline(always)]
pub fn process<T: Stages>(
    tables: &T,
    packet: &mut (impl Shimmed + ?Sized),
    ingress: u32,
    now_ps: impl FnOnce() -> u64,
) -> Verdict {
    let Some(chassis) = tables.chassis() else { return Verdict::Pass };
    let (before, verdict, after) = {
        let Some((head, mut inner)) = packet.split() else { return pass_new(chassis) };
        let Some(shim) = Shim::read(head) else { return pass_new(chassis) };
        chassis.frames.add((!shim.between).into());
        let headers = match switch_view::parse(&inner, Ports::DEFAULT) {
            Parsed::Ours(headers) => headers,
            Parsed::Foreign => return pass(chassis),
            Parsed::Malformed => {
                chassis.malformed.add(1);
                return Verdict::Drop(Cause::Malformed);
            }
        };
        let entry = || (if shim.between { shim.switch } else { ingress }, NO_PORT);
        let (verdict, after) = carry(tables, &mut inner, &headers, shim, OURS, entry, now_ps);
        (shim, verdict, after)
    };
    let (verdict, between) = match verdict {
        Verdict::Redirect { port, trimmed_len } => {
            (Verdict::Redirect { port, trimmed_len: with_shim(trimmed_len) }, false)
        }
        Verdict::Return { trimmed_len } => (Verdict::Return { trimmed_len: with_shim(trimmed_len) }, true),
        Verdict::Expired { .. } => return Verdict::Drop(Cause::Ttl),
        verdict => return verdict,
    };
    if let Some((head, inner)) = packet.split() {
        let virtual_time_ps = if before.virtual_time_ps == 0 { 0 } else { after.virtual_time_ps };
        Shim { virtual_time_ps, between, ..after }.write(head);
        if before.between
            && !between
            && let Some(addresses) = inner.head()
        {
            Shim::readdress(head, addresses);
        }
    }
    verdict
}

#[inline(always)]
fn pass_new<C: Word>(chassis: &ChassisCounters<C>) -> Verdict {
    chassis.frames.add(1);
    pass(chassis)
}

#[inline(always)]
fn pass<C: Word>(chassis: &ChassisCounters<C>) -> Verdict {
    chassis.passed.add(1);
    Verdict::Pass
}

/// Moves any IP packet through a deployed fabric, in real time, first over the host's own link.
/// `entry` returns the ingress switch and that link's port; [`NO_PORT`] from another switch. The
/// TTL counts only if `routed`. [`Verdict::Pass`]: not a packet to a host.
///
/// Also returns when the frame arrives at the far end of its last cable, or at the switch where its
/// TTL expired, in ps of the same clock: it is delayed until then.
//= docs/specs/switch.md#SW-25 deployed fabrics
#[inline(always)]
pub fn process_any<T: Stages>(
    tables: &T,
    packet: &mut (impl Packet + ?Sized),
    routed: bool,
    entry: impl FnOnce() -> (u32, u32),
    now_ps: impl FnOnce() -> u64,
) -> (Verdict, u64) {
    let Some(chassis) = tables.chassis() else { return (Verdict::Pass, 0) };
    chassis.frames.add(1);
    let (headers, foreign) = match switch_view::parse(packet, Ports::DEFAULT) {
        Parsed::Ours(headers) => (headers, false),
        Parsed::Malformed => {
            chassis.malformed.add(1);
            return (Verdict::Drop(Cause::Malformed), 0);
        }
        Parsed::Foreign => match switch_view::parse_foreign(packet) {
            Some(headers) => (headers, true),
            None => return (pass(chassis), 0),
        },
    };
    if tables.host(&headers.destination).unwrap_or(NO_HOST) >= KERNEL {
        return (pass(chassis), 0);
    }
    let (verdict, after) = carry(tables, packet, &headers, Shim::default(), How { foreign, routed }, entry, now_ps);
    (verdict, after.virtual_time_ps)
}

#[derive(Clone, Copy)]
struct How {
    /// Without headers of ours.
    foreign: bool,
    routed: bool,
}

const OURS: How = How { foreign: false, routed: true };

/// Moves a parsed frame through the chassis. Also returns its new shim, with the real time of a
/// frame without a virtual time.
#[inline(always)]
fn carry<T: Stages>(
    tables: &T,
    packet: &mut (impl Packet + ?Sized),
    headers: &Headers,
    shim: Shim,
    how: How,
    entry: impl FnOnce() -> (u32, u32),
    now_ps: impl FnOnce() -> u64,
) -> (Verdict, Shim) {
    let Some(chassis) = tables.chassis() else { return (Verdict::Pass, shim) };
    // Before the frame, as the kernel's stack has no room for both. A number, not an `Option`,
    // whose unwritten payload the verifier would reject.
    let host = tables.host(&headers.destination).unwrap_or(NO_HOST);
    let mut frame = Frame::new(headers, shim, now_ps);
    if !how.routed {
        frame.ttl = u8::MAX;
    }
    // The origin, in the frame itself: the kernel's small stack has no room for more.
    (frame.switch, frame.port) = entry();
    //= docs/specs/switching.md#SWC-23 hash input
    let mut uses_trail = false;
    if let Some(switch) = tables.switch(frame.switch) {
        let key = frame::key(headers);
        frame.flow = tables.digest(switch.hash, &key);
        if shim.trail != 0 {
            if !tables.take_trail(shim.trail) {
                chassis.no_route.add(1);
                return (Verdict::Drop(Cause::NoRoute), shim);
            }
            uses_trail = true;
        } else if switch.uses_trail != 0
            && let Some(trail) = tables.trail()
        {
            let fields =
                if how.foreign { PacketFields::default() } else { switch_view::packet_fields(packet, headers.v6) };
            trail.begin(frame.switch, matches!(headers.dscp, DSCP_CONTROL | DSCP_PAUSE), &key, &fields);
            uses_trail = true;
        }
    }
    let outcome = if host == NO_HOST { Err(Cause::NoRoute) } else { forward(tables, host, &mut frame, uses_trail) };
    match outcome {
        Ok(port) => {
            if !how.routed {
                frame.ttl = headers.ttl;
            }
            let Some(trimmed_len) = frame.write(packet, headers.v6, how.foreign) else {
                chassis.malformed.add(1);
                return (Verdict::Drop(Cause::Malformed), shim);
            };
            if shim.virtual_time_ps != 0 && frame.switch < HOST {
                let trail = if uses_trail { tables.store_trail() } else { Some(0) };
                let Some(trail) = trail else {
                    chassis.no_route.add(1);
                    return (Verdict::Drop(Cause::NoRoute), shim);
                };
                return (Verdict::Return { trimmed_len }, Shim { trail, ..frame.shim() });
            }
            chassis.forwarded.add(1);
            (Verdict::Redirect { port, trimmed_len }, frame.shim())
        }
        Err(cause) => {
            match cause {
                Cause::NoRoute => chassis.no_route.add(1),
                Cause::HopLimit => chassis.hop_limit.add(1),
                Cause::Ttl => return (Verdict::Expired { port: frame.port }, frame.shim()),
                _ => {}
            }
            (Verdict::Drop(cause), shim)
        }
    }
}

/// Forwards until a port leaves the chassis, or by one switch where frames go hop by hop.
//= docs/specs/switch.md#SW-2 a chassis of switches
//= docs/specs/switch.md#SW-32 hop by hop
#[inline(always)]
fn forward<T: Stages>(tables: &T, host: u32, frame: &mut Frame, uses_trail: bool) -> Result<u32, Cause> {
    if frame.port != NO_PORT {
        tables.enter(frame)?;
    }
    let hop_by_hop = frame.emulated && tables.globals().is_some_and(|globals| globals.hop_by_hop != 0);
    for _ in 0..MAX_HOPS {
        if uses_trail {
            find(tables, frame, host)?;
        }
        tables.cross(frame, host)?;
        // `OUTSIDE` is above `HOST`. The last switch only finds the port, which the host runs.
        if frame.switch >= HOST || (hop_by_hop && !tables.is_last(frame.switch, frame.time_ps, host)) {
            return Ok(frame.port);
        }
    }
    Err(Cause::HopLimit)
}

/// Sets a frame's egress port, if the scheme of its present switch uses the trail.
#[inline(always)]
pub(crate) fn find<T: Stages>(tables: &T, frame: &mut Frame, host: u32) -> Result<(), Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    if Scheme::from_number(switch.scheme).uses_trail() {
        frame.port = tables.route_by_trail(frame, host)?;
    }
    Ok(())
}
