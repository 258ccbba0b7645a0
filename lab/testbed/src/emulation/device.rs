//! A device that adds virtual time to another one, for a host of an emulated fabric.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::HostLink;
use spray_nic::Time;
use spray_nic::device::{Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received};
use spray_pipeline::hash::mix;
use spray_pipeline::last_port::Delivery;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::switch_view::{Parsed, parse};
use spray_wire::{MAX_DATA_DSCP, Ports};

use super::held_frames::{HeldFrame, HeldFrames};
use super::lateness::Lateness;
use super::transmit_order::TransmitTurn;
use crate::host_port::{LastPort, TimedHostLink};
use crate::tap::HostTap;

/// A host's place in its fabric.
#[derive(Debug)]
pub(crate) struct Emulation {
    /// Rate of the host's own link in bits per second.
    pub link_bps: u64,
    /// Propagation delay of that link.
    pub link_latency_ps: u64,
    /// The link's state, if it changes.
    pub link: Option<Arc<TimedHostLink>>,
    /// The port that leads to the host; if set, received frames have the time at that port.
    pub port: Option<Box<dyn LastPort>>,
    /// Maximum lead of a received frame's virtual time over the clock. Later ones are dropped,
    /// since a forged time could hold a frame forever.
    pub max_hold_ps: u64,
    pub turn: TransmitTurn,
}

/// Frames per receive call, and calls per poll.
const RECEIVE_BATCH: usize = 64;
const BATCHES_PER_POLL: u32 = 64;
/// Data frames waiting for their turn. Hosts are at most the latency of a link apart, in which a
/// link of 400 Gb/s carries a dozen full frames. Control frames have twice the limit.
const MAX_BEFORE_TURN: usize = 512;
/// Polls without new frames between flushes, which may be system calls.
const POLLS_PER_FLUSH: u32 = 16;

/// A device whose frames have a [`Shim`], hidden from the endpoint. [In real
/// time](Self::in_real_time) it only adds and removes the shim.
//= docs/specs/emulation.md#EMU-8 the shim
#[derive(Debug)]
pub struct EmulatedDevice<D> {
    inner: D,
    host: Option<HostState>,
    pub(crate) tap: Option<HostTap>,
    /// Due time of the frame returned last, which may be earlier than the time of its return.
    pub(crate) due_ps: Arc<AtomicU64>,
    /// Number of frames sent and received.
    pub(crate) activity: u64,
}

#[derive(Debug)]
struct HostState {
    emulation: Emulation,
    link: HostLink,
    /// Time of the last event.
    now_ps: u64,
    /// When the endpoint has to be polled next.
    next_ps: u64,
    held: HeldFrames,
    arrivals: Vec<Received>,
    /// Frames waiting for their turn or for room in the device.
    waiting: VecDeque<Waiting>,
    /// Frames of this host between two switches, until their turn.
    between: HeldFrames,
    /// Latest virtual time of frames already sent: earlier frames between switches are late.
    sent_until_ps: u64,
    lateness: Lateness,
    too_early: u64,
    hold_overflow: u64,
    unflushed: bool,
    quiet_polls: u32,
    /// Error of the inner device, not yet returned to the endpoint.
    error: Option<io::Error>,
}

#[derive(Debug)]
struct Waiting {
    at_ps: u64,
    frame: FrameId,
    len: u32,
}

impl<D: Device> EmulatedDevice<D> {
    /// Wraps `inner` in real time: frames have a shim for the switches, and are not delayed.
    pub fn in_real_time(inner: D) -> Self {
        Self::new(inner, None)
    }

    pub(crate) fn new(inner: D, emulation: Option<Emulation>) -> Self {
        let frames = inner.frame_counts().total;
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

    pub(crate) fn set_port(&mut self, port: Box<dyn LastPort>) {
        if let Some(host) = &mut self.host {
            host.emulation.port = Some(port);
        }
    }

    pub(crate) fn lateness(&self) -> Option<&Lateness> {
        self.host.as_ref().map(|host| &host.lateness)
    }

    /// Frames dropped because their virtual time was too far ahead, or for lack of room.
    pub(crate) fn lost(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.too_early + host.hold_overflow)
    }

    /// Time of the last event; `None` in real time.
    pub(crate) fn now_ps(&self) -> Option<u64> {
        self.host.as_ref().map(|host| host.now_ps)
    }

    /// Time of the next event: the first held frame or the endpoint's next poll; `u64::MAX` = none.
    pub(crate) fn next_event_ps(&self) -> u64 {
        let host = self.host.as_ref();
        host.map_or(u64::MAX, |host| host.held.next_due_ps().unwrap_or(u64::MAX).min(host.next_ps))
    }

    /// Sets the next poll: exactly when the link becomes free, if `next` is that step.
    pub(crate) fn poll_next(&mut self, next: Option<Time>) {
        let Some(host) = &mut self.host else { return };
        let free_ps = host.link.free_ps();
        host.next_ps = match next {
            Some(next) if free_ps > host.now_ps && next == Time::ZERO.after(free_ps) => free_ps,
            Some(next) => next.ps(),
            None => u64::MAX,
        };
    }

