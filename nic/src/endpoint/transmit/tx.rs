//! The transmit side of a device: staging, back-pressure, flush.
//!
//! Packet path: T5 of `docs/architecture.md`, between the headers and the device.

use std::collections::VecDeque;

use spray_core::Time;
use spray_wire::{self as wire, SEAL_BYTES};

use crate::device::{Device, FrameId};
use crate::endpoint::{KindCounts, machine::Payload, tap::Tap, transmit::control_queue::Headers};

/// Frames per flush: veth's ring drops frames beyond 256, so that the kernel needs time to empty
/// it.
const FRAMES_PER_FLUSH: u32 = 64;
/// Polls without new frames between two flushes, each of which may be a system call.
const POLLS_PER_FLUSH: u32 = 16;
/// Maximum number of frames that wait for room in the tx ring. While any waits, no data is taken
/// from senders.
const MAX_WAITING: usize = 64;

#[derive(Debug)]
pub(crate) struct DeviceTx<D> {
    pub(crate) device: D,
    pub(crate) sent: KindCounts,
    /// Frames that the device received.
    pub(crate) received: u64,
    pub(crate) control_dropped: u64,
    pub(crate) stalls: u64,
    pub(crate) errors: u64,
    /// The last flush failed.
    pub(crate) failing: bool,
    /// The interface was removed, or its program detached.
    pub(crate) gone: bool,
    /// A free frame, reserved before a sender's packet is taken.
    spare: Option<FrameId>,
    /// Frames that found the tx ring full, with their lengths.
    waiting: VecDeque<(FrameId, u32)>,
    pub(crate) tap: Option<Box<dyn Tap>>,
    unflushed: u32,
    quiet_polls: u32,
    /// When the first of the unflushed frames was queued.
    unflushed_since: Time,
    coalesce_ps: u64,
}

impl<D: Device> DeviceTx<D> {
    pub(crate) fn new(device: D, coalesce_ps: u64) -> Self {
        Self {
            device,
            sent: KindCounts::default(),
            received: 0,
            control_dropped: 0,
            stalls: 0,
            errors: 0,
            failing: false,
            gone: false,
            spare: None,
            waiting: VecDeque::with_capacity(MAX_WAITING),
            tap: None,
            unflushed: 0,
            quiet_polls: 0,
            unflushed_since: Time::ZERO,
            coalesce_ps,
        }
    }

    /// Returns when the device takes data; only devices of feature `lab` shape.
    #[inline]
    pub(crate) fn ready_at(&self) -> Time {
        #[cfg(any(test, feature = "lab"))]
        return self.device.ready_at();
        #[cfg(not(any(test, feature = "lab")))]
        Time::ZERO
    }

    /// Returns whether a data packet can be sent now, and reserves a frame for it.
    pub(crate) fn can_send(&mut self) -> bool {
        if self.waiting.is_empty() && self.reserve() {
            return true;
        }
        self.flush();
        self.send_waiting();
        let can_send = self.waiting.is_empty() && self.reserve();
        self.stalls += u64::from(!can_send);
        can_send
    }

    /// Sends a frame, if the device has room for it.
    pub(crate) fn send(&mut self, now: Time, headers: &Headers, payload: Payload<'_>) {
        if self.waiting.len() >= MAX_WAITING || !self.reserve() {
            self.control_dropped += 1;
            return;
        }
        let Some(frame) = self.spare.take() else { return };
        let emitted = write(self.device.frame_mut(&frame), headers, payload);
        match emitted {
            Ok(bytes) => {
                self.sent.count(&headers.body);
                if let Some(tap) = &mut self.tap {
                    tap.on_sent(now, self.device.frame(&frame, bytes as u32));
                }
                self.queue(frame, bytes as u32);
            }
            // The packet is longer than the device's frames, which the checks of the configuration
            // rule out.
            Err(_) => self.spare = Some(frame),
        }
    }

    /// Flushes the device.
    pub(crate) fn flush(&mut self) {
        self.unflushed = 0;
        self.quiet_polls = 0;
        self.failing = self.device.flush().is_err();
        if self.failing {
            self.on_error();
        }
    }

    /// Counts an error of the device.
    pub(crate) fn on_error(&mut self) {
        self.errors += 1;
        self.check();
    }

    /// Detects a removed interface, also when nothing is sent.
    pub(crate) fn check(&mut self) {
        self.gone |= self.device.is_gone();
    }

    /// Ends a poll: flushes if queued frames have waited for long enough, and periodically without
    /// any, so that completed frames return. Returns when to call again for queued frames.
    //= docs/specs/endpoint.md#END-19 coalescing
    pub(crate) fn settle(&mut self, now: Time) -> Time {
        self.quiet_polls += 1;
        if self.unflushed == 0 {
            self.unflushed_since = now;
            if self.quiet_polls >= POLLS_PER_FLUSH {
                self.flush();
            }
            return Time::NEVER;
        }
        let due = self.unflushed_since.after(self.coalesce_ps);
        if due <= now {
            self.flush();
            return Time::NEVER;
        }
        due
    }

    /// Transmits waiting frames as far as the device has room.
    pub(crate) fn send_waiting(&mut self) {
        while let Some((frame, bytes)) = self.waiting.pop_front() {
            if let Err(frame) = self.device.transmit(frame, bytes) {
                return self.waiting.push_front((frame, bytes));
            }
            self.unflushed += 1;
        }
    }

    /// Returns the device with all frames released.
    pub(crate) fn into_device(mut self) -> D {
        let waiting = self.waiting.drain(..).map(|(frame, _)| frame);
        for frame in waiting.chain(self.spare.take()) {
            self.device.release(frame);
        }
        self.device
    }

    fn queue(&mut self, frame: FrameId, bytes: u32) {
        if !self.waiting.is_empty() {
            self.waiting.push_back((frame, bytes));
            self.send_waiting();
        } else {
            match self.device.transmit(frame, bytes) {
                Ok(()) => self.unflushed += 1,
                Err(frame) => self.waiting.push_back((frame, bytes)),
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
}

/// Writes a frame. Returns its bytes. Not generic over the device, so that the writers are instantiated once.
fn write(space: &mut [u8], headers: &Headers, payload: Payload<'_>) -> Result<usize, wire::Error> {
    let Headers { envelope, common, body, seal } = headers;
    let start = body.header_bytes(envelope.is_v6()) + seal.as_ref().map_or(0, |_| SEAL_BYTES);
    if let Some(place) = space.get_mut(start..start + payload.bytes()) {
        payload.fill(place);
    }
    match seal {
        None => wire::emit_in_place(space, envelope, common, body, payload.bytes()),
        Some(seal) => wire::emit_sealed(space, envelope, common, body, payload.bytes(), seal),
    }
}
