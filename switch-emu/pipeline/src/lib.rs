//! The emulated switch: parse, route, queue, mark, trim, fail. no_std, shared by the XDP program and the simulator.
//!
//! [`process`] takes one frame through all switches of a chassis. It reads no clock, allocates nothing, and has no
//! panics, floats or unbounded loops, so that the kernel's verifier accepts it. `docs/specs/switch.md` states its rules
//! (`SW-n`), `docs/specs/virtual-queue.md` those of the queue (`VQ-n`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(target_arch = "bpf"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bins;
pub mod config;
pub mod counters;
pub mod deployment;
#[cfg(not(target_arch = "bpf"))]
pub mod fifo;
pub mod flow_hash;
pub mod frame;
pub mod hash;
pub mod impairment;
#[cfg(not(target_arch = "bpf"))]
pub mod last_port;
pub mod link;
mod packed;
pub mod port;
pub mod queue;
pub mod routes;
pub mod scheme;
pub mod shim;
pub mod trail;
pub mod word;

#[cfg(not(target_arch = "bpf"))]
use core::cell::RefCell;

use bins::{Bin, Crossing};
use config::{Globals, HOST, MAX_HOPS, PortConfig};
use counters::{ChassisCounters, PortCounters};
use deployment::{KERNEL, NOBODY};
use flow_hash::{FlowHash, Key};
use frame::Frame;
use queue::PortQueues;
use routes::{Group, Routes, SwitchConfig};
#[cfg(not(target_arch = "bpf"))]
use scheme::State;
use scheme::{Arrival, Forwarding, Look, NO_PORT, Scheme, Step, Waiting};
use shim::{SHIM_BYTES, Shim, Shimmed};
use spray_wire::switch_view::{self, Address, Headers, Packet, PacketFields, Parsed};
use spray_wire::{DSCP_CONTROL, DSCP_PAUSE, Ports};
use trail::Trail;
use word::Word;

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Sent back to the host that it came from, which sends it again at its virtual time, to its next switch.
    Return {
        /// As [`Redirect::trimmed_len`](Self::Redirect::trimmed_len).
        trimmed_len: u32,
    },
    /// Gone, and counted: its TTL ran out in a deployed fabric, whose switches tell its sender.
    Expired {
        /// Egress port at which it did.
        port: u32,
    },
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Cause {
    /// What it is, for captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NoRoute => "no route",
            Self::HopLimit => "too many switches",
            Self::Ttl => "TTL ran out",
            Self::Down => "link down",
            Self::Silent => "link fails silently",
            Self::Random => "random loss",
            Self::Queue => "queue full",
        }
    }
}

