//! The emulated switch: parse, route, queue, mark, trim, fail. no_std, shared by the XDP program and the simulator.
//!
//! [`process`] takes one frame through all switches of a chassis. It reads no clock, allocates nothing, and has no
//! panics, floats or unbounded loops, so that the kernel's verifier accepts it. `docs/specs/switch.md` states its rules
//! (`SW-n`), `docs/specs/virtual-queue.md` those of the queue (`VQ-n`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod config;
pub mod counters;
#[cfg(not(target_arch = "bpf"))]
pub mod fifo;
pub mod frame;
pub mod hash;
pub mod link;
pub mod port;
pub mod queue;
pub mod routes;
pub mod word;

use config::{Globals, MAX_HOPS, OUTSIDE, PortConfig};
use counters::{ChassisCounters, PortCounters};
use frame::Frame;
use queue::PortQueues;
use routes::{Group, Routes, SwitchConfig};
use spray_wire::switch_view::{self, Address, Headers, Packet, Parsed};
use word::Word;

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not ours: left to the kernel.
    Pass,
    /// Gone, and counted.
    Drop(Cause),
    /// Sent on.
    Redirect {
        /// Egress port of the fabric.
        port: u32,
        /// Length that the frame must be cut to, 0 = none: the caller owns the buffer and cuts it.
        trimmed_len: u32,
    },
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// Its lengths do not fit.
    Malformed = 1,
    /// No port leads to its destination.
    NoRoute,
    /// It crossed [`MAX_HOPS`] switches and was still inside.
    HopLimit,
    /// Its TTL ran out.
    Ttl,
    /// The link is administratively down.
    Down,
    /// The link drops silently.
    Silent,
    /// The link lost it at random.
    Random,
    /// The queue had no room.
    Queue,
}

/// Where a chassis finds its tables: maps in the kernel, vectors in memory.
pub trait Tables {
    /// Words shared between CPUs, of queues.
    type Word: Word;
    /// Words of counters; may belong to one CPU each.
    type Count: Word;
    /// Constants of the chassis.
    fn globals(&self) -> Option<&Globals>;
    /// Number of the host with this address.
    fn host(&self, address: &Address) -> Option<u32>;
    /// A switch's constants.
    fn switch(&self, switch: u32) -> Option<&SwitchConfig>;
    /// A group of equal-cost ports, by [`Globals::group_index`].
    fn group(&self, index: u32) -> Option<&Group>;
    /// A port in the list that groups are runs of.
    fn member(&self, index: u32) -> Option<u32>;
    /// A port.
    fn port(&self, port: u32) -> Option<&PortConfig>;
    /// A port's queues.
    fn queues(&self, port: u32) -> Option<&PortQueues<Self::Word>>;
    /// A port's counters.
    fn counters(&self, port: u32) -> Option<&PortCounters<Self::Count>>;
    /// The chassis's counters.
    fn chassis(&self) -> Option<&ChassisCounters<Self::Count>>;

    /// Runs [`cross`]; the kernel's host makes it a function of its own, so that the verifier follows it once.
    #[inline(always)]
    fn cross(&self, frame: &mut Frame, host: u32) -> Result<(), Cause>
    where
        Self: Sized,
    {
        cross(self, frame, host)
    }
}

impl Cause {
    /// The cause with this number, if there is one: for hosts that can return only numbers from functions.
    #[inline(always)]
    pub fn from_code(code: u32) -> Option<Self> {
        const ALL: [Cause; 8] = [
            Cause::Malformed,
            Cause::NoRoute,
            Cause::HopLimit,
            Cause::Ttl,
            Cause::Down,
            Cause::Silent,
            Cause::Random,
            Cause::Queue,
        ];
        let mut found = None;
        for cause in ALL {
            if cause as u32 == code {
                found = Some(cause);
            }
        }
        found
    }
}

