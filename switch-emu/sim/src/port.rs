//! An egress port of a switch, or a host's link.

use std::cell::Cell;

use spray_fabric::{DropEvery, LinkChange, LinkState, Node, Thresholds};
use spray_pipeline::Cause;
use spray_pipeline::bins::Crossing;
use spray_pipeline::config::{HOST, NEVER, OUTSIDE, PortSettings};
use spray_pipeline::counters::PortCounters;
use spray_pipeline::fifo::PortFifos;
use spray_pipeline::frame::Frame;
use spray_pipeline::queue::Backlog;
use spray_pipeline::scheme::Waiting;

use super::arena::Kind;
use super::common::Common;
use super::departures::Departures;

/// An egress port, with everything that a frame touches there in three cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    pub queues: PortFifos,
    /// Those that almost every frame adds to come first and fill the line.
    pub counters: PortCounters<Cell<u64>>,
    /// Where its cable ends.
    pub place: u32,
    pub kind: Kind,
    /// In which part that is: 0 = this one, else 1 more than the number of the way to it.
    pub way: u32,
    /// The link is healthy.
    pub unchanged: bool,
    /// Its first lines hold the healthy state.
    pub config: PortSettings<1>,
    pub rate_bps: u64,
    periodic: Option<Periodic>,
    pub departures: Departures,
    /// While its data pauses: up to when what waits has been counted as waiting; else [`NEVER`].
    frozen_ps: u64,
}

const _: () = assert!(std::mem::offset_of!(Port, counters) + std::mem::offset_of!(PortCounters, marks) == 64);
const _: () = assert!(std::mem::offset_of!(Port, place) >= 128);
const _: () = assert!(std::mem::offset_of!(Port, config) + std::mem::offset_of!(PortSettings<1>, states) + 56 <= 256);

/// What became of a frame at a port that counts over time.
pub(super) type Seen = Cell<Option<Crossing>>;

/// Losses counted in frames.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    every: DropEvery,
    seen: u64,
}

impl Port {
    /// A port whose cable ends at `to`; for `way` see [`Port::way`].
    pub(super) fn new(
        common: &Common<'_>,
        (to, way): (Node, u32),
        rate_bps: u64,
        latency_ps: u64,
        thresholds: &Thresholds,
    ) -> Self {
        let (place, kind, next) = match to {
            Node::Switch(switch) => (switch as u32, Kind::AtSwitch, OUTSIDE),
            Node::Host(host) => (common.partition.place_of_host[host], Kind::AtHost, HOST),
        };
        let most_bytes = common.spec.frames.trimmed.max(4096);
        let mut config = PortSettings::new(rate_bps, latency_ps, thresholds, next, most_bytes);
        // The exact queue has no limit of its own.
        (config.limit, config.control_limit) = (thresholds.limit_bytes, thresholds.control_limit_bytes);
        config.counts = common.bins.is_on().into();
        let (queues, counters) = (PortFifos::default(), PortCounters::default());
        Self {
            config,
            queues,
            counters,
            place,
            kind,
            way,
            rate_bps,
            periodic: None,
            unchanged: true,
            departures: Departures::default(),
            frozen_ps: NEVER,
        }
    }

    /// Takes a frame through; `seen` gets what became of it where that is counted over time.
    #[inline]
    pub(super) fn cross(&self, frame: &mut Frame, random: u64, limit: u32, seen: &Seen) -> Result<(), Cause> {
        let note = |_: &Frame, crossing: &Crossing| seen.set(Some(*crossing));
        self.config.cross_within(frame, random, limit, &self.queues, &self.counters, note)
    }

