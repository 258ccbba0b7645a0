//! One egress port: link state, queue, marking, trimming, departure.

use crate::bins::{LOST, MARKED, TRIMMED, Transit};
use crate::config::PortSettings;
use crate::counters::PortCounters;
use crate::frame::{self, Frame};
use crate::hash;
use crate::link::{FLAG_OUT, FLAG_UP, PortState, Share};
use crate::queue::{Backlog, ClassQueues, Drain};
use crate::scheme::QueueState;
use crate::verdict::Cause;
use crate::word::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Present {
    drain: Drain,
    state: PortState,
}

struct Arrival {
    random: u32,
    /// In bytes of data.
    limit: u32,
    /// Flags of a [`Transit`] so far.
    flags: u32,
}

impl<const STATES: usize> PortSettings<STATES> {
    /// Returns the drain rate around `t_ps`, for sampling.
    pub fn drain(&self, t_ps: u64) -> Drain {
        self.present(t_ps).drain
    }

    /// The state of the link at `t_ps`: of the last change at or before that time.
    ///
    /// The loop keeps loaded values only, no pointer into the table and no constants: the verifier
    /// could tell its exits apart, and would follow each through the rest of the program.
    //= docs/specs/switch.md#SW-6 states of a link
    #[inline(always)]
    fn present(&self, t_ps: u64) -> Present {
        let mut state = self.states[0];
        let mut before = state.share;
        for later in &self.states[1..] {
            if later.at_ps > t_ps {
                break;
            }
            before = state.share;
            state = *later;
        }
        let shift = u64::from(self.slot_shift & 63);
        let (units, ps_per_unit) = (Share::unpack(state.share).slot_units, state.ps_per_unit);
        let before = Share::unpack(before).slot_units;
        Present { drain: Drain { shift, units, before, since: state.at_ps >> shift, ps_per_unit }, state }
    }

    /// Returns the queue that a frame arriving at `t_ps` finds.
    #[inline(always)]
    pub fn queue_state<Q: Backlog>(&self, t_ps: u64, queues: &ClassQueues<Q>) -> QueueState {
        let Present { drain, state: _ } = self.present(t_ps);
        QueueState { bytes: queues.total.peek(t_ps, &drain), limit: self.limit, ps_per_unit: drain.ps_per_unit }
    }

    /// Moves a frame to the far end of the port's link. `note` receives the transit.
    #[inline(always)]
    pub fn transmit<Q: Backlog, C: Word>(
        &self,
        frame: &mut Frame,
        random: u64,
        queues: &ClassQueues<Q>,
        counters: &PortCounters<C>,
        note: impl Fn(&Frame, &Transit),
    ) -> Result<(), Cause> {
        self.transmit_within(frame, random, self.limit, queues, counters, note)
    }

    /// Moves a frame as [`PortSettings::transmit`], with a data limit of `limit` bytes.
    #[inline(always)]
    pub fn transmit_within<Q: Backlog, C: Word>(
        &self,
        frame: &mut Frame,
        random: u64,
        limit: u32,
        queues: &ClassQueues<Q>,
        counters: &PortCounters<C>,
        note: impl Fn(&Frame, &Transit),
    ) -> Result<(), Cause> {
        //= docs/specs/switch.md#SW-3 ttl at every port
        if frame.ttl <= 1 {
            counters.drops_ttl.add(1);
            self.report(frame, &Transit { flags: LOST, ..Transit::at(frame.time_ps) }, &note);
            return Err(Cause::Ttl);
        }
        frame.ttl -= 1;
        self.transmit_without_ttl(frame, random, limit, queues, counters, note)
    }

