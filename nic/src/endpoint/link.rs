//! The device with the host's own link in front of it.

use std::collections::VecDeque;

use spray_core::{host::NEVER, link::HostLink};
use spray_wire::{self as wire, Body, Common, Envelope, SEAL_BYTES};

use super::{FirstLink, KindCounts, Mode, Tap, machine::Payload, seal::Ticket};
use crate::device::{Device, FrameId};
use crate::turns::Turn;

/// Frames per flush. veth's ring silently drops beyond 256, so a burst must leave the kernel time to empty it.
const FRAMES_PER_FLUSH: u32 = 64;
/// Polls without new frames between two flushes, each of which may be a system call.
const POLLS_PER_FLUSH: u32 = 16;
/// Most frames that wait for room in the tx ring. While any waits, senders are not asked for data.
const MAX_WAITING: usize = 64;
/// Data frames of an emulated host that wait for its turn. The hosts are at most the latency of a link apart, in which a link of
/// 400 Gb/s carries a dozen full frames. Twice as many may wait with control frames.
const MAX_BEFORE_TURN: usize = 512;

/// Sends frames one after another and stamps each as it leaves.
#[derive(Debug)]
pub(crate) struct Link<D> {
    pub(crate) device: D,
    /// The emulated link; `None` in real mode.
    emulated: Option<HostLink>,
    /// In emulated mode, where the link changes with time.
    changing: Option<Box<dyn FirstLink>>,
    pub(crate) sent: KindCounts,
    /// Frames that the device handed over.
    pub(crate) received: u64,
    pub(crate) control_dropped: u64,
    pub(crate) stalls: u64,
    pub(crate) errors: u64,
    /// The last flush failed.
    pub(crate) failing: bool,
    /// The interface was removed.
    pub(crate) gone: bool,
    /// A free frame, taken before a sender is asked for a packet, so that the packet always has one.
    spare: Option<FrameId>,
    /// Frames ready to be sent that found the tx ring full, or whose turn has not come.
    waiting: VecDeque<Waiting>,
    /// In emulated mode, where hosts send in turns.
    turn: Option<Turn>,
    /// Who sees all frames that come and go.
    pub(crate) tap: Option<Box<dyn Tap>>,
    unflushed: u32,
    quiet_polls: u32,
    /// When the first of the unflushed frames was queued.
    unflushed_since_ps: u64,
    coalesce_ps: u64,
}

/// A frame on its way to the device.
#[derive(Debug)]
struct Waiting {
    /// Its virtual time; 0 in real mode.
    at_ps: u64,
    frame: FrameId,
    bytes: u32,
}

impl<D: Device> Link<D> {
    pub(crate) fn new(device: D, mode: Mode, coalesce_ps: u64) -> Self {
        Self {
            device,
            emulated: match mode {
                Mode::Real => None,
                Mode::Emulated { link_bps, link_latency_ps } => Some(HostLink::new(link_bps, link_latency_ps)),
            },
            changing: None,
            sent: KindCounts::default(),
            received: 0,
            control_dropped: 0,
            stalls: 0,
            errors: 0,
            failing: false,
            gone: false,
            spare: None,
            waiting: VecDeque::with_capacity(MAX_WAITING),
            turn: None,
            tap: None,
            unflushed: 0,
            quiet_polls: 0,
            unflushed_since_ps: 0,
            coalesce_ps,
        }
    }

