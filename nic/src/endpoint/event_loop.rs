//! The two event loops of an endpoint: real and emulated time.

use spray_core::host::NEVER;

use super::{Endpoint, Lateness, machine::Payload, outlet::Control, touch};
use crate::device::{Device, FrameId};
use crate::held::Held;

/// Arrivals taken from the device at a time.
pub(super) const RECEIVE_BATCH: usize = 64;
/// Most batches in one poll: timers are served even in a flood of arrivals.
const BATCHES_PER_POLL: u32 = 64;
/// Most events in one poll in emulated mode: the other hosts of the thread get their turn.
const EVENTS_PER_POLL: u32 = 256;
/// Most frames sent in one poll in real mode: acknowledgements are handled in between.
const FRAMES_PER_POLL: u32 = 64;

/// What comes next in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
//= docs/specs/endpoint.md#END-13 order of events
enum Next {
    /// A frame on hold is due. It goes before a timer of the same time, since it may change what the timer does.
    Arrival,
    /// A timer or a scheduled message is due.
    Timer,
    /// The host's link is free, and a connection waits for it.
    Transmit,
}

impl<D: Device> Endpoint<D> {
    /// Polls in real mode: everything happens now.
    pub(super) fn poll_real(&mut self, now_ps: u64) -> u64 {
        self.machine.clock_ps = self.machine.clock_ps.max(now_ps);
        let now_ps = self.machine.clock_ps;
        for _ in 0..BATCHES_PER_POLL {
            let received = self.receive();
            let mut arrivals = std::mem::take(&mut self.arrivals);
            while !arrivals.is_empty() {
                let batch = arrivals.len().min(touch::AHEAD);
                self.touch_arrivals(&arrivals[..batch]);
                for arrival in arrivals.drain(..batch) {
                    self.handle(now_ps, arrival.frame, arrival.len);
                }
            }
            self.arrivals = arrivals;
            if received < RECEIVE_BATCH {
                break;
            }
            // The kernel needs the frames back before its fill ring runs empty.
            self.link.flush();
        }
        while self.machine.next_timer_ps() <= now_ps {
            self.machine.on_timer(now_ps);
            self.send_control(now_ps);
        }
        for _ in 0..FRAMES_PER_POLL {
            if !self.machine.host.has_turns() || !self.link.can_send() {
                break;
            }
            self.transmit(now_ps);
        }
        if self.machine.host.has_turns() { now_ps } else { self.machine.next_timer_ps() }
    }

    /// Polls in emulated mode: handles every event up to `now_ps` in order, at its own virtual time.
    ///
    /// The emulation is exact, however late events are handled, as long as every host lags behind the clock by less
    /// than the latency between two hosts. No frame can then have an earlier time than an event that was handled
    /// already.
    //= docs/specs/endpoint.md#END-13 order of events
    //= docs/specs/endpoint.md#END-16 repeatable to the picosecond
    pub(super) fn poll_emulated(&mut self, now_ps: u64) -> u64 {
        self.hold_arrivals(now_ps);
        let mut can_send = true;
        for _ in 0..EVENTS_PER_POLL {
            let (at_ps, next) = self.what_next(can_send);
            if at_ps > now_ps {
                return at_ps;
            }
            self.machine.clock_ps = self.machine.clock_ps.max(at_ps);
            let at_ps = self.machine.clock_ps;
            match next {
                Next::Arrival => self.arrive(at_ps),
                Next::Timer => {
                    self.machine.on_timer(at_ps);
                    self.send_control(at_ps);
                }
                Next::Transmit if self.link.can_send() => self.transmit(at_ps),
                Next::Transmit => can_send = false,
            }
        }
        self.what_next(can_send).0.min(now_ps)
    }

    /// Sends the control frames that the last event left in the outlet.
    pub(super) fn send_control(&mut self, now_ps: u64) {
        let outlet = &mut self.machine.outside.outlet;
        while let Some(control) = outlet.first() {
            let Control { envelope, common, body, exchange, seal } = control;
            self.link.send(now_ps, envelope, *common, body, Payload::Exchange(exchange), seal.as_ref());
            outlet.remove_first();
        }
    }

    fn what_next(&self, can_send: bool) -> (u64, Next) {
        let waits = can_send && self.machine.host.has_turns();
        let transmit_ps = if waits { self.link.free_ps().max(self.machine.clock_ps) } else { NEVER };
        let arrival = (self.held.next_due_ps().unwrap_or(NEVER), Next::Arrival);
        arrival.min((self.machine.next_timer_ps(), Next::Timer)).min((transmit_ps, Next::Transmit))
    }

