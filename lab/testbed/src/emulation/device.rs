//! The device of a host in an emulated fabric, around the one that its frames really go through.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::HostLink;
use spray_nic::Time;
use spray_nic::device::{Device, DeviceStats, FrameCensus, FrameId, Received};
use spray_pipeline::hash::mix;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::switch_view::{Parsed, parse};
use spray_wire::{MAX_DATA_DSCP, Ports};

use super::held::{Held, HeldFrames};
use super::lateness::Lateness;
use super::turns::Turn;
use crate::host_port::{LastPort, OwnLink};
use crate::tap::HostTap;

/// What a host is in its fabric.
#[derive(Debug)]
pub(crate) struct Emulation {
    /// Rate of the host's own link in bits per second. Its frames leave one after another.
    pub link_bps: u64,
    /// Propagation delay of that link, added once to every frame that leaves.
    pub link_latency_ps: u64,
    /// Where that link changes with time.
    pub link: Option<OwnLink>,
    /// The port that leads to the host. Frames come with the time at which they are at that port; without, at the host.
    pub port: Option<Box<dyn LastPort>>,
    /// How far ahead of its virtual time a frame may arrive. A frame with a later one is dropped: a forged time could hold it for good.
    pub max_hold_ps: u64,
    /// The host's part in the order in which hosts send.
    pub turn: Turn,
}

/// Arrivals taken from the device at a time, and most batches in one poll.
const RECEIVE_BATCH: usize = 64;
const BATCHES_PER_POLL: u32 = 64;
/// Data frames that wait for their turn. The hosts are at most the latency of a link apart, in which a link of
/// 400 Gb/s carries a dozen full frames. Twice as many may wait with control frames.
const MAX_BEFORE_TURN: usize = 512;
/// Polls without new frames between two flushes, each of which may be a system call.
const POLLS_PER_FLUSH: u32 = 16;

/// A device whose frames have a [`Shim`], which the endpoint does not see. [In real time](Self::in_real_time) it passes frames as they come.
//= docs/specs/emulation.md#EMU-8 the shim
#[derive(Debug)]
pub struct EmulatedDevice<D> {
    inner: D,
    host: Option<HostState>,
    /// Sees the frames of the host.
    tap: Option<HostTap>,
    /// When the frame that was handed over last should have been.
    due_ps: Arc<AtomicU64>,
    /// Changes whenever a frame comes or goes.
    activity: u64,
}

/// The state of an emulated host.
#[derive(Debug)]
struct HostState {
    emulation: Emulation,
    link: HostLink,
    /// The time of the last event.
    now_ps: u64,
    /// When the endpoint wants to be polled next.
    next_ps: u64,
    held: HeldFrames,
    arrivals: Vec<Received>,
    /// Frames that wait for their turn or for room.
    waiting: VecDeque<Waiting>,
    /// Frames between two switches, until their turn.
    between: HeldFrames,
    /// The latest virtual time up to which hosts could send: a frame between switches that comes with an earlier one is late.
    sent_until_ps: u64,
    lateness: Lateness,
    too_early: u64,
    hold_overflow: u64,
    unflushed: bool,
    quiet_polls: u32,
    /// What the inner device has failed at, until the endpoint asks.
    error: Option<io::Error>,
}

#[derive(Debug)]
struct Waiting {
    at_ps: u64,
    frame: FrameId,
    len: u32,
}

impl<D: Device> EmulatedDevice<D> {
    /// `inner` in real time: frames have the shim by which switches forward them, and nothing else changes.
    pub fn in_real_time(inner: D) -> Self {
        Self::new(inner, None)
    }

