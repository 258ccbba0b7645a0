//! The event loop of an endpoint: arrivals, timers, frames to send.

use spray_core::Time;

use spray_wire::Kind;

use super::{Endpoint, RECEIVE_BATCH, machine::Payload, transmit::control_queue::Control, transmit::prefetch};
use crate::device::{Device, Received};

/// Most batches in one poll: timers are served even in a flood of arrivals.
const BATCHES_PER_POLL: u32 = 64;
/// Data frames that one poll may send beyond what is acknowledged: acknowledgements are handled in between.
const FRAMES_PER_POLL: u64 = 64;
/// Acknowledgements between two times of sending.
const ACKS_AT_ONCE: u64 = 4;

impl<D: Device> Endpoint<D> {
    /// Takes what has arrived, then does what is due, then sends: what arrives may change what timers do. After every few acknowledgements
    /// it sends as many packets as they tell of. Everything happens now.
    ///
    /// Returns when to call again.
    //= docs/specs/endpoint.md#END-13 order of events
    pub(super) fn turn(&mut self, now: Time) -> Time {
        self.machine.clock = self.machine.clock.max(now);
        let now = self.machine.clock;
        let before = self.link.sent[Kind::Data];
        let mut has_more = false;
        for _ in 0..BATCHES_PER_POLL {
            has_more = self.take_batch(now) == RECEIVE_BATCH;
            // What answers a frame of this poll does not arrive at the same time.
            if !has_more || self.link.sent[Kind::Data] > before {
                break;
            }
            // The kernel needs the frames back before its fill ring runs empty.
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
        let send_at = if self.machine.host.has_turns() { self.link.ready_at().max(now) } else { Time::NEVER };
        send_at.min(self.machine.next_timer())
    }

    /// Takes a batch of arrivals, and sends what acknowledgements make room for. Returns how many arrived.
    fn take_batch(&mut self, now: Time) -> usize {
        let received = self.receive();
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut acks = self.machine.stats.received[Kind::Ack];
        while !arrivals.is_empty() {
            let batch = arrivals.len().min(prefetch::AHEAD);
            self.prefetch_arrivals(arrivals.get(..batch).unwrap_or_default());
            for arrival in arrivals.drain(..batch) {
                self.handle(now, arrival);
                let new_acks = self.machine.stats.received[Kind::Ack] - acks;
                if new_acks == ACKS_AT_ONCE {
                    self.transmit(now, new_acks * u64::from(self.machine.config.flow.ack_every));
                    acks += new_acks;
                }
            }
        }
        self.arrivals = arrivals;
        received
    }

    /// Sends the control frames that the last event left in the control_queue.
    pub(super) fn send_control(&mut self, now: Time) {
        let control_queue = &mut self.machine.owner.control_queue;
        while let Some(control) = control_queue.first() {
            let Control { envelope, common, body, exchange, seal } = control;
            self.link.send(now, envelope, *common, body, Payload::Exchange(exchange), seal.as_ref());
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

    fn handle(&mut self, now: Time, Received { frame, len, astray }: Received) {
        if let Some(tap) = &mut self.link.tap {
            tap.on_received(now, self.link.device.frame(&frame, len));
        }
        let placed = self.machine.placed_bytes;
        let bytes = self.link.device.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
        self.machine.astray = astray;
        self.machine.on_bytes(now, bytes);
        let placed = self.machine.placed_bytes - placed;
        if let Some(tap) = self.link.tap.as_mut().filter(|_| placed > 0) {
            tap.on_placed(now, self.link.device.frame(&frame, len), placed);
        }
        self.link.device.release(frame);
        self.send_control(now);
    }

    /// Sends what may go, as far as the device takes it, at most `most` data frames.
    fn transmit(&mut self, now: Time, most: u64) {
        for _ in 0..most {
            if !self.machine.host.has_turns() || self.link.ready_at() > now || !self.link.can_send() {
                break;
            }
            let link = &mut self.link;
            self.machine.poll_data(now, |envelope, common, body, payload, seal| {
                link.send(now, envelope, common, body, payload, seal)
            });
            self.send_control(now);
        }
    }
}
