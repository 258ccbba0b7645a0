//! One egress port: link state, queue, marking, trimming, departure.

use crate::Cause;
use crate::config::{FLAG_SILENT, FLAG_UP, PortConfig};
use crate::counters::PortCounters;
use crate::frame::{self, Frame};
use crate::hash;
use crate::queue::{Backlog, Drain, Queues};
use crate::word::Word;

type Position<Q> = <<Q as Queues>::Class as Backlog>::Position;

/// The link's condition at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    drain: Drain,
    loss: u32,
    flags: u32,
    flap_from_ps: u64,
    flap_period_ps: u64,
    flap_down_ps: u64,
}

impl PortConfig {
    /// How the queue drains around `t_ps`, for sampling.
    pub fn drain(&self, t_ps: u64) -> Drain {
        self.condition(t_ps).drain
    }

    /// The last change before or at `t_ps`.
    ///
    /// Loaded values only, no pointer into the table and no constants: the kernel's verifier follows every exit of the
    /// loop through the rest of the program unless it cannot tell them apart.
    #[inline(always)]
    fn condition(&self, t_ps: u64) -> Condition {
        let healthy = &self.states[0];
        let mut now = Condition {
            drain: Drain {
                shift: self.slot_shift & 63,
                units: healthy.slot_units,
                before: healthy.slot_units,
                since: healthy.at_ps,
                ps_per_unit: healthy.ps_per_unit,
            },
            loss: healthy.loss,
            flags: healthy.flags,
            flap_from_ps: healthy.at_ps,
            flap_period_ps: healthy.flap_period_ps,
            flap_down_ps: healthy.flap_down_ps,
        };
        for state in &self.states[1..] {
            if state.at_ps > t_ps {
                break;
            }
            now.drain.before = now.drain.units;
            now.drain.units = state.slot_units;
            now.drain.since = state.at_ps >> now.drain.shift;
            now.drain.ps_per_unit = state.ps_per_unit;
            now.loss = state.loss;
            now.flags = state.flags;
            now.flap_from_ps = state.at_ps;
            now.flap_period_ps = state.flap_period_ps;
            now.flap_down_ps = state.flap_down_ps;
        }
        now
    }

    /// Takes a frame through the port: on success its time is that of its arrival at the far end.
    #[inline(always)]
    pub fn cross<Q: Queues, C: Word>(
        &self,
        frame: &mut Frame,
        random: u64,
        queues: &Q,
        counters: &PortCounters<C>,
    ) -> Result<(), Cause> {
        if frame.ttl <= 1 {
            counters.drops_ttl.add(1);
            return Err(Cause::Ttl);
        }
        frame.ttl -= 1;
        let link = self.condition(frame.time_ps);
        link.check(frame.time_ps, counters)?;
        let delay_ps = self.enqueue(frame, random as u32, &link.drain, queues, counters)?;
        // A lost frame has used the link all the same: hence after the queue.
        if ((random >> 32) as u32) < link.loss {
            counters.link_drop(&counters.drops_random, frame.time_ps);
            return Err(Cause::Random);
        }
        frame.time_ps = frame.time_ps.wrapping_add(delay_ps).wrapping_add(self.latency_ps);
        counters.frames.add(1);
        counters.bytes.add(u64::from(frame.len));
        Ok(())
    }

    /// Takes a frame of `len` bytes over the link alone, which whoever sends has queued by other rules: a host's own.
    #[inline(always)]
    pub fn carry<C: Word>(&self, t_ps: u64, len: u32, random: u64, counters: &PortCounters<C>) -> Result<(), Cause> {
        let link = self.condition(t_ps);
        link.check(t_ps, counters)?;
        if ((random >> 32) as u32) < link.loss {
            counters.link_drop(&counters.drops_random, t_ps);
            return Err(Cause::Random);
        }
        counters.frames.add(1);
        counters.bytes.add(u64::from(len));
        Ok(())
    }