/// Where a chassis finds its tables: maps in the kernel, vectors in memory.
pub trait Tables {
    /// Words shared between CPUs: of queues, pointers and flowlet tables.
    type Word: Word;
    /// Words of counters; may belong to one CPU each.
    type Count: Word;
    /// Words of a frame's trail; belong to one CPU each.
    type Note: Word;
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
    /// A word of the switches' memory, see [`Forwarding::word`].
    fn word(&self, index: u32) -> Option<&Self::Word>;
    /// Of the frame at hand; belongs to one CPU.
    fn trail(&self) -> Option<&Trail<Self::Note>>;
    /// What a switch knows in types of its scheme's own, see [`Forwarding::state`].
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, _switch: u32) -> Option<&RefCell<State>> {
        None
    }
    /// A port's queues.
    fn queues(&self, port: u32) -> Option<&PortQueues<Self::Word>>;
    /// A port's counters.
    fn counters(&self, port: u32) -> Option<&PortCounters<Self::Count>>;
    /// The chassis's counters.
    fn chassis(&self) -> Option<&ChassisCounters<Self::Count>>;
    /// A cell of the ports' bins; `index` is by port, then by cell.
    fn bin(&self, index: u32) -> Option<&Bin<Self::Word>>;

    /// Stores the trail of the frame at hand, which returns to its host; returns its number, not 0. `None`: there is no room.
    fn store_trail(&self) -> Option<u32>;
    /// Takes the trail of this number back, for the frame at hand. Returns whether there was one.
    fn take_trail(&self, number: u32) -> bool;

    /// Counts what a port did with a frame into its bins, which there are; a function of its own in the kernel, with its own stack.
    #[inline(always)]
    fn note(&self, port: u32, crossing: &Crossing)
    where
        Self: Sized,
    {
        bins::note(self, port, crossing);
    }

    /// The digest by the [`FlowHash`] of this number; a function of its own in the kernel, with its own stack.
    #[inline(always)]
    fn digest(&self, hash: u32, key: &Key) -> u64 {
        FlowHash::from_number(hash).digest(key)
    }

    /// Runs [`cross`]; the kernel's host makes it a function of its own, so that the verifier follows it once.
    #[inline(always)]
    fn cross(&self, frame: &mut Frame, host: u32) -> Result<(), Cause>
    where
        Self: Sized,
    {
        cross(self, frame, host)
    }

    /// Runs [`enter`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn enter(&self, frame: &mut Frame) -> Result<(), Cause>
    where
        Self: Sized,
    {
        enter(self, frame)
    }

    /// Runs [`scheme::recall`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn recall(&self, frame: &mut Frame, host: u32) -> Result<u32, Cause>
    where
        Self: Sized,
    {
        scheme::recall(&View::of(self).ok_or(Cause::NoRoute)?, frame, host)
    }

    /// Runs [`is_last`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn is_last(&self, switch: u32, t_ps: u64, host: u32) -> bool
    where
        Self: Sized,
    {
        is_last(self, switch, t_ps, host)
    }

    /// Runs [`scheme::part`]; a function of its own for each part in the kernel, for the same reason.
    #[inline(always)]
    fn part(&self, part: Step, frame: &mut Frame, host: u32, port: u32) -> u32
    where
        Self: Sized,
    {
        View::of(self).map_or(NO_PORT, |view| scheme::part(&view, part, frame, host, port))
    }

    /// Runs [`scheme::least`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, look: &Look) -> u32
    where
        Self: Sized,
    {
        View::of(self).map_or(0, |view| scheme::least(&view, group, t_ps, look, u32::MAX))
    }

    /// Runs [`scheme::score`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, look: &Look, place: u32) -> u64
    where
        Self: Sized,
    {
        View::of(self).map_or(u64::MAX, |view| scheme::score(&view, member, t_ps, look, place))
    }

    /// Runs [`scheme::reunion::look_up`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64
    where
        Self: Sized,
    {
        View::of(self).map_or(0, |view| scheme::reunion::look_up(&view, first, words, head))
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

/// Takes a frame that enters the chassis at switch `ingress` with its [`Shim`] as far as it goes. Without a shim it is not of the emulation.
///
/// `now_ps` is asked for the arrival time of a frame whose virtual time is 0. The frame is written to only when it is
/// redirected.
//= docs/specs/switch.md#SW-1 frames that are ours
#[inline(always)]
pub fn process<T: Tables>(
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
        let (verdict, after) = carry(tables, &mut inner, (&headers, shim, OURS), entry, now_ps);
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

/// Leaves a frame to the kernel that has not been counted.
#[inline(always)]
fn pass_new<C: Word>(chassis: &ChassisCounters<C>) -> Verdict {
    chassis.frames.add(1);
    pass(chassis)
}

/// Leaves a frame to the kernel.
#[inline(always)]
fn pass<C: Word>(chassis: &ChassisCounters<C>) -> Verdict {
    chassis.passed.add(1);
    Verdict::Pass
}

/// A length to cut a frame to, with its shim's; 0: none.
#[inline(always)]
const fn with_shim(len: u32) -> u32 {
    if len == 0 { 0 } else { len + SHIM_BYTES as u32 }
}

/// As [`process`], in a deployed fabric, in real time: all IP packets go as ours do. Hosts emulate nothing, so
/// that a frame from a host goes over the host's own link first. `entry` is asked for the switch that the frame comes to, and for that
/// link as a port; [`NO_PORT`] for a frame from another switch. Of a frame that is not `routed` no TTL is taken. [`Verdict::Pass`]: it is no
/// packet to a host.
///
/// Also returns the time, in ps of the same clock, at which the frame is at the far end of the last cable, or at the switch where its TTL ran
/// out: the sender on holds it until then.
//= docs/specs/switch.md#SW-25 deployed fabrics
#[inline(always)]
pub fn process_any<T: Tables>(
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
    if tables.host(&headers.destination).unwrap_or(NOBODY) >= KERNEL {
        return (pass(chassis), 0);
    }
    let (verdict, after) = carry(tables, packet, (&headers, Shim::default(), How { foreign, routed }), entry, now_ps);
    (verdict, after.virtual_time_ps)
}

/// How a frame goes through a chassis.
#[derive(Clone, Copy)]
struct How {
    /// There are no headers of ours to write to.
    foreign: bool,
    /// Its TTL counts.
    routed: bool,
}

const OURS: How = How { foreign: false, routed: true };

/// Takes a frame whose headers are read through the chassis. Also returns what holds of the frame where it comes out; the virtual time is
/// the real one of a frame without any.
#[inline(always)]
fn carry<T: Tables>(
    tables: &T,
    packet: &mut (impl Packet + ?Sized),
    (headers, shim, how): (&Headers, Shim, How),
    entry: impl FnOnce() -> (u32, u32),
    now_ps: impl FnOnce() -> u64,
) -> (Verdict, Shim) {
    let Some(chassis) = tables.chassis() else { return (Verdict::Pass, shim) };
    // Before the frame: the kernel's small stack has room for either.
    // A number in any case: an option's, where there is none, may be anything, and the verifier wants nothing kept that nobody wrote.
    let host = tables.host(&headers.destination).unwrap_or(NOBODY);
    let mut frame = Frame::new(headers, shim, now_ps);
    if !how.routed {
        frame.ttl = u8::MAX;
    }
    // Where it comes from: the kernel's small stack has no room for more.
    (frame.switch, frame.port) = entry();
    //= docs/specs/switching.md#SWC-23 what is hashed
    let mut remembers = false;
    if let Some(switch) = tables.switch(frame.switch) {
        let key = frame::key(headers);
        frame.flow = tables.digest(switch.hash, &key);
        if shim.trail != 0 {
            if !tables.take_trail(shim.trail) {
                chassis.no_route.add(1);
                return (Verdict::Drop(Cause::NoRoute), shim);
            }
            remembers = true;
        } else if switch.remembers != 0
            && let Some(trail) = tables.trail()
        {
            let fields =
                if how.foreign { PacketFields::default() } else { switch_view::packet_fields(packet, headers.v6) };
            trail.begin(frame.switch, matches!(headers.dscp, DSCP_CONTROL | DSCP_PAUSE), &key, &fields);
            remembers = true;
        }
    }
    let outcome = if host == NOBODY { Err(Cause::NoRoute) } else { forward(tables, host, &mut frame, remembers) };
    match outcome {
        Ok(port) => {
            if !how.routed {
                frame.ttl = headers.ttl;
            }
            let Some(trimmed_len) = write(packet, headers.v6, how.foreign, &frame) else {
                chassis.malformed.add(1);
                return (Verdict::Drop(Cause::Malformed), shim);
            };
            if shim.virtual_time_ps != 0 && frame.switch < HOST {
                let trail = if remembers { tables.store_trail() } else { Some(0) };
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

/// Writes the changes back. Returns the length to cut the frame to, 0 = keep it; `None` when the frame is too short.
#[inline(always)]
fn write(packet: &mut (impl Packet + ?Sized), v6: bool, foreign: bool, frame: &Frame) -> Option<u32> {
    if foreign {
        switch_view::write_foreign(packet, v6, &frame.changes())?;
        return Some(0);
    }
    switch_view::write(packet, v6, &frame.changes())?;
    match frame.trimmed {
        0 => Some(0),
        dscp => switch_view::cut(packet, v6, dscp, frame.len),
    }
}

/// Goes from switch to switch until a port leaves the chassis, or to the next switch where frames go hop by hop.
//= docs/specs/switch.md#SW-2 a chassis of switches
//= docs/specs/switch.md#SW-32 hop by hop
#[inline(always)]
fn forward<T: Tables>(tables: &T, host: u32, frame: &mut Frame, remembers: bool) -> Result<u32, Cause> {
    if frame.port != NO_PORT {
        tables.enter(frame)?;
    }
    let hop_by_hop = frame.emulated && tables.globals().is_some_and(|globals| globals.hop_by_hop != 0);
    for _ in 0..MAX_HOPS {
        hop(tables, host, frame, remembers)?;
        // [`OUTSIDE`](config::OUTSIDE) is above it. At its host's switch the frame only finds the port that the host plays.
        if frame.switch >= HOST || (hop_by_hop && !tables.is_last(frame.switch, frame.time_ps, host)) {
            return Ok(frame.port);
        }
    }
    Err(Cause::HopLimit)
}

/// Crosses one switch.
#[inline(always)]
fn hop<T: Tables>(tables: &T, host: u32, frame: &mut Frame, remembers: bool) -> Result<(), Cause> {
    if remembers {
        find(tables, frame, host)?;
    }
    tables.cross(frame, host)
}

/// Whether `switch` is that of this host.
#[inline(always)]
pub fn is_last<T: Tables>(tables: &T, switch: u32, t_ps: u64, host: u32) -> bool {
    let group = View::of(tables).and_then(|view| view.group(t_ps, switch, host));
    let port = group.and_then(|group| tables.port(tables.member(group.first)?));
    switch < HOST && port.is_some_and(|port| port.next == HOST)
}

/// Sets the port that a frame leaves its present switch by, if the scheme there remembers.
#[inline(always)]
fn find<T: Tables>(tables: &T, frame: &mut Frame, host: u32) -> Result<(), Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    if Scheme::from_number(switch.scheme).remembers() {
        frame.port = tables.recall(frame, host)?;
    }
    Ok(())
}

/// Takes a frame through its present switch: sets the port that it leaves by and the switch that it comes to.
#[inline(always)]
pub fn cross<T: Tables>(tables: &T, frame: &mut Frame, host: u32) -> Result<(), Cause> {
    let globals = tables.globals().ok_or(Cause::NoRoute)?;
    let (number, detour) = next(tables, globals, frame, host).ok_or(Cause::NoRoute)?;
    let port = tables.port(number).ok_or(Cause::NoRoute)?;
    (frame.port, frame.detour) = (number, detour);
    frame.switch = port.next;
    //= docs/specs/virtual-queue.md#VQ-13 the last port is its host's
    if port.next == HOST && frame.emulated {
        return Ok(());
    }
    let queues = tables.queues(number).ok_or(Cause::NoRoute)?;
    let counters = tables.counters(number).ok_or(Cause::NoRoute)?;
    port.cross(frame, port::random(frame, number, globals.seed), queues, counters, |frame, crossing| {
        tables.note(frame.port, crossing);
    })
}

/// Takes a frame over the link of the host that it comes from, its port, to the switch at the end.
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
    port.pass(frame, random, port.limit, queues, counters, |_, _| {})
}

/// The port by which a frame leaves its switch, and its note of a detour.
#[inline(always)]
fn next<T: Tables>(tables: &T, globals: &Globals, frame: &Frame, host: u32) -> Option<(u32, u8)> {
    let switch = tables.switch(frame.switch)?;
    if Scheme::from_number(switch.scheme).remembers() {
        return Some((frame.port, frame.detour));
    }
    let choice = scheme::choose(&View { tables, globals }, &Arrival::of(frame, host))?;
    Some((choice.port, choice.detour))
}

/// The tables of a chassis as schemes see them: a group for every epoch, switch and host.
pub struct View<'a, T> {
    tables: &'a T,
    globals: &'a Globals,
}

impl<'a, T: Tables> View<'a, T> {
    /// Those of `tables`; `None` while it has no constants.
    #[inline(always)]
    pub fn of(tables: &'a T) -> Option<Self> {
        Some(Self { tables, globals: tables.globals()? })
    }
}

impl<T: Tables> Routes for View<'_, T> {
    #[inline(always)]
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.tables.switch(switch)
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

impl<T: Tables> Forwarding for View<'_, T> {
    type Word = T::Word;
    type Note = T::Note;
    #[inline(always)]
    fn word(&self, index: u32) -> Option<&T::Word> {
        self.tables.word(index)
    }
    #[inline(always)]
    fn trail(&self) -> Option<&Trail<T::Note>> {
        self.tables.trail()
    }
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        self.tables.state(switch)
    }
    #[inline(always)]
    fn waiting(&self, port: u32, t_ps: u64) -> Option<Waiting> {
        Some(self.tables.port(port)?.waiting(t_ps, self.tables.queues(port)?))
    }
    #[inline(always)]
    fn part(&self, part: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        self.tables.part(part, frame, host, port)
    }
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, look: &Look) -> u32 {
        self.tables.least(group, t_ps, look)
    }
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, look: &Look, place: u32) -> u64 {
        self.tables.score(member, t_ps, look, place)
    }
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        self.tables.look_up(first, words, head)
    }
}

#[cfg(test)]
mod tests;