/// Takes a frame that enters the chassis at switch `ingress` as far as it goes.
///
/// `now_ps` is asked for the arrival time of a frame whose virtual time is 0. The frame is written to only when it is
/// redirected.
//= docs/specs/switch.md#SW-1 frames that are ours
#[inline(always)]
pub fn process<T: Tables>(
    tables: &T,
    packet: &mut (impl Packet + ?Sized),
    ingress: u32,
    now_ps: impl FnOnce() -> u64,
) -> Verdict {
    let Some(chassis) = tables.chassis() else { return Verdict::Pass };
    chassis.frames.add(1);
    let headers = match switch_view::parse(packet) {
        Parsed::Ours(headers) => headers,
        Parsed::Foreign => {
            chassis.passed.add(1);
            return Verdict::Pass;
        }
        Parsed::Malformed => {
            chassis.malformed.add(1);
            return Verdict::Drop(Cause::Malformed);
        }
    };
    let mut frame = Frame::new(&headers, now_ps);
    match forward(tables, &headers.destination, &mut frame, ingress) {
        Ok(port) => {
            let Some(trimmed_len) = write(packet, &headers, &frame) else {
                chassis.malformed.add(1);
                return Verdict::Drop(Cause::Malformed);
            };
            chassis.forwarded.add(1);
            Verdict::Redirect { port, trimmed_len }
        }
        Err(cause) => {
            match cause {
                Cause::NoRoute => chassis.no_route.add(1),
                Cause::HopLimit => chassis.hop_limit.add(1),
                _ => {}
            }
            Verdict::Drop(cause)
        }
    }
}

/// Writes the changes back. Returns the length to cut the frame to, 0 = keep it; `None` when the frame is too short.
#[inline(always)]
fn write(packet: &mut (impl Packet + ?Sized), headers: &Headers, frame: &Frame) -> Option<u32> {
    switch_view::write(packet, headers, &frame.changes())?;
    if frame.trimmed { switch_view::cut(packet, headers.v6) } else { Some(0) }
}

/// Goes from switch to switch until a port leaves the chassis.
//= docs/specs/switch.md#SW-2 a chassis of switches
#[inline(always)]
fn forward<T: Tables>(tables: &T, destination: &Address, frame: &mut Frame, ingress: u32) -> Result<u32, Cause> {
    let host = tables.host(destination).ok_or(Cause::NoRoute)?;
    frame.switch = ingress;
    for _ in 0..MAX_HOPS {
        tables.cross(frame, host)?;
        if frame.switch == OUTSIDE {
            return Ok(frame.port);
        }
    }
    Err(Cause::HopLimit)
}

/// Takes a frame through its present switch: sets the port that it leaves by and the switch that it comes to.
#[inline(always)]
pub fn cross<T: Tables>(tables: &T, frame: &mut Frame, host: u32) -> Result<(), Cause> {
    let globals = tables.globals().ok_or(Cause::NoRoute)?;
    let routes = ByHost { tables, globals };
    let choice = routes::choose(&routes, frame.time_ps, frame.switch, host, frame.flow).ok_or(Cause::NoRoute)?;
    let number = choice.port;
    let port = tables.port(number).ok_or(Cause::NoRoute)?;
    let queues = tables.queues(number).ok_or(Cause::NoRoute)?;
    let counters = tables.counters(number).ok_or(Cause::NoRoute)?;
    port.cross(frame, port::random(frame, number, globals.seed), queues, counters)?;
    frame.port = number;
    frame.switch = port.next;
    Ok(())
}

/// The routes of a chassis: a group for every epoch, switch and host.
struct ByHost<'a, T> {
    tables: &'a T,
    globals: &'a Globals,
}

impl<T: Tables> Routes for ByHost<'_, T> {
    #[inline(always)]
    fn salt(&self, switch: u32) -> Option<u64> {
        self.tables.switch(switch).map(|switch| switch.salt)
    }
    #[inline(always)]
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        self.tables.group(self.globals.group_index(self.globals.epoch(t_ps), switch, host)).copied()
    }
    #[inline(always)]
    fn member(&self, index: u32) -> Option<u32> {
        self.tables.member(index)
    }
}

#[cfg(test)]
mod tests;
