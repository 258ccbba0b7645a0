//! An egress port of a switch, or a host's link.

use std::cell::Cell;
use std::mem::offset_of;

use spray_fabric::{DropEvery, LinkChange, LinkState, Thresholds};
use spray_pipeline::Cause;
use spray_pipeline::bins::Transit;
use spray_pipeline::config::{HOST, OUTSIDE, PortSettings};
use spray_pipeline::counters::PortCounters;
use spray_pipeline::fifo::PortFifos;
use spray_pipeline::frame::Frame;
use spray_pipeline::link::{FLAG_COUNTED, PortState};
use spray_pipeline::queue::Backlog;
use spray_pipeline::scheme::QueueState;

use super::arena::Kind;
use super::departures::Departures;

/// Most frames touch two of its cache lines: the first and the third.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    pub queues: PortFifos,
    /// The counters that almost every frame increments come first and fill the line.
    pub counters: PortCounters<Cell<u64>>,
    /// Switch or host at which the cable ends.
    pub place: u32,
    /// 0 = the cable ends in this part, else 1 + the number of the channel to the other part.
    pub channel: u16,
    pub kind: Kind,
    /// Whether the data class is paused.
    paused: bool,
    /// The fields that every frame reads come first and fill the line.
    pub config: PortSettings<1>,
    pub rate_bps: u64,
    rare: Option<Box<ColdState>>,
}

const _: () = assert!(offset_of!(Port, counters) + offset_of!(PortCounters, marks) == 64);
const _: () = assert!(offset_of!(Port, place) >= 128);
const _: () =
    assert!(offset_of!(Port, config) + offset_of!(PortSettings<1>, states) + offset_of!(PortState, at_ps) == 192);
const _: () = assert!(size_of::<Port>() == 256);

#[derive(Clone, Copy, Debug)]
pub(super) struct CableEnd {
    pub place: u32,
    pub channel: u16,
    pub kind: Kind,
}

/// State that few ports need.
#[derive(Debug, Default)]
pub(super) struct ColdState {
    periodic: Option<Periodic>,
    pub departures: Departures,
    /// While paused: the time up to which the pause has been applied to the queue.
    frozen_ps: u64,
}

/// What the port did with a frame, if that is sampled.
pub(super) type TransitCell = Cell<Option<Transit>>;

/// Periodic losses, counted in frames.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    every: DropEvery,
    seen: u64,
}

impl Port {
    pub(super) fn new(
        end: CableEnd,
        rate_bps: u64,
        latency_ps: u64,
        thresholds: &Thresholds,
        most_bytes: u32,
        counts: bool,
    ) -> Self {
        let CableEnd { place, channel, kind } = end;
        let next = if kind == Kind::AtHost { HOST } else { OUTSIDE };
        let mut config = PortSettings::new(rate_bps, latency_ps, thresholds, next, most_bytes);
        // The queue model has no limit of its own.
        (config.limit, config.control_limit) = (thresholds.limit_bytes, thresholds.control_limit_bytes);
        config.counts = counts.into();
        let (queues, counters) = (PortFifos::default(), PortCounters::default());
        Self { queues, counters, place, channel, kind, paused: false, config, rate_bps, rare: None }
    }

    pub(super) fn rare(&mut self) -> &mut ColdState {
        self.rare.get_or_insert_default()
    }

    /// Passes a frame through the port; sets `seen` if the port is sampled.
    #[inline]
    pub(super) fn transmit(&self, frame: &mut Frame, random: u64, limit: u32, seen: &TransitCell) -> Result<(), Cause> {
        let note = |_: &Frame, transit: &Transit| seen.set(Some(*transit));
        self.config.transmit_within(frame, random, limit, &self.queues, &self.counters, note)
    }

    /// Passes a control frame through, which does not queue behind paused data.
    pub(super) fn transmit_control(&self, frame: &mut Frame, random: u64, seen: &TransitCell) -> Result<(), Cause> {
        if !self.is_paused() {
            return self.transmit(frame, random, self.config.limit, seen);
        }
        let alone = self.queues.control_alone();
        let note = |_: &Frame, transit: &Transit| seen.set(Some(*transit));
        let crossed = self.config.transmit_within(frame, random, self.config.limit, &alone, &self.counters, note);
        self.queues.set_control(&alone);
        crossed
    }

