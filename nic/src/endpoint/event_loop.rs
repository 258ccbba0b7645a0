//! The event loop of an endpoint: arrivals, timers, frames to send.
//!
//! Packet path: T1, R2 and R7 of `docs/architecture.md`.

use spray_core::Time;

use spray_wire::Kind;

use super::{Endpoint, RECEIVE_BATCH, machine::Payload, shared::Handled, transmit::prefetch};
use crate::device::{Device, Received};

/// Maximum number of batches in one poll, so that a flood of arrivals does not starve timers.
const BATCHES_PER_POLL: u32 = 64;
/// Data frames of a poll before arriving acknowledgements are handled again.
const FRAMES_PER_POLL: u64 = 64;
/// Acknowledgements between two times of sending.
const ACKS_AT_ONCE: u64 = 4;

impl<D: Device> Endpoint<D> {
    /// Handles arrivals, then timers, then sends: arrivals may cancel timers. Data is also sent after every few
    /// acknowledgements. Returns when to call again.
    //= docs/specs/endpoint.md#END-13 order of events
    pub(super) fn turn(&mut self, now: Time) -> Time {
        self.machine.clock = self.machine.clock.max(now);
        let now = self.machine.clock;
        let before = self.link.sent[Kind::Data];
        let mut has_more = false;
        for _ in 0..BATCHES_PER_POLL {
            has_more = self.handle_batch(now) == RECEIVE_BATCH;
            // An answer to a frame of this poll is not handled at the time of its sending.
            if !has_more || self.link.sent[Kind::Data] > before {
                break;
            }
            // Refills the fill ring before it is empty.
            self.link.flush();
        }
        while self.machine.next_timer() <= now {
            self.machine.on_timer(now);
            self.send_control(now);
        }
        let sent = self.link.sent[Kind::Data] - before;
        self.transmit(now, FRAMES_PER_POLL.saturating_sub(sent));
        if has_more {
            return now;
        }
        let send_at = if self.machine.shared.host.has_turns() { self.link.ready_at().max(now) } else { Time::NEVER };
        send_at.min(self.machine.next_timer())
    }

    /// Handles a batch of arrivals, and sends data after every [`ACKS_AT_ONCE`] acknowledgements. Returns the number of
    /// arrivals.
    fn handle_batch(&mut self, now: Time) -> usize {
        let received = self.receive();
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut acks = 0;
        while !arrivals.is_empty() {
            let batch = arrivals.len().min(prefetch::AHEAD);
            self.prefetch_arrivals(arrivals.get(..batch).unwrap_or_default());
            for arrival in arrivals.drain(..batch) {
                acks += u64::from(self.handle(now, arrival).acknowledged);
                if acks == ACKS_AT_ONCE {
                    self.transmit(now, acks * u64::from(self.machine.config.flow.ack_every));
                    acks = 0;
                }
            }
        }
        self.arrivals = arrivals;
        received
    }

    /// Sends the control frames of the last event.
    pub(super) fn send_control(&mut self, now: Time) {
        let control_queue = &mut self.machine.shared.control_queue;
        while let Some((headers, exchange)) = control_queue.first() {
            self.link.send(now, headers, Payload::Exchange(exchange));
            control_queue.remove_first();
        }
    }

    fn receive(&mut self) -> usize {
        let received = self.link.device.receive(&mut self.arrivals, RECEIVE_BATCH);
        if received.is_err() {
            self.link.on_error();
        }
        self.link.received += self.arrivals.len() as u64;
        self.arrivals.len()
    }

    fn handle(&mut self, now: Time, Received { frame, len, misrouted }: Received) -> Handled {
        if let Some(tap) = &mut self.link.tap {
            tap.on_received(now, self.link.device.frame(&frame, len));
        }
        let bytes = self.link.device.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
        let handled = self.machine.on_bytes(now, bytes, misrouted);
        if let Some(tap) = self.link.tap.as_mut().filter(|_| handled.placed_bytes > 0) {
            tap.on_stored(now, self.link.device.frame(&frame, len), handled.placed_bytes.into());
        }
        self.link.device.release(frame);
        self.send_control(now);
        handled
    }

    /// Sends up to `most` data frames, as far as windows, pacing and the device permit.
    fn transmit(&mut self, now: Time, most: u64) {
        let mut sent = 0;
        while sent < most && self.machine.shared.host.has_turns() && self.link.ready_at() <= now && self.link.can_send()
        {
            if let Some(mut packet) = self.machine.poll_transmit(now) {
                let headers = packet.headers();
                self.link.send(now, &headers, packet.payload());
                sent += 1;
            }
            self.machine.prefetch_turns();
            self.send_control(now);
        }
    }
}
