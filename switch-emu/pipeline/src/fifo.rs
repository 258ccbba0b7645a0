//! The exact queue, for callers whose frames come to a port in order of their times.
//!
//! All frames that came before and have not left are then ahead of a frame. One time is enough to keep of them: when the last
//! bit leaves. See `docs/specs/virtual-queue.md` for the queue that takes frames in any order.

use crate::config::UNIT_BITS;
use crate::queue::{Backlog, Drain, Queues};
use core::cell::Cell;

/// One traffic class of a port, or both together.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    /// When everything accepted so far has left.
    busy_until_ps: Cell<u64>,
}

/// The two queues of a port.
#[derive(Clone, Debug, Default)]
pub struct PortFifos {
    /// Both classes: what a data frame waits for.
    pub total: Fifo,
    /// The control class alone: what a control frame waits for.
    pub control: Fifo,
}

/// Where a frame stands in a [`Fifo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When the frame came.
    at_ps: u64,
    /// How long what is ahead of it takes.
    wait_ps: u64,
}

impl Fifo {
    /// When the queue is empty if nothing more is admitted, in picoseconds.
    pub fn busy_until_ps(&self) -> u64 {
        self.busy_until_ps.get()
    }

    /// From `at_ps` on the link drains at another rate: what waits takes `after` in place of `before` ps per unit.
    //= docs/specs/virtual-queue.md#VQ-10a queues of the simulator
    pub fn rescale(&self, at_ps: u64, before: u64, after: u64) {
        let rest = u128::from(self.busy_until_ps.get().saturating_sub(at_ps));
        let rest = rest * u128::from(after) / u128::from(before.max(1));
        if rest > 0 {
            self.busy_until_ps.set(at_ps.saturating_add(rest as u64));
        }
    }
}

impl Backlog for Fifo {
    type Position = Wait;

    #[inline(always)]
    fn locate(&self, t_ps: u64, _drain: &Drain) -> Wait {
        Wait { at_ps: t_ps, wait_ps: self.busy_until_ps.get().saturating_sub(t_ps) }
    }

    #[inline(always)]
    fn push(&self, wait: &Wait, bytes: u32, drain: &Drain) {
        self.busy_until_ps.set(wait.at_ps + self.delay_ps(wait, bytes, drain));
    }

    #[inline(always)]
    fn bytes(&self, wait: &Wait, drain: &Drain) -> u64 {
        // Rounded to nearest: full frames of a full rate give whole bytes again.
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
}

impl Queues for PortFifos {
    type Class = Fifo;

    #[inline(always)]
    fn total(&self) -> &Fifo {
        &self.total
    }

    #[inline(always)]
    fn control(&self) -> &Fifo {
        &self.control
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod port_tests;