    /// Moves a frame as [`PortSettings::transmit_within`], without its TTL: over a host's own link.
    #[inline(always)]
    pub fn transmit_without_ttl<Q: Backlog, C: Word>(
        &self,
        frame: &mut Frame,
        random: u64,
        limit: u32,
        queues: &ClassQueues<Q>,
        counters: &PortCounters<C>,
        note: impl Fn(&Frame, &Transit),
    ) -> Result<(), Cause> {
        // Destructured: fields beside `drain`, passed by address, would occupy the small stack.
        let Present { drain, state } = self.present(frame.time_ps);
        if let Err(cause) = state.check(frame.time_ps, frame.is_trimmable(), counters) {
            self.report(frame, &Transit { flags: LOST, ..Transit::at(frame.time_ps) }, &note);
            return Err(cause);
        }
        let flags = if ((random >> 32) as u32) < Share::unpack(state.share).loss { LOST } else { 0 };
        let (delay_ps, flags) =
            self.enqueue(frame, Arrival { random: random as u32, limit, flags }, &drain, queues, counters, note)?;
        // After the queue, as a lost frame has used the link too.
        if flags & LOST != 0 {
            counters.link_drop(&counters.drops_random, frame.time_ps, frame.is_trimmable());
            return Err(Cause::Random);
        }
        frame.time_ps = frame.time_ps.wrapping_add(delay_ps).wrapping_add(self.latency_ps);
        counters.frames.add(1);
        counters.bytes.add(u64::from(frame.len));
        Ok(())
    }

    /// Moves a frame over the link alone, queued by other rules: a host's own link.
    #[inline(always)]
    pub fn traverse_link<C: Word>(
        &self,
        t_ps: u64,
        len: u32,
        data: bool,
        random: u64,
        counters: &PortCounters<C>,
    ) -> Result<(), Cause> {
        let link = self.present(t_ps);
        link.state.check(t_ps, data, counters)?;
        if ((random >> 32) as u32) < Share::unpack(link.state.share).loss {
            counters.link_drop(&counters.drops_random, t_ps, data);
            return Err(Cause::Random);
        }
        counters.frames.add(1);
        counters.bytes.add(u64::from(len));
        Ok(())
    }

    /// Queues, marks, trims or drops the frame; returns the time until it has left, and the flags
    /// of its transit, which `note` receives.
    #[inline(always)]
    fn enqueue<Q: Backlog, C: Word>(
        &self,
        frame: &mut Frame,
        Arrival { random, limit, mut flags }: Arrival,
        drain: &Drain,
        queues: &ClassQueues<Q>,
        counters: &PortCounters<C>,
        note: impl Fn(&Frame, &Transit),
    ) -> Result<(u64, u32), Cause> {
        let control = queues.control.locate(frame.time_ps, drain);
        let total = queues.total.locate(frame.time_ps, drain);
        if queues.total.is_stale(&total) {
            counters.stale.add(1);
        }
        let mut room = Ok(());
        if !frame.control {
            let waiting = queues.total.bytes(&total, drain).saturating_sub(queues.control.bytes(&control, drain));
            if waiting + u64::from(frame.len) > u64::from(limit) {
                room = self.trim(frame, counters);
                flags |= if room.is_ok() { TRIMMED } else { 0 };
            } else if self.mark_departing == 0 && self.mark(&mut frame.ecn, waiting, random, counters) {
                flags |= MARKED;
            }
        }
        if frame.control {
            room = self.admit_control(frame, drain, queues, &control, counters);
        }
        if let Err(cause) = room {
            self.report(frame, &Transit { flags: flags | LOST, ..Transit::at(frame.time_ps) }, &note);
            return Err(cause);
        }
        queues.total.push(&total, frame.len, drain);
        let (delay_ps, own_ps) = (queues.total.delay_ps(&total, frame.len, drain), drain.delay_ps(0, frame.len));
        let ahead = queues.total.bytes(&total, drain);
        counters.queued(ahead, frame.len, delay_ps, own_ps);
        let transit = Transit {
            departed_ps: frame.time_ps.wrapping_add(delay_ps),
            waiting: (ahead as u32).saturating_add(frame.len),
            bytes: if flags & LOST != 0 { 0 } else { frame.len },
            flags,
            arrived_ps: frame.time_ps,
        };
        let own_class_ps = if frame.control { queues.control.delay_ps(&control, frame.len, drain) } else { delay_ps };
        self.report(frame, &transit, &note);
        Ok((own_class_ps, flags))
    }