    /// Takes a control frame through, which waits for data that goes, but not for data that pauses.
    pub(super) fn cross_control(&self, frame: &mut Frame, random: u64, seen: &Seen) -> Result<(), Cause> {
        if !self.is_paused() {
            return self.cross(frame, random, self.config.limit, seen);
        }
        let alone = self.queues.control_alone();
        let note = |_: &Frame, crossing: &Crossing| seen.set(Some(*crossing));
        let crossed = self.config.cross_within(frame, random, self.config.limit, &alone, &self.counters, note);
        self.queues.set_control(&alone);
        crossed
    }

    /// How long a frame's bits take at the rate at `t_ps`.
    pub(super) fn sending_ps(&self, len: u32, t_ps: u64) -> u64 {
        self.config.drain(t_ps).delay_ps(0, len)
    }

    /// Whether data pauses.
    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.frozen_ps != NEVER
    }

    /// No data leaves from `from_ps` on.
    pub(super) fn pause(&mut self, from_ps: u64) {
        self.frozen_ps = from_ps;
    }

    /// Data leaves again; what has waited was counted by [`Port::thaw`].
    pub(super) fn resume(&mut self) {
        self.frozen_ps = NEVER;
    }

    /// Counts a pause up to `now_ps`; returns by how much what waits is delayed by it.
    pub(super) fn thaw(&mut self, now_ps: u64) -> u64 {
        let by_ps = now_ps.saturating_sub(self.frozen_ps);
        let from_ps = self.frozen_ps;
        if by_ps == 0 {
            return 0;
        }
        self.frozen_ps = now_ps;
        if self.queues.total.busy_until_ps() <= from_ps {
            return 0;
        }
        self.queues.postpone(from_ps, by_ps, self.config.states[0].ps_per_unit, &self.counters);
        by_ps
    }

    /// What a frame that comes at `now_ps` would find.
    #[inline]
    pub(super) fn waiting(&self, now_ps: u64) -> Waiting {
        // What pauses is as long as it was.
        self.config.waiting(now_ps.min(self.frozen_ps), &self.queues)
    }

    /// The link's state from `at_ps` on.
    pub(super) fn change(&mut self, at_ps: u64, state: &LinkState) {
        self.unchanged = false;
        let before = self.config.states[0].ps_per_unit;
        self.config.set(self.rate_bps, &LinkChange { at_ps, state: *state });
        let after = self.config.states[0].ps_per_unit;
        self.queues.change_rate(at_ps, before, after, &self.counters);
        self.periodic = state.drop_every.map(|every| Periodic { every, seen: 0 });
    }

    #[cold]
    pub(super) fn lose_periodically(&mut self, now_ps: u64, data: bool) -> Result<(), Cause> {
        let Some(periodic) = &mut self.periodic else { return Ok(()) };
        let at = periodic.seen % (u64::from(periodic.every.pass) + u64::from(periodic.every.lose)).max(1);
        periodic.seen += 1;
        if at < u64::from(periodic.every.pass) {
            return Ok(());
        }
        self.counters.link_drop(&self.counters.drops_random, now_ps, data);
        Err(Cause::Random)
    }

    /// Bytes of both classes at a switch's port.
    pub(super) fn waiting_bytes(&self, now_ps: u64) -> u64 {
        self.waiting(now_ps).bytes
    }

    /// Bytes of data at a switch's port.
    pub(super) fn waiting_data_bytes(&self, now_ps: u64) -> u64 {
        self.waiting_bytes(now_ps).saturating_sub(self.queues.control.peek(now_ps, &self.config.drain(now_ps)))
    }

    /// Bytes that leave in `time_ps`, at the full rate.
    pub(super) fn bytes_in(&self, time_ps: u64) -> u64 {
        let bits = u128::from(time_ps) * u128::from(self.rate_bps) / 1_000_000_000_000;
        (bits / 8) as u64
    }

    /// The counters, with the area under the queue up to `end_ps`.
    pub(super) fn counters_until(&self, end_ps: u64) -> PortCounters {
        self.counters.read().less_queue_area(self.queues.area_after(end_ps, self.config.states[0].ps_per_unit))
    }
}
