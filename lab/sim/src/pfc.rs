//! Priority flow control (IEEE 802.1Qbb): a switch short of memory pauses the senders of its links.
//!
//! A data frame waits here, at its port, and is an event only while it is on a cable: its departure
//! is not known in advance, since the port may be paused. `docs/specs/pfc.md` has the rules.

use std::collections::VecDeque;

use spray_core::link::serialisation_ceil_ps;
use spray_fabric::{Link, Network, Thresholds};
use spray_pipeline::Cause;
use spray_pipeline::bins::{LOST, Transit};
use spray_pipeline::frame::Frame;
use spray_pipeline::word::Word;

use super::arena::{Kind, set};
use super::port::{Port, TransitCell};
use super::spec::{Deadlock, Pfc as Config, SimSpec};

#[derive(Debug, Default)]
pub(super) struct Pfc {
    /// By port.
    lanes: Vec<PfcLink>,
    /// Bytes of data in each switch's memory, without headroom.
    used: Vec<u64>,
    /// By event the port over which its frame came.
    came_by: Vec<u32>,
    /// By event, whether its frame was allocated memory before it reached its port.
    admitted: Vec<bool>,
    /// Signals yet to be scheduled.
    pub signals: Vec<Signal>,
    /// Whether a check for deadlocks is scheduled.
    watching: bool,
    /// Time and ports of the first deadlock.
    deadlock: Option<(u64, Vec<u32>)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub at_ps: u64,
    pub kind: Kind,
    pub port: u32,
}

/// A link: the data waiting at its near end, and the memory at its far end.
#[derive(Debug, Default)]
struct PfcLink {
    waiting: VecDeque<QueuedFrame>,
    /// Total delay by pauses.
    delay_ps: u64,
    /// Whether the departure of the first frame is scheduled.
    armed: bool,
    since_ps: u64,
    pauses: u64,
    paused_ps: u64,
    /// `None` if the far end is a host, which accepts everything.
    room: Option<IngressBuffer>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedFrame {
    event: u32,
    came_by: u32,
    len: u32,
    /// Departure of its last bit, less the lane's delay.
    due_ps: u64,
    sending_ps: u64,
}

/// Memory of a switch for the data that came over a link.
#[derive(Debug)]
struct IngressBuffer {
    switch: u32,
    thresholds: Thresholds,
    headroom_bytes: u64,
    /// Latency of a pause to the sender.
    back_ps: u64,
    /// Arrival of the latest pause or resume; the next one arrives later.
    signal_ps: u64,
    bytes: u64,
    /// Of `bytes`, in headroom.
    over: u64,
    /// Whether the sender has been paused.
    full: bool,
}

const SIGNAL_BYTES: u64 = 64;
/// Interval of deadlock checks while a link is paused.
const WATCH_PS: u64 = 100_000_000;

impl Pfc {
    /// `port_of_link` has the port of each link, including hosts' own.
    pub(super) fn new(spec: &SimSpec<'_>, config: &Config, port_of_link: &[u32]) -> Self {
        let mut lanes: Vec<PfcLink> = (0..port_of_link.len()).map(|_| PfcLink::default()).collect();
        for (link, port) in port_of_link.iter().enumerate() {
            lanes[*port as usize].room = IngressBuffer::new(spec, config, link);
        }
        let used = vec![0; spec.network.switches.len()];
        Self { lanes, used, ..Self::default() }
    }

    pub(super) fn set_ingress(&mut self, event: u32, port: u32) {
        set(&mut self.came_by, event, port);
    }

