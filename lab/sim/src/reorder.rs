//! Reordering queues: frames that a switch holds until earlier ones of their flow have arrived. Its
//! scheme decides which frames, and how long.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use spray_pipeline::Cause;
use spray_pipeline::config::NEVER;
use spray_pipeline::scheme::{Expiry, QueueAction, State};

use super::arena::{Slot, time_ps};
use super::pfc::Pfc;

#[derive(Debug, Default)]
pub(super) struct Reorder {
    /// By switch and queue number.
    lines: HashMap<(u32, u32), Line>,
    /// (event, port) of frames that may leave.
    released: VecDeque<(u32, u32)>,
    timers: Vec<Timer>,
    /// Number of held frames, which have no scheduled events.
    pub frames: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub at_ps: u64,
    pub switch: u32,
    pub queue: u32,
}

/// The held frames of a queue, which leave by one port.
#[derive(Debug)]
struct Line {
    events: VecDeque<u32>,
    port: u32,
    /// The earliest scheduled timer.
    armed_ps: u64,
}

impl Reorder {
    #[inline]
    pub(super) fn released(&mut self) -> Option<(u32, u32)> {
        let released = self.released.pop_front();
        self.frames -= u64::from(released.is_some());
        released
    }

    #[inline]
    pub(super) fn timer(&mut self) -> Option<Timer> {
        self.timers.pop()
    }

    /// Whether a frame is held before port `number`; an error if `pfc` has no memory for it.
    // Not inlined: few schemes have such queues.
    #[inline(never)]
    pub(super) fn joins(
        &mut self,
        index: u32,
        slot: &Slot,
        number: u32,
        state: &RefCell<State>,
        pfc: Option<&mut Pfc>,
    ) -> Result<bool, Cause> {
        let Some(QueueAction { queue, holds, releases, due_ps }) = state.borrow_mut().order() else { return Ok(false) };
        let mut waits = Ok(holds);
        if holds {
            //= docs/specs/conweave.md#CWV-13 reordering queues
            if pfc.is_none_or(|pfc| pfc.admit_early(index, slot.len, time_ps(slot.key))) {
                let line = self.line(slot.place, queue);
                line.events.push_back(index);
                line.port = number;
                self.frames += 1;
            } else {
                waits = Err(Cause::Queue);
            }
        }
        if releases {
            self.release(slot.place, queue);
        } else {
            self.arm(slot.place, queue, due_ps);
        }
        waits
    }

    pub(super) fn expire(&mut self, switch: u32, queue: u32, state: Option<&RefCell<State>>, now_ps: u64) {
        let line = self.line(switch, queue);
        if line.armed_ps > now_ps {
            return;
        }
        line.armed_ps = NEVER;
        match state.map_or(Expiry::Free, |state| state.borrow_mut().expire(queue, now_ps)) {
            Expiry::Free => {}
            Expiry::At(at_ps) => self.arm(switch, queue, at_ps),
            Expiry::Now => self.release(switch, queue),
        }
    }

    fn line(&mut self, switch: u32, queue: u32) -> &mut Line {
        let empty = || Line { events: VecDeque::new(), port: 0, armed_ps: NEVER };
        self.lines.entry((switch, queue)).or_insert_with(empty)
    }

    fn release(&mut self, switch: u32, queue: u32) {
        let Self { lines, released, .. } = self;
        let Some(line) = lines.get_mut(&(switch, queue)) else { return };
        released.extend(line.events.drain(..).map(|event| (event, line.port)));
    }

    /// Schedules a timer for a queue, unless an earlier one is scheduled.
    fn arm(&mut self, switch: u32, queue: u32, at_ps: u64) {
        let line = self.line(switch, queue);
        if at_ps < line.armed_ps {
            line.armed_ps = at_ps;
            self.timers.push(Timer { at_ps, switch, queue });
        }
    }
}