    /// Finds the frame's place, marks, trims or refuses it; returns the time until it has left.
    #[inline(always)]
    fn enqueue<Q: Queues, C: Word>(
        &self,
        frame: &mut Frame,
        random: u32,
        drain: &Drain,
        queues: &Q,
        counters: &PortCounters<C>,
    ) -> Result<u64, Cause> {
        let control = queues.control().locate(frame.time_ps, drain);
        let total = queues.total().locate(frame.time_ps, drain);
        if queues.total().is_stale(&total) {
            counters.stale.add(1);
        }
        if !frame.control {
            let waiting = queues.total().bytes(&total, drain).saturating_sub(queues.control().bytes(&control, drain));
            if waiting + u64::from(frame.len) > u64::from(self.limit) {
                self.trim(frame, counters)?;
            } else if self.marks(waiting, random) && frame::mark(frame) {
                counters.marks.add(1);
            }
        }
        if !frame.control {
            queues.total().push(&total, frame.len, drain);
            return Ok(queues.total().delay_ps(&total, frame.len, drain));
        }
        self.control(frame, drain, queues, &control, &total, counters)
    }

    /// Queues a frame of the control class, a freshly trimmed one included.
    #[inline(always)]
    fn control<Q: Queues, C: Word>(
        &self,
        frame: &Frame,
        drain: &Drain,
        queues: &Q,
        control: &Position<Q>,
        total: &Position<Q>,
        counters: &PortCounters<C>,
    ) -> Result<u64, Cause> {
        if queues.control().bytes(control, drain) + u64::from(frame.len) > u64::from(self.control_limit) {
            counters.drops_queue.add(1);
            return Err(Cause::Queue);
        }
        queues.control().push(control, frame.len, drain);
        queues.total().push(total, frame.len, drain);
        counters.control_frames.add(1);
        Ok(queues.control().delay_ps(control, frame.len, drain))
    }

    #[inline(always)]
    fn trim<C: Word>(&self, frame: &mut Frame, counters: &PortCounters<C>) -> Result<(), Cause> {
        if self.trim == 0 || !frame.trimmable {
            counters.drops_queue.add(1);
            return Err(Cause::Queue);
        }
        frame::trim(frame);
        counters.trims.add(1);
        Ok(())
    }

    /// RED: linear between the thresholds.
    #[inline(always)]
    fn marks(&self, waiting: u64, random: u32) -> bool {
        if waiting <= u64::from(self.mark_min) {
            return false;
        }
        let over = waiting - u64::from(self.mark_min);
        waiting >= u64::from(self.mark_max) || u64::from(random) < over * u64::from(self.mark_slope)
    }
}

impl Condition {
    #[inline(always)]
    fn check<C: Word>(&self, t_ps: u64, counters: &PortCounters<C>) -> Result<(), Cause> {
        if self.flags & FLAG_UP == 0 {
            counters.link_drop(&counters.drops_down, t_ps);
            return Err(Cause::Down);
        }
        if self.flags & FLAG_SILENT != 0 || self.out(t_ps) {
            counters.link_drop(&counters.drops_silent, t_ps);
            return Err(Cause::Silent);
        }
        Ok(())
    }

    /// Whether a flapping link is in its outage.
    #[inline(always)]
    fn out(&self, t_ps: u64) -> bool {
        self.flap_period_ps != 0 && (t_ps - self.flap_from_ps) % self.flap_period_ps < self.flap_down_ps
    }
}

/// Random bits for a frame at a port (SW-8).
#[inline(always)]
pub fn random(frame: &Frame, port: u32, seed: u64) -> u64 {
    share(frame.crc, frame.time_ps, port, seed)
}

/// As [`random`], of a frame that is not at hand as one.
#[inline(always)]
pub fn share(crc: u32, time_ps: u64, port: u32, seed: u64) -> u64 {
    let frame_and_port = u64::from(crc) | u64::from(port) << 32;
    hash::mix(frame_and_port.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ time_ps ^ seed)
}