    /// Has the host send in turns with others from now on.
    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.waiting.reserve(2 * MAX_BEFORE_TURN);
        self.turn = Some(turn);
    }

    /// Has the link change with time.
    pub(crate) fn set_changing(&mut self, link: Box<dyn FirstLink>) {
        self.changing = Some(link);
    }

    /// Whether a data packet can be sent now: takes a free frame for it and makes sure of room.
    pub(crate) fn can_send(&mut self) -> bool {
        if self.has_room() && self.reserve() {
            return true;
        }
        self.flush();
        self.send_waiting();
        let can_send = self.has_room() && self.reserve();
        self.stalls += u64::from(!can_send);
        can_send
    }

    /// Sends a frame, if the device has room for it.
    pub(crate) fn send(
        &mut self,
        now_ps: u64,
        e: &Envelope,
        common: Common,
        body: &Body,
        payload: Payload<'_>,
        seal: Option<&Ticket>,
    ) {
        let room = if self.turn.is_some() { 2 * MAX_BEFORE_TURN } else { MAX_WAITING };
        if self.waiting.len() >= room || !self.reserve() {
            self.control_dropped += 1;
            return;
        }
        let Some(frame) = self.spare.take() else { return };
        let (start, seal_bytes) = match seal {
            None => (body.header_bytes(e.is_v6()), 0),
            Some(_) => (body.header_bytes(e.is_v6()) + SEAL_BYTES, wire::seal_bytes(body.kind())),
        };
        let bytes = body.header_bytes(e.is_v6()) + payload.bytes() + seal_bytes;
        let at_ps = self.leave(now_ps, bytes as u64);
        let common = Common { virtual_time_ps: at_ps, ..common };
        let space = self.device.frame_mut(&frame);
        if let Some(place) = space.get_mut(start..start + payload.bytes()) {
            payload.fill(place);
        }
        let emitted = match seal {
            None => wire::emit_in_place(space, e, &common, body, payload.bytes()),
            Some(seal) => wire::emit_sealed(space, e, &common, body, payload.bytes(), seal),
        };
        match emitted {
            Ok(bytes) => {
                self.sent.count(body);
                let data = matches!(body, Body::Data(_));
                let carried = self.changing.as_mut().is_none_or(|link| link.carries(now_ps, bytes as u32, data));
                if let Some(tap) = &mut self.tap {
                    tap.on_sent(now_ps, self.device.frame(&frame, bytes as u32), carried);
                }
                if carried {
                    self.queue(Waiting { at_ps, frame, bytes: bytes as u32 });
                } else {
                    self.spare = Some(frame);
                }
            }
            // The packet is longer than the device's frames. The checks of endpoint and connection settings rule that
            // out.
            Err(_) => self.spare = Some(frame),
        }
    }

    /// Has the device send all queued frames.
    pub(crate) fn flush(&mut self) {
        self.unflushed = 0;
        self.quiet_polls = 0;
        self.failing = self.device.flush().is_err();
        if self.failing {
            self.on_error();
        }
    }

    /// The time begins again at 0: nothing waits since an earlier one.
    pub(crate) fn restart_clock(&mut self) {
        self.flush();
        self.unflushed_since_ps = 0;
    }

    /// Counts an error of the device.
    pub(crate) fn on_error(&mut self) {
        self.errors += 1;
        self.gone |= self.device.is_gone();
    }

    /// Ends a poll: flushes if queued frames have waited long enough, and now and then without any, so that completed
    /// frames come back.
    ///
    /// Returns when to call again for queued frames that wait.
    //= docs/specs/endpoint.md#END-19 coalescing
    pub(crate) fn settle(&mut self, now_ps: u64) -> u64 {
        self.quiet_polls += 1;
        if self.unflushed == 0 {
            self.unflushed_since_ps = now_ps;
            if self.quiet_polls >= POLLS_PER_FLUSH {
                self.flush();
            }
            return NEVER;
        }
        let due_ps = self.unflushed_since_ps.saturating_add(self.coalesce_ps);
        if due_ps <= now_ps {
            self.flush();
            return NEVER;
        }
        due_ps
    }

    /// Gives the device the frames that wait, as many as it has room for and as far as it is their turn.
    pub(crate) fn send_waiting(&mut self) {
        let until_ps = self.turn.as_ref().map_or(NEVER, Turn::until_ps);
        while self.waiting.front().is_some_and(|first| first.at_ps <= until_ps) {
            let Some(Waiting { at_ps, frame, bytes }) = self.waiting.pop_front() else { return };
            if let Err(frame) = self.device.transmit(frame, bytes) {
                self.waiting.push_front(Waiting { at_ps, frame, bytes });
                return;
            }
            self.unflushed += 1;
        }
    }

    /// Sends the frames whose turn it is, and hands the turn on. Returns whether there were any.
    //= docs/specs/endpoint.md#END-16b turns
    pub(crate) fn take_turn(&mut self) -> bool {
        let before = self.waiting.len();
        if before == 0 || self.turn.is_none() {
            return false;
        }
        self.send_waiting();
        self.pass_turn();
        self.waiting.len() < before
    }

    /// Notes that the host has handled everything up to `now_ps`.
    pub(crate) fn handled(&mut self, now_ps: u64) {
        if let Some(turn) = &mut self.turn {
            turn.handled(now_ps);
            self.pass_turn();
        }
    }

    /// The time up to which everything is handled and sent; [`NEVER`] without turns.
    pub(crate) fn done_ps(&self) -> u64 {
        self.turn.as_ref().map_or(NEVER, Turn::done_ps)
    }

    /// Hands the turn on. What was sent is on its way by then, ahead of what others send.
    fn pass_turn(&mut self) {
        if self.turn.is_some() && self.unflushed > 0 {
            self.flush();
        }
        if let Some(turn) = &self.turn {
            turn.pass(self.waiting.front().map_or(NEVER, |first| first.at_ps));
        }
    }

    fn has_room(&self) -> bool {
        if self.turn.is_some() { self.waiting.len() < MAX_BEFORE_TURN } else { self.waiting.is_empty() }
    }

    /// Gives every frame held here back to the device, so that it can be audited or used by another.
    pub(crate) fn into_device(mut self) -> D {
        let waiting = self.waiting.drain(..).map(|waiting| waiting.frame);
        for frame in waiting.chain(self.spare.take()) {
            self.device.release(frame);
        }
        self.device
    }

    fn queue(&mut self, frame: Waiting) {
        if self.turn.is_some() || !self.waiting.is_empty() {
            self.waiting.push_back(frame);
            if self.turn.is_some() {
                return;
            }
            self.send_waiting();
        } else {
            match self.device.transmit(frame.frame, frame.bytes) {
                Ok(()) => self.unflushed += 1,
                Err(id) => self.waiting.push_back(Waiting { frame: id, ..frame }),
            }
        }
        if self.unflushed >= FRAMES_PER_FLUSH {
            self.flush();
        }
    }

    fn reserve(&mut self) -> bool {
        if self.spare.is_none() {
            self.spare = self.device.allocate();
        }
        self.spare.is_some()
    }

    /// When the emulated link has sent everything that was put on it.
    pub(crate) fn free_ps(&self) -> u64 {
        self.emulated.map_or(0, |link| link.free_ps())
    }

    /// Puts a frame on the host's link behind the one in progress. Returns when its last bit is at the other end; 0
    /// in real mode.
    //= docs/specs/endpoint.md#END-14 the host's link
    fn leave(&mut self, now_ps: u64, bytes: u64) -> u64 {
        let Some(link) = &mut self.emulated else { return 0 };
        if let Some(changing) = &self.changing {
            link.set_rate(changing.rate_bps(now_ps));
        }
        link.send(now_ps, bytes)
    }
}