    pub(crate) fn new(inner: D, emulation: Option<Emulation>) -> Self {
        let frames = inner.census().total;
        let host = emulation.map(|emulation| HostState {
            link: HostLink::new(emulation.link_bps, emulation.link_latency_ps),
            emulation,
            now_ps: 0,
            next_ps: 0,
            held: HeldFrames::new(frames),
            arrivals: Vec::with_capacity(RECEIVE_BATCH),
            waiting: VecDeque::with_capacity(2 * MAX_BEFORE_TURN),
            between: HeldFrames::new(frames),
            sent_until_ps: 0,
            lateness: Lateness::default(),
            too_early: 0,
            hold_overflow: 0,
            unflushed: false,
            quiet_polls: 0,
            error: None,
        });
        Self { inner, host, tap: None, due_ps: Arc::default(), activity: 0 }
    }

    pub(crate) fn set_tap(&mut self, tap: HostTap) {
        self.tap = Some(tap);
    }

    /// Has `port` stand for the one that leads to the host.
    pub(crate) fn set_port(&mut self, port: Box<dyn LastPort>) {
        if let Some(host) = &mut self.host {
            host.emulation.port = Some(port);
        }
    }

    /// When the frame that was handed over last should have been: a machine that is behind hands it over later.
    pub(crate) fn due_ps(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.due_ps)
    }

    pub(crate) fn lateness(&self) -> Option<&Lateness> {
        self.host.as_ref().map(|host| &host.lateness)
    }

    /// Frames dropped because their virtual time was too far ahead, or because no more could be held.
    pub(crate) fn lost(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.too_early + host.hold_overflow)
    }

    pub(crate) fn is_emulated(&self) -> bool {
        self.host.is_some()
    }

    /// The time of the last event.
    pub(crate) fn now_ps(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.now_ps)
    }

    /// The time of the next event: of the first frame on hold, or that at which the endpoint wants to be polled; `u64::MAX` if there is none.
    pub(crate) fn next_event_ps(&self) -> u64 {
        let host = self.host.as_ref();
        host.map_or(u64::MAX, |host| host.held.next_due_ps().unwrap_or(u64::MAX).min(host.next_ps))
    }

    /// Sets when the endpoint wants to be polled next: its `next`, a step of its time. If it waits for the link, that is when the link becomes
    /// free, which may be within the step.
    pub(crate) fn poll_next(&mut self, next: Option<Time>) {
        let Some(host) = &mut self.host else { return };
        let free_ps = host.link.free_ps();
        host.next_ps = match next {
            Some(next) if free_ps > host.now_ps && next == step_after(free_ps) => free_ps,
            Some(next) => next.ps(),
            None => u64::MAX,
        };
    }

    /// The time up to which everything is handled and sent, as the others know it.
    pub(crate) fn done_ps(&self) -> u64 {
        self.host.as_ref().map_or(u64::MAX, |host| host.emulation.turn.done_ps())
    }

    /// A number that changes whenever a frame comes or goes.
    pub(crate) fn activity(&self) -> u64 {
        self.activity
    }

    /// Goes on to an event, whose time is never before that of another.
    pub(crate) fn advance(&mut self, at_ps: u64) {
        if let Some(host) = &mut self.host {
            host.now_ps = host.now_ps.max(at_ps);
        }
    }

    /// Puts every frame that has arrived on hold, when the clock says `now_ps`, and sends what may be sent.
    pub(crate) fn collect(&mut self, now_ps: u64) {
        let (Some(host), inner) = (&mut self.host, &mut self.inner) else { return };
        for _ in 0..BATCHES_PER_POLL {
            let received = inner.receive(&mut host.arrivals, RECEIVE_BATCH);
            host.note(received.map(drop));
            let batch = host.arrivals.len();
            self.activity += batch as u64;
            let mut arrivals = std::mem::take(&mut host.arrivals);
            arrivals.drain(..).for_each(|Received { frame, len, .. }| host.hold(inner, now_ps, frame, len));
            host.arrivals = arrivals;
            if batch > 0 {
                // The kernel needs the frames back before its fill ring runs empty.
                host.flush(inner);
            }
            if batch < RECEIVE_BATCH {
                break;
            }
        }
        host.send_waiting(inner);
    }

    /// Notes that the host has handled everything up to `now_ps`.
    pub(crate) fn handled(&mut self, now_ps: u64) {
        let (Some(host), inner) = (&mut self.host, &mut self.inner) else { return };
        host.emulation.turn.handled(now_ps);
        host.quiet_polls += 1;
        if host.quiet_polls >= POLLS_PER_FLUSH || inner.census().free == 0 {
            host.flush(inner);
        }
        host.pass_turn(inner);
    }

    /// Sends the frames whose turn it is, and hands the turn on. Returns whether there were any.
    //= docs/specs/emulation.md#EMU-5 order of sending
    pub(crate) fn take_turn(&mut self) -> bool {
        let (Some(host), inner) = (&mut self.host, &mut self.inner) else { return false };
        if host.first_ps() == u64::MAX {
            return false;
        }
        let sent = host.send_waiting(inner);
        host.pass_turn(inner);
        sent
    }

    /// Gives back the device, with no frame held.
    pub fn into_inner(mut self) -> D {
        if let Some(host) = &mut self.host {
            let held = std::iter::from_fn(|| host.held.release().or_else(|| host.between.release()));
            held.for_each(|held| self.inner.release(held.frame));
            host.waiting.drain(..).for_each(|waiting| self.inner.release(waiting.frame));
        }
        self.inner
    }
}