    fn receive(&mut self) -> usize {
        let received = self.link.device.receive(&mut self.arrivals, RECEIVE_BATCH);
        if received.is_err() {
            self.link.on_error();
        }
        self.link.received += self.arrivals.len() as u64;
        self.arrivals.len()
    }

    /// Puts every frame that has arrived on hold.
    fn hold_arrivals(&mut self, now_ps: u64) {
        for _ in 0..BATCHES_PER_POLL {
            let received = self.receive();
            let mut arrivals = std::mem::take(&mut self.arrivals);
            for arrival in arrivals.drain(..) {
                self.hold(now_ps, arrival.frame, arrival.len);
            }
            self.arrivals = arrivals;
            if received > 0 {
                self.link.flush();
            }
            if received < RECEIVE_BATCH {
                return;
            }
        }
    }

    //= docs/specs/endpoint.md#END-16 repeatable to the picosecond
    //= docs/specs/endpoint.md#END-18 frames far ahead
    fn hold(&mut self, now_ps: u64, frame: FrameId, len: u32) {
        let clock_ps = self.machine.clock_ps;
        let (due_ps, at_port) = match spray_wire::peek_virtual_time(self.link.device.frame(&frame, len)) {
            None => return self.handle(clock_ps, frame, len),
            Some(0) => (now_ps, false),
            Some(time_ps) => match &self.port {
                None => (time_ps, false),
                Some(port) => (time_ps.saturating_add(port.latency_ps()), true),
            },
        };
        if due_ps.saturating_sub(now_ps) > self.machine.config.max_hold_ps {
            self.machine.stats.too_early += 1;
            return self.link.device.release(frame);
        }
        self.machine.stats.overdue += u64::from(due_ps < now_ps);
        record(&mut self.lateness, clock_ps.saturating_sub(due_ps));
        self.keep(due_ps.max(clock_ps), frame, len, at_port);
    }

    fn keep(&mut self, due_ps: u64, frame: FrameId, len: u32, at_port: bool) {
        if let Err(frame) = self.held.hold(due_ps, frame, len, at_port) {
            self.machine.stats.hold_overflow += 1;
            self.link.device.release(frame);
        }
    }

    /// Takes the first frame off hold.
    //= docs/specs/endpoint.md#END-16a a port that the host plays
    fn arrive(&mut self, at_ps: u64) {
        let Some(Held { frame, len, at_port, .. }) = self.held.release() else { return };
        let Some(port) = self.port.as_mut().filter(|_| at_port) else { return self.handle(at_ps, frame, len) };
        let bytes = self.link.device.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
        match port.play(bytes) {
            Some((due_ps, len)) => self.keep(due_ps.max(at_ps), frame, len, false),
            None => self.link.device.release(frame),
        }
    }

    fn handle(&mut self, now_ps: u64, frame: FrameId, len: u32) {
        if let Some(tap) = &mut self.link.tap {
            tap.on_received(now_ps, self.link.device.frame(&frame, len));
        }
        let placed = self.machine.placed_bytes;
        match spray_wire::parse(self.link.device.frame(&frame, len)) {
            Ok(Some(parsed)) => self.machine.on_frame(now_ps, &parsed),
            Ok(None) => self.machine.stats.not_ours += 1,
            Err(spray_wire::Error::Sealed) => {
                let bytes = self.link.device.frame_mut(&frame).get_mut(..len as usize).unwrap_or_default();
                self.machine.on_sealed(now_ps, bytes);
            }
            Err(error) => self.machine.on_malformed(error),
        }
        let placed = self.machine.placed_bytes - placed;
        if let Some(tap) = self.link.tap.as_mut().filter(|_| placed > 0) {
            tap.on_placed(now_ps, self.link.device.frame(&frame, len), placed);
        }
        self.link.device.release(frame);
        self.send_control(now_ps);
    }

    fn transmit(&mut self, now_ps: u64) {
        if let Some(data) = self.machine.poll_data(now_ps) {
            self.link.send(now_ps, &data.envelope, data.common, data.body, data.payload, data.seal.as_ref());
        }
        self.send_control(now_ps);
    }
}

fn record(lateness: &mut Lateness, late_ps: u64) {
    match late_ps {
        0 => lateness.on_time(),
        _ => lateness.late(late_ps),
    }
}