    /// Passes a frame through a port; data has its memory by the link that it came over.
    pub(super) fn cross(
        &mut self,
        event: u32,
        number: u32,
        port: &mut Port,
        frame: &mut Frame,
        random: u64,
        seen: &TransitCell,
    ) -> Result<(), Cause> {
        let now_ps = frame.time_ps;
        self.apply_pause(number, port, now_ps);
        //= docs/specs/pfc.md#PFC-1 two classes
        if frame.control {
            return port.transmit_control(frame, random, seen);
        }
        let admitted = self.admitted.get_mut(event as usize).is_some_and(std::mem::take);
        if !admitted && !self.admit(event, frame.len, now_ps) {
            port.counters.drops_queue.add(1);
            seen.set(Some(Transit { flags: LOST, ..Transit::at(now_ps) }));
            return Err(Cause::Queue);
        }
        let crossed = port.transmit(frame, random, u32::MAX, seen);
        // The departure is not known yet: the port may be paused.
        seen.set(seen.get().map(|transit| Transit { bytes: 0, ..transit }));
        match crossed {
            Ok(()) => self.hold(event, number, port, frame.len, frame.time_ps - port.config.latency_ps),
            Err(_) => self.release(self.came_by[event as usize], frame.len, now_ps),
        }
        crossed
    }

    /// Allocates memory for a frame that is held before its port; `false` if there is none.
    pub(super) fn admit_early(&mut self, event: u32, len: u32, now_ps: u64) -> bool {
        let admitted = self.admit(event, len, now_ps);
        set(&mut self.admitted, event, admitted);
        admitted
    }

    /// Allocates memory for a data frame; `false` if there is none.
    //= docs/specs/pfc.md#PFC-2 memory
    fn admit(&mut self, event: u32, len: u32, now_ps: u64) -> bool {
        let Self { lanes, used, came_by, signals, .. } = self;
        let port = came_by[event as usize];
        let Some(room) = &mut lanes[port as usize].room else { return true };
        let (used, len) = (&mut used[room.switch as usize], u64::from(len));
        if room.bytes - room.over + len <= room.pause_above(*used) {
            *used += len;
        } else if room.over + len <= room.headroom_bytes {
            room.over += len;
            //= docs/specs/pfc.md#PFC-3 pause
            if !std::mem::replace(&mut room.full, true) {
                signals.push(Signal { at_ps: room.signal_at(now_ps), kind: Kind::Pause, port });
            }
        } else {
            return false;
        }
        room.bytes += len;
        true
    }

    /// Frees the memory of a frame that came over `port`.
    fn release(&mut self, port: u32, len: u32, now_ps: u64) {
        let Self { lanes, used, signals, .. } = self;
        let Some(room) = &mut lanes[port as usize].room else { return };
        let (used, len) = (&mut used[room.switch as usize], u64::from(len));
        // Headroom is freed first.
        let over = room.over.min(len);
        room.over -= over;
        *used -= len - over;
        room.bytes -= len;
        if room.full && room.may_resume(room.bytes, *used, len) {
            room.full = false;
            signals.push(Signal { at_ps: room.signal_at(now_ps), kind: Kind::Resume, port });
        }
    }

    /// Queues a data frame at `number`; its last bit leaves at `due_ps` unless the port is paused.
    fn hold(&mut self, event: u32, number: u32, port: &Port, len: u32, due_ps: u64) {
        let lane = &mut self.lanes[number as usize];
        let sending_ps = port.sending_ps(len, due_ps);
        let came_by = self.came_by[event as usize];
        lane.waiting.push_back(QueuedFrame { event, came_by, len, due_ps: due_ps - lane.delay_ps, sending_ps });
        self.arm(number, port);
    }

    /// Schedules the departure of the first frame.
    fn arm(&mut self, number: u32, port: &Port) {
        let lane = &mut self.lanes[number as usize];
        let Some(first) = lane.waiting.front() else { return };
        if !port.is_paused() && !std::mem::replace(&mut lane.armed, true) {
            self.signals.push(Signal { at_ps: first.due_ps + lane.delay_ps, kind: Kind::Leaves, port: number });
        }
    }

    fn apply_pause(&mut self, number: u32, port: &mut Port, now_ps: u64) {
        self.lanes[number as usize].delay_ps += port.apply_pause(now_ps);
    }