impl HostState {
    //= docs/specs/emulation.md#EMU-3 deterministic results
    //= docs/specs/emulation.md#EMU-7 implausible times
    fn hold<D: Device>(&mut self, inner: &mut D, now_ps: u64, frame: FrameId, len: u32) {
        let Some(Shim { virtual_time_ps: time_ps, between, .. }) = shim(inner, &frame, len) else {
            return inner.release(frame);
        };
        if between {
            return self.hold_between(inner, now_ps, time_ps, frame, len);
        }
        let (due_ps, at_port) = match (time_ps, &self.emulation.port) {
            (0, _) => (now_ps, false),
            (_, None) => (time_ps, false),
            (_, Some(port)) => (nearest_step_ps(time_ps.saturating_add(port.latency_ps())), true),
        };
        if due_ps.saturating_sub(now_ps) > self.emulation.max_hold_ps {
            self.too_early += 1;
            return inner.release(frame);
        }
        self.lateness.record(self.now_ps.saturating_sub(due_ps));
        //= docs/specs/emulation.md#EMU-9 ties
        let drawn = at_port && due_ps >= self.now_ps;
        let tie = if drawn { self.emulation.turn.ties().draw(due_ps, digest(inner.frame(&frame, len))) } else { 0 };
        self.keep(inner, due_ps.max(self.now_ps), tie, frame, len, at_port);
    }

    /// Holds a frame of this host that is between two switches.
    //= docs/specs/emulation.md#EMU-10 frames between switches
    fn hold_between<D: Device>(&mut self, inner: &mut D, now_ps: u64, time_ps: u64, frame: FrameId, len: u32) {
        if time_ps.saturating_sub(now_ps) > self.emulation.max_hold_ps {
            self.too_early += 1;
            return inner.release(frame);
        }
        let due_ps = nearest_step_ps(time_ps);
        self.lateness.record(self.sent_until_ps.saturating_sub(due_ps));
        let tie = self.emulation.turn.ties().draw(due_ps, digest(inner.frame(&frame, len)));
        if let Err(frame) = self.between.hold(due_ps, tie, frame, len, false) {
            self.hold_overflow += 1;
            inner.release(frame);
        }
    }

    /// The virtual time of the first frame that waits for its turn; `u64::MAX` if there is none.
    fn first_ps(&self) -> u64 {
        let own_ps = self.waiting.front().map_or(u64::MAX, |first| first.at_ps);
        own_ps.min(self.between.next_due_ps().unwrap_or(u64::MAX))
    }

    fn keep<D: Device>(&mut self, inner: &mut D, due_ps: u64, tie: u32, frame: FrameId, len: u32, at_port: bool) {
        if let Err(frame) = self.held.hold(due_ps, tie, frame, len, at_port) {
            self.hold_overflow += 1;
            inner.release(frame);
        }
    }