    /// Returns the serialisation time of a frame at the rate at `t_ps`.
    pub(super) fn sending_ps(&self, len: u32, t_ps: u64) -> u64 {
        self.config.drain(t_ps).delay_ps(0, len)
    }

    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Pauses the data class from `from_ps` on.
    pub(super) fn pause(&mut self, from_ps: u64) {
        self.paused = true;
        self.rare().frozen_ps = from_ps;
    }

    /// Resumes the data class; [`Port::apply_pause`] has applied the pause.
    pub(super) fn resume(&mut self) {
        self.paused = false;
    }

    /// Applies a pause up to `now_ps`; returns by how much it delays the queue.
    pub(super) fn apply_pause(&mut self, now_ps: u64) -> u64 {
        let from_ps = self.moving_until_ps(now_ps);
        let by_ps = now_ps - from_ps;
        if by_ps == 0 {
            return 0;
        }
        self.rare().frozen_ps = now_ps;
        if self.queues.total.busy_until_ps() <= from_ps {
            return 0;
        }
        self.queues.postpone(from_ps, by_ps, self.config.states[0].ps_per_unit, &self.counters);
        by_ps
    }

    /// Returns the backlog that a frame arriving at `now_ps` finds.
    #[inline]
    pub(super) fn queue_state(&self, now_ps: u64) -> QueueState {
        // A paused queue does not drain.
        self.config.queue_state(self.moving_until_ps(now_ps), &self.queues)
    }

    /// Returns the time up to which data has drained at `now_ps`.
    #[inline]
    fn moving_until_ps(&self, now_ps: u64) -> u64 {
        let frozen_ps = self.rare.as_deref().filter(|_| self.paused).map_or(now_ps, |rare| rare.frozen_ps);
        frozen_ps.min(now_ps)
    }

    pub(super) fn change(&mut self, at_ps: u64, state: &LinkState) {
        let before = self.config.states[0].ps_per_unit;
        self.config.set(self.rate_bps, &LinkChange { at_ps, state: *state });
        let after = self.config.states[0].ps_per_unit;
        self.queues.change_rate(at_ps, before, after, &self.counters);
        self.rare().periodic = state.drop_every.map(|every| Periodic { every, seen: 0 });
    }

    /// Drops the frame if it is one of the periodic losses.
    #[inline]
    pub(super) fn lose_periodically(&mut self, now_ps: u64, data: bool) -> Result<(), Cause> {
        if self.config.states[0].flags & FLAG_COUNTED == 0 { Ok(()) } else { self.count_loss(now_ps, data) }
    }

    #[cold]
    fn count_loss(&mut self, now_ps: u64, data: bool) -> Result<(), Cause> {
        let Some(periodic) = self.rare.as_deref_mut().and_then(|rare| rare.periodic.as_mut()) else { return Ok(()) };
        let at = periodic.seen % (u64::from(periodic.every.pass) + u64::from(periodic.every.lose)).max(1);
        periodic.seen += 1;
        if at < u64::from(periodic.every.pass) {
            return Ok(());
        }
        self.counters.link_drop(&self.counters.drops_random, now_ps, data);
        Err(Cause::Random)
    }

    pub(super) fn waiting_bytes(&self, now_ps: u64) -> u64 {
        self.queue_state(now_ps).bytes
    }

    pub(super) fn waiting_data_bytes(&self, now_ps: u64) -> u64 {
        self.waiting_bytes(now_ps).saturating_sub(self.queues.control.peek(now_ps, &self.config.drain(now_ps)))
    }

    /// Returns the counters, with the integral of the queue length up to `end_ps`.
    pub(super) fn counters_until(&self, end_ps: u64) -> PortCounters {
        self.counters.read().less_queue_area(self.queues.area_after(end_ps, self.config.states[0].ps_per_unit))
    }
}