    /// Removes the first frame if it is due; returns its event and length.
    pub(super) fn leaves(&mut self, number: u32, port: &mut Port, now_ps: u64) -> Option<(u32, u32)> {
        self.apply_pause(number, port, now_ps);
        let lane = &mut self.lanes[number as usize];
        lane.armed = false;
        let due = |lane: &PfcLink| lane.waiting.front().is_some_and(|first| first.due_ps + lane.delay_ps <= now_ps);
        let first = if due(lane) { lane.waiting.pop_front() } else { None };
        self.arm(number, port);
        let QueuedFrame { event, came_by, len, .. } = first?;
        self.release(came_by, len, now_ps);
        self.set_ingress(event, number);
        Some((event, len))
    }

    /// Pauses the sender of a link; the frame in transmission is completed.
    //= docs/specs/pfc.md#PFC-5 effect of a pause
    pub(super) fn pause(&mut self, number: u32, port: &mut Port, now_ps: u64) {
        let lane = &mut self.lanes[number as usize];
        let first = lane.waiting.front().map(|first| (first.due_ps + lane.delay_ps, first.sending_ps));
        let under_way = first.filter(|(due_ps, sending_ps)| *due_ps < now_ps + sending_ps);
        port.pause(under_way.map_or(now_ps, |(due_ps, _)| due_ps.max(now_ps)));
        (lane.since_ps, lane.pauses) = (now_ps, lane.pauses + 1);
        if !std::mem::replace(&mut self.watching, true) {
            self.signals.push(Signal { at_ps: now_ps + WATCH_PS, kind: Kind::DeadlockCheck, port: 0 });
        }
    }

    pub(super) fn resume(&mut self, number: u32, port: &mut Port, now_ps: u64) {
        self.apply_pause(number, port, now_ps);
        port.resume();
        let lane = &mut self.lanes[number as usize];
        lane.paused_ps += now_ps - lane.since_ps;
        self.arm(number, port);
    }

    /// Returns the number of pauses of a link's sender and their total time up to `end_ps`.
    pub(super) fn pauses(&self, number: usize, port: &Port, end_ps: u64) -> (u64, u64) {
        let lane = &self.lanes[number];
        let present_ps = if port.is_paused() { end_ps.saturating_sub(lane.since_ps) } else { 0 };
        (lane.pauses, lane.paused_ps + present_ps)
    }

    pub(super) fn frames(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.waiting.len() as u64).sum()
    }

    pub(super) fn deadlock(&self, network: &Network, port_of_link: &[u32]) -> Option<Deadlock> {
        let (at_ps, circle) = self.deadlock.as_ref()?;
        let links = circle.iter().filter_map(|port| port_of_link.iter().position(|of_link| of_link == port));
        Some(Deadlock { at_ps: *at_ps, links: links.map(|link| network.links[link].name.clone()).collect() })
    }

    /// Checks for a deadlock.
    pub(super) fn watch(&mut self, ports: &[Port], now_ps: u64) {
        let stuck = self.stuck(ports);
        if let (Some(first), None) = (stuck.first(), &self.deadlock) {
            self.deadlock = Some((now_ps, self.cycle(*first, &stuck)));
        }
        self.watching = ports.iter().any(Port::is_paused) && self.deadlock.is_none();
        if self.watching {
            self.signals.push(Signal { at_ps: now_ps + WATCH_PS, kind: Kind::DeadlockCheck, port: 0 });
        }
    }

    /// Returns the links that stay paused forever: each waits for memory of frames that wait at
    /// such links of the next switch.
    //= docs/specs/pfc.md#PFC-7 deadlock
    fn stuck(&self, ports: &[Port]) -> Vec<u32> {
        let pauses = |port: &u32| {
            let room = self.lanes[*port as usize].room.as_ref();
            ports[*port as usize].is_paused() && room.is_some_and(|room| room.full)
        };
        let shortest = self.shortest();
        let mut stuck: Vec<u32> = (0..ports.len() as u32).filter(pauses).collect();
        loop {
            let stays = |port: &u32| {
                let room = |port: u32| self.lanes[port as usize].room.as_ref();
                let Some(own) = room(*port) else { return false };
                let bytes = self.permanently_queued(&stuck, |held| held.came_by == *port);
                let is_here = |held: &QueuedFrame| room(held.came_by).is_some_and(|other| other.switch == own.switch);
                !own.may_resume(bytes, self.permanently_queued(&stuck, is_here), shortest[*port as usize])
            };
            let left: Vec<u32> = stuck.iter().copied().filter(stays).collect();
            if left.len() == stuck.len() {
                return stuck;
            }
            stuck = left;
        }
    }