    /// Time up to which everything is handled and sent, as published to other hosts.
    pub(crate) fn done_ps(&self) -> u64 {
        self.host.as_ref().map_or(u64::MAX, |host| host.emulation.turn.done_ps())
    }

    /// Advances to an event; never goes back.
    pub(crate) fn advance(&mut self, at_ps: u64) {
        if let Some(host) = &mut self.host {
            host.now_ps = host.now_ps.max(at_ps);
        }
    }

    /// Holds every received frame, at the clock's `now_ps`, and sends what may be sent.
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
                // Returns frames to the kernel before its fill ring runs empty.
                host.flush(inner);
            }
            if batch < RECEIVE_BATCH {
                break;
            }
        }
        host.send_waiting(inner);
    }

    /// The host has handled everything up to `now_ps`.
    pub(crate) fn handled(&mut self, now_ps: u64) {
        let (Some(host), inner) = (&mut self.host, &mut self.inner) else { return };
        host.emulation.turn.handled(now_ps);
        host.quiet_polls += 1;
        if host.quiet_polls >= POLLS_PER_FLUSH || inner.frame_counts().free == 0 {
            host.flush(inner);
        }
        host.pass_turn(inner);
    }

    /// Sends the frames of this turn, and passes the turn on. Returns whether there were any.
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

    /// Returns the inner device after releasing all frames held.
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

    /// Virtual time of the first frame waiting for its turn; `u64::MAX` = none.
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

    /// Takes the first frame that is due at the host.
    //= docs/specs/emulation.md#EMU-4 a port that the host emulates
    fn next_arrival<D: Device>(&mut self, inner: &mut D) -> Option<Received> {
        while self.held.next_due_ps()? <= self.now_ps {
            let HeldFrame { frame, len, at_port, .. } = self.held.release()?;
            let Some(port) = self.emulation.port.as_mut().filter(|_| at_port) else {
                return Some(Received { frame, len, misrouted: false });
            };
            let bytes = inner.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
            match port.deliver(bytes) {
                Some(Delivery { due_ps, len }) => self.keep(inner, due_ps.max(self.now_ps), 0, frame, len, false),
                None => inner.release(frame),
            }
        }
        None
    }

    /// Sends the frames of this turn while the device has room. Returns whether any were sent.
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
                    let Some(one) = self.between.release() else { break };
                    inner
                        .transmit(one.frame, one.len)
                        .map_err(|frame| self.between.put_back(HeldFrame { frame, ..one }))
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

    /// Passes the turn on after flushing, so that these frames precede those of others.
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

/// Rounds to the endpoints' time step: frames that tie may differ by picoseconds of queueing.
//= docs/specs/emulation.md#EMU-9 ties
const fn nearest_step_ps(ps: u64) -> u64 {
    Time::from_ps(ps.saturating_add(Time::STEP_PS / 2)).ps()
}

/// Digest of a frame's headers, which orders frames of one time.
fn digest(frame: &[u8]) -> u64 {
    let (words, _) = frame[SHIM_BYTES..].as_chunks();
    words.iter().take(HEADER_WORDS).fold(0, |digest, word| mix(digest ^ u64::from_le_bytes(*word)))
}

/// Eight-byte words up to the ports.
const HEADER_WORDS: usize = 8;

impl<D: Device> Device for EmulatedDevice<D> {
    /// Returns one frame at a time, as each is handled at its own time.
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
        out.push(Received { frame, len: len - SHIM_BYTES as u32, misrouted: false });
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

    /// An emulated host flushes when it passes its turn on.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.host {
            Some(host) => host.error.take().map_or(Ok(()), Err),
            None => self.inner.flush(),
        }
    }

    /// When the host's link is free; never while there is no room for another frame.
    fn ready_at(&self) -> Time {
        let Some(host) = &self.host else { return Time::ZERO };
        let has_room = host.waiting.len() < MAX_BEFORE_TURN && self.inner.frame_counts().free > 0;
        match has_room {
            true if host.link.free_ps() <= host.now_ps => Time::ZERO,
            true => Time::ZERO.after(host.link.free_ps()),
            false => Time::NEVER,
        }
    }

    fn info(&self) -> DeviceInfo {
        let info = self.inner.info();
        DeviceInfo { max_frame: info.max_frame.saturating_sub(SHIM_BYTES), ..info }
    }
}

impl<D: Device> DeviceHealth for EmulatedDevice<D> {
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }

    fn frame_counts(&self) -> FrameCounts {
        self.inner.frame_counts()
    }

    fn audit(&self) -> Result<(), String> {
        self.inner.audit()
    }

    fn is_gone(&self) -> bool {
        self.inner.is_gone()
    }

    fn lost_program(&self) -> bool {
        self.inner.lost_program()
    }
}
