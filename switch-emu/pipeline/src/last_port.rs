//! The last port of a path, run by the host behind it, which has all its frames in order.

use crate::bins::Transit;
use crate::config::{NEVER, PortConfig};
use crate::counters::PortCounters;
use crate::fifo::PortFifos;
use crate::frame::Frame;
use crate::port;
use crate::queue::Backlog;
use crate::shim::{Shim, Shimmed, with_shim};
use crate::verdict::Cause;
use crate::word::Word;
use core::cell::Cell;
use spray_wire::switch_view::{self, Parsed};
use spray_wire::{Ports, Time};

/// A port to a host, with exact queues. With atomic words, other threads may read it.
#[derive(Debug)]
pub struct LastPort<W = Cell<u64>> {
    number: u32,
    seed: u64,
    config: PortConfig,
    queues: PortFifos<W>,
    counters: PortCounters<W>,
    newest_ps: W,
}

/// A frame that passed the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Arrival at the host.
    pub due_ps: u64,
    /// Its length in bytes, after trimming.
    pub len: u32,
}

impl<W: Word + Default> LastPort<W> {
    /// Creates an idle port of this number, in a fabric with this seed.
    pub fn new(number: u32, seed: u64, config: PortConfig) -> Self {
        let (queues, counters) = (PortFifos::default(), PortCounters::default());
        Self { number, seed, config, queues, counters, newest_ps: W::default() }
    }

    /// Returns the cable's latency, the minimum delay of a frame.
    pub fn latency_ps(&self) -> u64 {
        self.config.latency_ps
    }

    /// Moves a frame through the port and writes its changes; `note` receives each transit. Frames
    /// must arrive in the order of their virtual times.
    ///
    /// A frame that no switch would forward is unchanged and due at once: the host handles it.
    //= docs/specs/virtual-queue.md#VQ-13 the host emulates the last port
    pub fn deliver(&self, packet: &mut (impl Shimmed + ?Sized), note: impl Fn(&Transit)) -> Result<Delivery, Cause> {
        let unknown = Ok(Delivery { due_ps: 0, len: packet.bytes() });
        let Some((head, mut inner)) = packet.split() else { return unknown };
        let Some(shim) = Shim::read(head) else { return unknown };
        let Parsed::Ours(headers) = switch_view::parse(&inner, Ports::DEFAULT) else { return unknown };
        let mut frame = Frame::new(&headers, shim, || self.newest_ps.load());
        self.arrive(&mut frame);
        let random = port::random(&frame, self.number, self.seed);
        self.config.transmit(&mut frame, random, &self.queues, &self.counters, |_, transit| note(transit))?;
        let trimmed_len = frame.write(&mut inner, headers.v6, false).ok_or(Cause::Malformed)?;
        frame.shim().write(head);
        let len = if trimmed_len == 0 { headers.bytes } else { trimmed_len };
        Ok(Delivery { due_ps: frame.time_ps, len: with_shim(len) })
    }

    /// Advances the port to the frame's time.
    //= docs/specs/virtual-queue.md#VQ-14 late at the last port
    fn arrive(&self, frame: &mut Frame) {
        let newest_ps = self.newest_ps.load();
        if frame.time_ps < newest_ps {
            self.counters.stale.add(u64::from(newest_ps - frame.time_ps > Time::STEP_PS));
            frame.time_ps = newest_ps;
            return;
        }
        self.newest_ps.store(frame.time_ps);
        let mut before = &self.config.states[0];
        for state in &self.config.states[1..] {
            if state.at_ps == NEVER || state.at_ps > frame.time_ps {
                break;
            }
            if state.at_ps > newest_ps {
                self.queues.change_rate(state.at_ps, before.ps_per_unit, state.ps_per_unit, &self.counters);
            }
            before = state;
        }
    }

    /// Returns the port's counters.
    pub fn counters(&self) -> PortCounters {
        self.counters.read()
    }

    /// Returns the counters at the end of a run, with the integral of the queue up to then.
    pub fn counters_until(&self, end_ps: u64) -> PortCounters {
        let ps_per_unit = self.config.drain(end_ps).ps_per_unit;
        self.counters().less_queue_area(self.queues.area_after(end_ps, ps_per_unit))
    }

    /// Returns the queued bytes of both classes, and of the control class, when the host is at
    /// `now_ps`, a cable's latency ahead of the port.
    pub fn queue_bytes(&self, now_ps: u64) -> [u64; 2] {
        let at_ps = now_ps.saturating_sub(self.config.latency_ps).max(self.newest_ps.load());
        let drain = self.config.drain(at_ps);
        [&self.queues.total, &self.queues.control].map(|queue| queue.peek(at_ps, &drain))
    }
}

#[cfg(test)]
mod tests;