    /// The first frame that is due at the host by now, if there is one.
    //= docs/specs/emulation.md#EMU-4 a port that the host emulates
    fn next_arrival<D: Device>(&mut self, inner: &mut D) -> Option<Received> {
        while self.held.next_due_ps()? <= self.now_ps {
            let Held { frame, len, at_port, .. } = self.held.release()?;
            let Some(port) = self.emulation.port.as_mut().filter(|_| at_port) else {
                return Some(Received { frame, len, astray: false });
            };
            let bytes = inner.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
            match port.deliver(bytes) {
                Some((due_ps, len)) => self.keep(inner, due_ps.max(self.now_ps), 0, frame, len, false),
                None => inner.release(frame),
            }
        }
        None
    }

    /// Passes the frames that wait to the inner device, as many as it has room for and as far as it is their turn. Returns whether there were any.
    fn send_waiting<D: Device>(&mut self, inner: &mut D) -> bool {
        let until_ps = self.emulation.turn.until_ps();
        let mut sent = false;
        loop {
            let first_ps = self.first_ps();
            if first_ps > until_ps || first_ps == u64::MAX {
                break;
            }
            let is_own = self.waiting.front().is_some_and(|own| own.at_ps == first_ps);
            let own = if is_own { self.waiting.pop_front() } else { None };
            let failed = match own {
                Some(Waiting { at_ps, frame, len }) => {
                    inner.transmit(frame, len).map_err(|frame| self.waiting.push_front(Waiting { at_ps, frame, len }))
                }
                None => {
                    let Some(held) = self.between.release() else { break };
                    inner.transmit(held.frame, held.len).map_err(|frame| self.between.put_back(Held { frame, ..held }))
                }
            };
            if failed.is_err() {
                break;
            }
            (sent, self.unflushed) = (true, true);
        }
        self.sent_until_ps = self.sent_until_ps.max(until_ps);
        sent
    }

    /// Hands the turn on. What was sent is on its way by then, ahead of what others send.
    fn pass_turn<D: Device>(&mut self, inner: &mut D) {
        if self.unflushed {
            self.flush(inner);
        }
        self.emulation.turn.pass(self.first_ps());
    }

    fn flush<D: Device>(&mut self, inner: &mut D) {
        (self.unflushed, self.quiet_polls) = (false, 0);
        let flushed = inner.flush();
        self.note(flushed);
    }

    fn note(&mut self, result: io::Result<()>) {
        self.error = result.err().or(self.error.take());
    }
}

fn shim<D: Device>(inner: &D, frame: &FrameId, len: u32) -> Option<Shim> {
    Shim::read(inner.frame(frame, len).first_chunk()?)
}

/// The nearest step of endpoints' time: the queues of a path may be some picoseconds off, and a tie is to stay one.
//= docs/specs/emulation.md#EMU-9 ties
const fn nearest_step_ps(ps: u64) -> u64 {
    Time::from_ps(ps.saturating_add(Time::STEP_PS / 2)).ps()
}

/// The identity of a frame among those of one time: a digest of its headers.
fn digest(frame: &[u8]) -> u64 {
    let (words, _) = frame[SHIM_BYTES..].as_chunks();
    words.iter().take(HEADER_WORDS).fold(0, |digest, word| mix(digest ^ u64::from_le_bytes(*word)))
}

/// Words of eight bytes that hold a frame's addresses and ports.
const HEADER_WORDS: usize = 8;

