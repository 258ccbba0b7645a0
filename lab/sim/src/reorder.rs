//! Reordering queues: frames that a switch holds until those before them have come. Its scheme decides which and how long.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use spray_pipeline::Cause;
use spray_pipeline::config::NEVER;
use spray_pipeline::scheme::{Expiry, Order, State};

use super::arena::{Slot, time_ps};
use super::pfc::Pfc;

/// The reordering queues of all switches.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    /// By switch and number.
    lines: HashMap<(u32, u32), Line>,
    /// Events whose frames go on, with their ports.
    released: VecDeque<(u32, u32)>,
    timers: Vec<Timer>,
    frames: u64,
}

/// A time to be put among the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub at_ps: u64,
    pub switch: u32,
    pub queue: u32,
}

/// The events of frames that wait, and the port that all of them leave by.
#[derive(Debug)]
struct Line {
    events: VecDeque<u32>,
    port: u32,
    /// The earliest time that is among the events.
    armed_ps: u64,
}

impl Reorder {
    /// The next frame that goes on.
    #[inline]
    pub(super) fn released(&mut self) -> Option<(u32, u32)> {
        let released = self.released.pop_front();
        self.frames -= u64::from(released.is_some());
        released
    }

    /// What has yet to be put among the events.
    #[inline]
    pub(super) fn timer(&mut self) -> Option<Timer> {
        self.timers.pop()
    }

    /// Frames that wait without being among the events.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether a frame that has come to the switch of its host waits for others of its flow, by the `state` of the switch; it leaves by port
    /// `number`. An error where `pfc` has no memory for it.
    // Few schemes have such queues: frames of the others pass by without this code.
    #[inline(never)]
    pub(super) fn joins(
        &mut self,
        index: u32,
        slot: &Slot,
        number: u32,
        state: &RefCell<State>,
        pfc: Option<&mut Pfc>,
    ) -> Result<bool, Cause> {
        let Some(Order { queue, holds, releases, due_ps }) = state.borrow_mut().order() else { return Ok(false) };
        let mut waits = Ok(holds);
        if holds {
            //= docs/specs/conweave.md#CWV-13 reordering queues
            if pfc.is_none_or(|pfc| pfc.admit_early(index, slot.len, time_ps(slot.key))) {
                self.hold(slot.place, queue, index, number);
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

    /// The time of a queue may have come, by the `state` of its switch.
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

    /// A frame joins a queue.
    fn hold(&mut self, switch: u32, queue: u32, event: u32, port: u32) {
        let line = self.line(switch, queue);
        line.events.push_back(event);
        line.port = port;
        self.frames += 1;
    }

    /// What waits in a queue goes on.
    fn release(&mut self, switch: u32, queue: u32) {
        let Self { lines, released, .. } = self;
        let Some(line) = lines.get_mut(&(switch, queue)) else { return };
        released.extend(line.events.drain(..).map(|event| (event, line.port)));
    }

    /// A queue is to be looked at, unless it will be before.
    fn arm(&mut self, switch: u32, queue: u32, at_ps: u64) {
        let line = self.line(switch, queue);
        if at_ps < line.armed_ps {
            line.armed_ps = at_ps;
            self.timers.push(Timer { at_ps, switch, queue });
        }
    }
}