    #[inline(always)]
    fn report(&self, frame: &Frame, transit: &Transit, note: impl Fn(&Frame, &Transit)) {
        if self.counts != 0 {
            note(frame, transit);
        }
    }

    /// Queues a frame in the control class, also a freshly trimmed one.
    //= docs/specs/switch.md#SW-12 limit of control frames
    #[inline(always)]
    fn admit_control<Q: Backlog, C: Word>(
        &self,
        frame: &Frame,
        drain: &Drain,
        queues: &ClassQueues<Q>,
        control: &Q::Position,
        counters: &PortCounters<C>,
    ) -> Result<(), Cause> {
        if queues.control.bytes(control, drain) + u64::from(frame.len) > u64::from(self.control_limit) {
            counters.drops_queue.add(1);
            return Err(Cause::Queue);
        }
        queues.control.push(control, frame.len, drain);
        counters.control_frames.add(1);
        Ok(())
    }

    //= docs/specs/switch.md#SW-11 trimming
    #[inline(always)]
    fn trim<C: Word>(&self, frame: &mut Frame, counters: &PortCounters<C>) -> Result<(), Cause> {
        if self.trim == 0 || !frame.is_trimmable() {
            counters.drops_queue.add(1);
            return Err(Cause::Queue);
        }
        frame.trim(self.trim as u8);
        counters.trims.add(1);
        Ok(())
    }

    /// Marks a frame for `waiting` bytes of data, at arrival or departure. Returns whether it did.
    #[inline(always)]
    pub fn mark<C: Word>(&self, ecn: &mut u8, waiting: u64, random: u32, counters: &PortCounters<C>) -> bool {
        let marks = self.marks(waiting, random) && frame::mark(ecn);
        if marks {
            counters.marks.add(1);
        }
        marks
    }

    /// RED: linear between the thresholds, always from the upper one on.
    //= docs/specs/switch.md#SW-10 marking
    #[inline(always)]
    fn marks(&self, waiting: u64, random: u32) -> bool {
        if waiting <= u64::from(self.mark_min) {
            return false;
        }
        let over = waiting - u64::from(self.mark_min);
        waiting >= self.mark_max || u64::from(random) << 16 < over * self.mark_slope
    }
}

impl PortState {
    /// Whether the link is up and in no outage.
    //= docs/specs/switch.md#SW-7 losses of a link
    #[inline(always)]
    fn check<C: Word>(&self, t_ps: u64, data: bool, counters: &PortCounters<C>) -> Result<(), Cause> {
        if self.flags & FLAG_UP == 0 {
            counters.link_drop(&counters.drops_down, t_ps, data);
            return Err(Cause::Down);
        }
        if self.flags & FLAG_OUT != 0 && self.is_out(t_ps) {
            counters.link_drop(&counters.drops_silent, t_ps, data);
            return Err(Cause::Silent);
        }
        Ok(())
    }

    #[inline(always)]
    fn is_out(&self, t_ps: u64) -> bool {
        (t_ps - self.at_ps) % self.flap_period_ps.max(1) < self.flap_down_ps
    }
}

/// Returns random bits for a frame at a port.
//= docs/specs/switch.md#SW-8 random decisions
#[inline(always)]
pub fn random(frame: &Frame, port: u32, seed: u64) -> u64 {
    share(frame.checksum, frame.time_ps, port, seed)
}

/// Returns the bits of [`random`] from a frame's fields.
#[inline(always)]
pub fn share(checksum: u32, time_ps: u64, port: u32, seed: u64) -> u64 {
    let frame_and_port = u64::from(checksum) | u64::from(port) << 32;
    hash::mix(frame_and_port.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ time_ps ^ seed)
}