impl<D: Device> Device for EmulatedDevice<D> {
    /// One frame at a time: each is handled at its own.
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let Some(host) = &mut self.host else {
            let (before, mut at) = (out.len(), out.len());
            self.inner.receive(out, budget)?;
            while let Some(Received { frame, len, .. }) = out.get_mut(at) {
                if shim(&self.inner, frame, *len).is_some() {
                    *len -= SHIM_BYTES as u32;
                    at += 1;
                } else {
                    self.inner.release(out.swap_remove(at).frame);
                }
            }
            self.activity += (at - before) as u64;
            return Ok(at - before);
        };
        if let Some(error) = host.error.take() {
            return Err(error);
        }
        let Some(Received { frame, len, .. }) = host.next_arrival(&mut self.inner) else { return Ok(0) };
        let due_ps = shim(&self.inner, &frame, len).map(|shim| shim.virtual_time_ps).filter(|due_ps| *due_ps > 0);
        self.due_ps.store(due_ps.unwrap_or(host.now_ps).min(host.now_ps), Ordering::Relaxed);
        if let Some(tap) = &self.tap {
            tap.on_received(host.now_ps, &self.inner.frame(&frame, len)[SHIM_BYTES..]);
        }
        out.push(Received { frame, len: len - SHIM_BYTES as u32, astray: false });
        Ok(1)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        &self.inner.frame(id, len + SHIM_BYTES as u32)[SHIM_BYTES..]
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        &mut self.inner.frame_mut(id)[SHIM_BYTES..]
    }

    fn release(&mut self, id: FrameId) {
        self.inner.release(id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        self.inner.allocate()
    }

    /// Puts the frame on the host's link.
    //= docs/specs/emulation.md#EMU-2 the host's link
    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        self.activity += 1;
        let whole = len + SHIM_BYTES as u32;
        let Some((shim, space)) = self.inner.frame_mut(&id).split_first_chunk_mut::<SHIM_BYTES>() else {
            return Err(id);
        };
        let frame = space.get_mut(..len as usize).unwrap_or_default();
        let Some(host) = &mut self.host else {
            *shim = Shim::default().before(frame);
            return self.inner.transmit(id, whole);
        };
        if host.waiting.len() >= 2 * MAX_BEFORE_TURN {
            return Err(id);
        }
        let link = &host.emulation.link;
        if let Some(link) = link {
            host.link.set_rate(link.rate_bps(host.now_ps));
        }
        let at_ps = host.link.send(host.now_ps, len.into());
        *shim = Shim { virtual_time_ps: at_ps, ..Shim::default() }.before(frame);
        let is_data =
            || matches!(parse(&*frame, Ports::DEFAULT), Parsed::Ours(headers) if headers.dscp <= MAX_DATA_DSCP);
        let carried = link.as_ref().is_none_or(|link| link.carries(host.now_ps, len, is_data()));
        if let Some(tap) = &self.tap {
            tap.on_sent(host.now_ps, frame, carried);
        }
        if carried {
            host.waiting.push_back(Waiting { at_ps, frame: id, len: whole });
        } else {
            self.inner.release(id);
        }
        Ok(())
    }

    /// An emulated host sends in turns, and flushes then.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.host {
            Some(host) => host.error.take().map_or(Ok(()), Err),
            None => self.inner.flush(),
        }
    }

    fn max_frame(&self) -> usize {
        self.inner.max_frame().saturating_sub(SHIM_BYTES)
    }

    /// When the host's link is free; never, as long as there is no room for another frame.
    fn ready_at(&self) -> Time {
        let Some(host) = &self.host else { return Time::ZERO };
        let has_room = host.waiting.len() < MAX_BEFORE_TURN && self.inner.census().free > 0;
        match has_room {
            true if host.link.free_ps() <= host.now_ps => Time::ZERO,
            true => step_after(host.link.free_ps()),
            false => Time::NEVER,
        }
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }

    fn census(&self) -> FrameCensus {
        self.inner.census()
    }

    fn audit(&self) -> Result<(), String> {
        self.inner.audit()
    }

    fn is_gone(&self) -> bool {
        self.inner.is_gone()
    }

    fn is_deaf(&self) -> bool {
        self.inner.is_deaf()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.inner.wake_fd()
    }
}

/// The first step of endpoints' time that is no earlier.
const fn step_after(ps: u64) -> Time {
    Time::ZERO.after(ps)
}