    /// Returns a cycle of `stuck` links, each waiting for the next, searched from `first`. If a
    /// link waits only for its switch's shared memory, returns the links up to it.
    fn cycle(&self, first: u32, stuck: &[u32]) -> Vec<u32> {
        let waits = |port: u32, other: u32| self.lanes[other as usize].waiting.iter().any(|held| held.came_by == port);
        let mut links = vec![first];
        while let Some(next) = stuck.iter().copied().find(|other| waits(links[links.len() - 1], *other)) {
            if let Some(begin) = links.iter().position(|link| *link == next) {
                return links.split_off(begin);
            }
            links.push(next);
        }
        links
    }

    /// Bytes waiting at `stuck` ports that match `such`.
    fn permanently_queued(&self, stuck: &[u32], such: impl Fn(&QueuedFrame) -> bool) -> u64 {
        let waiting = stuck.iter().flat_map(|port| &self.lanes[*port as usize].waiting);
        waiting.filter(|held| such(held)).map(|held| u64::from(held.len)).sum()
    }

    /// By port, bytes of the shortest waiting frame that came over it.
    fn shortest(&self) -> Vec<u64> {
        let mut shortest = vec![u64::from(u32::MAX); self.lanes.len()];
        for held in self.lanes.iter().flat_map(|lane| &lane.waiting) {
            let bytes = &mut shortest[held.came_by as usize];
            *bytes = (*bytes).min(held.len.into());
        }
        shortest
    }
}

impl Config {
    /// Returns the memory for what arrives over a link until a pause takes effect.
    //= docs/specs/pfc.md#PFC-6 headroom
    pub fn headroom_bytes(&self, network: &Network, link: usize) -> u64 {
        self.headroom_bytes.unwrap_or_else(|| {
            let ahead_ps = network.latency_ps(link);
            let link = &network.links[link];
            let blind_ps = u128::from(ahead_ps + back_ps(link));
            let blind = (blind_ps * u128::from(link.rate_bps)).div_ceil(8_000_000_000_000) as u64;
            blind + 2 * u64::from(self.frame_bytes)
        })
    }
}

/// Latency of a PFC frame against the direction of a link.
fn back_ps(link: &Link) -> u64 {
    link.latency_ps + serialisation_ceil_ps(SIGNAL_BYTES, link.rate_bps)
}

impl IngressBuffer {
    fn new(spec: &SimSpec<'_>, config: &Config, number: usize) -> Option<Self> {
        let link = &spec.network.links[number];
        let switch = link.to.switch()?;
        Some(Self {
            switch: switch as u32,
            thresholds: (spec.queue)(link.rate_bps),
            headroom_bytes: config.headroom_bytes(spec.network, number),
            back_ps: back_ps(link),
            signal_ps: 0,
            bytes: 0,
            over: 0,
            full: false,
        })
    }

    /// Arrival of a signal sent now; after the previous one, as simultaneous events are unordered.
    fn signal_at(&mut self, now_ps: u64) -> u64 {
        self.signal_ps = (now_ps + self.back_ps).max(self.signal_ps + 1);
        self.signal_ps
    }

    /// Whether a pause ends when `len` bytes leave, with `bytes` left here and `used` in the
    /// switch.
    //= docs/specs/pfc.md#PFC-4 resume
    fn may_resume(&self, bytes: u64, used: u64, len: u64) -> bool {
        let headroom_is_free = bytes <= self.bytes - self.over;
        headroom_is_free && bytes <= self.pause_above(used).saturating_sub(2 * len)
    }

    /// Limit of the bytes here without headroom, if the switch holds `used`.
    fn pause_above(&self, used: u64) -> u64 {
        let Thresholds { shared_bytes, limit_bytes, .. } = self.thresholds;
        u64::from(if shared_bytes > 0 { self.thresholds.limit_within(used, self.bytes) } else { limit_bytes })
    }
}
