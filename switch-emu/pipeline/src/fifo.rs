//! The exact queue, for callers with frames that arrive at a port in order of their times.
//!
//! All frames still there are ahead of a new one, so that one time is enough: the departure of the
//! last bit. See `docs/specs/virtual-queue.md` for the queue of frames in any order.

use crate::counters::PortCounters;
use crate::queue::{Backlog, ClassQueues, Drain};
use crate::units::{PS_FRACTION_BITS, UNIT_BITS};
use crate::word::Word;
use core::cell::Cell;

/// One traffic class of a port, or both together.
#[derive(Clone, Debug, Default)]
pub struct Fifo<W = Cell<u64>> {
    busy_until_ps: W,
}

/// Exact queues of a port, for frames in order.
pub type PortFifos<W = Cell<u64>> = ClassQueues<Fifo<W>>;

/// The position of a frame in a [`Fifo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    at_ps: u64,
    wait_ps: u64,
}

impl<W: Word> Fifo<W> {
    /// Returns when the queue is empty if nothing more is admitted, in picoseconds.
    pub fn busy_until_ps(&self) -> u64 {
        self.busy_until_ps.load()
    }

    /// Changes the drain rate at `at_ps`, from `before` to `after` ps per unit.
    //= docs/specs/virtual-queue.md#VQ-10a the exact queue
    pub fn rescale(&self, at_ps: u64, before: u64, after: u64) {
        let rest = u128::from(self.busy_until_ps.load().saturating_sub(at_ps));
        let rest = rest * u128::from(after) / u128::from(before.max(1));
        if rest > 0 {
            self.busy_until_ps.store(at_ps.saturating_add(rest as u64));
        }
    }
}

impl<W: Word> PortFifos<W> {
    /// Changes both drain rates, as [`Fifo::rescale`], and corrects the queue's integral.
    //= docs/specs/virtual-queue.md#VQ-10a the exact queue
    pub fn change_rate<C: Word>(&self, at_ps: u64, before: u64, after: u64, counters: &PortCounters<C>) {
        let counted = self.area_after(at_ps, before);
        for queue in [&self.total, &self.control] {
            queue.rescale(at_ps, before, after);
        }
        let area = counters.queue_area() + self.area_after(at_ps, after);
        counters.set_queue_area(area.saturating_sub(counted));
    }

    /// Pauses data for `by_ps` from `at_ps` on: what is queued leaves later by that, except control
    /// frames. `ps_per_unit` as in the port's state.
    pub fn postpone<C: Word>(&self, at_ps: u64, by_ps: u64, ps_per_unit: u64, counters: &PortCounters<C>) {
        let wait_ps = u128::from(self.total.busy_until_ps().saturating_sub(at_ps));
        // The queue, in half bytes as in `area_after`, stays for as long.
        let area =
            ((2 * wait_ps * u128::from(by_ps)) << (PS_FRACTION_BITS - UNIT_BITS)) / u128::from(ps_per_unit.max(1));
        counters.set_queue_area(counters.queue_area() + area);
        self.total.busy_until_ps.store(self.total.busy_until_ps() + by_ps);
    }

    /// Returns the control class as if without data: what its frames find while data is paused.
    pub fn control_alone(&self) -> Self
    where
        W: Clone,
    {
        Self { total: self.control.clone(), control: self.control.clone() }
    }

    /// Takes the control class from [`PortFifos::control_alone`].
    pub fn set_control(&self, alone: &Self) {
        self.control.busy_until_ps.store(alone.control.busy_until_ps());
    }

    /// Returns the integral of the queue after `t_ps`, as [`PortCounters::queue_area`].
    pub fn area_after(&self, t_ps: u64, ps_per_unit: u64) -> u128 {
        let wait_ps = u128::from(self.total.busy_until_ps().saturating_sub(t_ps));
        // Bytes are the time divided by the picoseconds per byte, and last for that time.
        ((wait_ps * wait_ps) << (PS_FRACTION_BITS - UNIT_BITS)) / u128::from(ps_per_unit.max(1))
    }
}

impl<W: Word> Backlog for Fifo<W> {
    type Position = Wait;

    #[inline(always)]
    fn locate(&self, t_ps: u64, _drain: &Drain) -> Wait {
        Wait { at_ps: t_ps, wait_ps: self.busy_until_ps.load().saturating_sub(t_ps) }
    }

    #[inline(always)]
    fn push(&self, wait: &Wait, bytes: u32, drain: &Drain) {
        self.busy_until_ps.store(wait.at_ps + self.delay_ps(wait, bytes, drain));
    }

    #[inline(always)]
    fn bytes(&self, wait: &Wait, drain: &Drain) -> u64 {
        // Rounded to nearest, which gives whole bytes for full frames at full rate.
        let units = (u128::from(wait.wait_ps) * u128::from(drain.units)) >> drain.shift;
        (units as u64 + (1 << (UNIT_BITS - 1))) >> UNIT_BITS
    }

    #[inline(always)]
    fn delay_ps(&self, wait: &Wait, bytes: u32, drain: &Drain) -> u64 {
        wait.wait_ps + drain.delay_ps(0, bytes)
    }

    #[inline(always)]
    fn is_stale(&self, _wait: &Wait) -> bool {
        false
    }

    #[inline(always)]
    fn peek(&self, t_ps: u64, drain: &Drain) -> u64 {
        self.bytes(&self.locate(t_ps, drain), drain)
    }
}

#[cfg(test)]
mod tests;
