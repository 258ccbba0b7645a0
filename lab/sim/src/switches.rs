//! The switches of a part, and how a frame crosses one.

use std::cell::{Cell, RefCell};

use spray_capture::PortAction;
use spray_pipeline::Cause;
use spray_pipeline::bins::{Cells, LOST, MARKED, Transit};
use spray_pipeline::flow_hash::Key;
use spray_pipeline::frame::Frame;
use spray_pipeline::port;
use spray_pipeline::routes::{Choice, Group, Routes, SwitchConfig};
use spray_pipeline::scheme::{self, Arrival, Forwarding, InMemory, Notice, QueueState, State};
use spray_pipeline::trail::{self, Trail};
use spray_pipeline::word::Word;
use spray_wire::switch_view::PacketFields;

use super::arena::{Kind, Phase, Slot, key, set, time_ps};
use super::common::{Common, LocalWord};
use super::control_body::ControlBody;
use super::hosts::Uplink;
use super::observer::{Observer, PartObserver};
use super::pfc::{Pfc, Signal};
use super::port::{CableEnd, Port, TransitCell};
use super::reorder::Reorder;
use spray_fabric::{Node, PortBins, Scheme};

pub(super) struct Switches<'a> {
    pub common: &'a Common<'a>,
    /// Ports of the switches, then hosts' own links in the order of the hosts.
    pub ports: Vec<Port>,
    /// Number of the first port.
    first: u32,
    /// By switch the in-memory state of its scheme; empty if no scheme has any.
    states: Vec<Option<Box<RefCell<State>>>>,
    /// Trail of the current frame.
    pub trail: Trail,
    /// By event.
    pub trails: Vec<[u64; trail::WORDS]>,
    pub reorder: Reorder,
    pub no_route: u64,
    pub pfc: Option<Pfc>,
    /// By event; empty if frames are marked on arrival.
    unsettled: Vec<Option<Unsettled>>,
    /// By port of the switches; empty without sampling.
    pub bins: Vec<PortBins<Cell<u64>>>,
}

/// A frame that has left a port but has yet to be marked.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    port: u32,
    /// Result of [`Departures::admit`](super::departures::Departures::admit).
    place: u64,
}

impl<'a> Switches<'a> {
    pub(super) fn new(common: &'a Common<'a>, number: usize, links: &[usize]) -> Self {
        let (spec, network) = (common.spec, common.spec.network);
        let (most_bytes, counts) = (spec.frames.trimmed.max(4096), common.bins.is_on());
        let port = |link: &usize| {
            let entry = &network.links[*link];
            let end = match entry.to {
                Node::Switch(switch) => {
                    let to = &common.partition.channels[number];
                    let channel = to.binary_search(&common.partition.of_switch[switch]).map_or(0, |at| at as u16 + 1);
                    CableEnd { place: switch as u32, channel, kind: Kind::AtSwitch }
                }
                Node::Host(host) => {
                    CableEnd { place: common.partition.place_of_host[host], channel: 0, kind: Kind::AtHost }
                }
            };
            Port::new(end, entry.rate_bps, network.latency_ps(*link), &common.queues[*link], most_bytes, counts)
        };
        let state = |(switch, state): (usize, &Option<State>)| {
            let is_own = common.partition.of_switch[switch] as usize == number;
            state.as_ref().filter(|_| is_own).map(|state| Box::new(RefCell::new(state.clone())))
        };
        let pfc = spec.pfc.map(|config| Pfc::new(spec, &config, &common.port_of_link));
        let own = if counts { common.first_port[number + 1] - common.first_port[number] } else { 0 };
        Self {
            common,
            bins: (0..own).map(|_| PortBins::empty(common.bins)).collect(),
            ports: links.iter().map(port).collect(),
            first: common.first_port[number],
            states: common.routes.states.iter().enumerate().map(state).collect(),
            trail: Trail::default(),
            trails: Vec::new(),
            reorder: Reorder::default(),
            no_route: 0,
            pfc,
            unsettled: Vec::new(),
        }
    }

    /// Index in `ports` of the switch port with this number.
    #[inline]
    pub(super) fn place(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    /// Passes a frame through the switch at which it has arrived, and over the cable behind its
    /// egress port. Returns the [`Port::channel`], or `None` if the frame is held at this switch.
    #[inline]
    pub(super) fn forward<W: Observer>(
        &mut self,
        index: u32,
        slot: &mut Slot,
        eyes: &mut PartObserver<W>,
        controls: &[ControlBody],
    ) -> Result<Option<u32>, Cause> {
        let marked = self.settle(index, slot);
        eyes.arrives(index, slot, marked, controls);
        let arrived = matches!(slot.kind, Kind::AtSwitch);
        let found = if arrived { self.find(index, slot) } else { Some(slot.place) };
        let Some(number) = found else {
            self.no_route += 1;
            if W::ACTIVE {
                eyes.unroutable(slot, controls);
            }
            return Err(Cause::NoRoute);
        };
        if !W::ACTIVE {
            return self.cross(index, slot, number, arrived, &mut PortAction::default());
        }
        let (mut seen, mut action) = (*slot, PortAction::default());
        let waiting = self.ports[self.place(number)].waiting_bytes(time_ps(slot.key));
        let crossed = self.cross(index, slot, number, arrived, &mut action);
        match crossed {
            // Held before its port.
            Ok(None) if slot.key == seen.key && slot.place == seen.place => return crossed,
            Ok(_) => {
                seen = Slot { key: seen.key, ..*slot };
                eyes.leaves(index, number);
            }
            Err(cause) => action.dropped = Some(cause.name()),
        }
        eyes.crosses(number, waiting, &seen, action, controls);
        crossed
    }

    /// Passes a frame through port `number`, unless it has just arrived and is held.
    #[inline]
    fn cross(
        &mut self,
        index: u32,
        slot: &mut Slot,
        number: u32,
        arrived: bool,
        action: &mut PortAction,
    ) -> Result<Option<u32>, Cause> {
        if arrived && self.has_to_wait(index, slot, number)? {
            return Ok(None);
        }
        let place = self.place(number);
        let shared = self.common.shared.as_ref();
        let limit = shared.map(|shared| shared.limit(|port| &self.ports[self.place(port)], number, time_ps(slot.key)));
        let port = &mut self.ports[place];
        let mut frame = frame(slot, self.common.trimmed_len);
        if let Err(cause) = port.lose_periodically(frame.time_ps, frame.is_trimmable()) {
            note(&mut self.bins, place, &Transit { flags: LOST, ..Transit::at(frame.time_ps) });
            return Err(cause);
        }
        let random = port::random(&frame, number, self.common.spec.seed);
        let seen = TransitCell::new(None);
        let crossed = match &mut self.pfc {
            None => port.transmit(&mut frame, random, limit.unwrap_or(port.config.limit), &seen),
            Some(pfc) => pfc.cross(index, number, port, &mut frame, random, &seen),
        };
        if let Some(transit) = seen.get() {
            note(&mut self.bins, place, &transit);
        }
        // A frame that the link loses has used the queue all the same.
        if port.config.mark_departing != 0 && !frame.control && matches!(crossed, Ok(()) | Err(Cause::Random)) {
            let cable_ps = port.config.latency_ps;
            let place = port.rare().departures.admit(time_ps(slot.key), frame.len, cable_ps);
            if crossed.is_ok() {
                set(&mut self.unsettled, index, Some(Unsettled { port: number, place }));
            }
        }
        (action.marked, action.trimmed) = (frame.ecn != slot.ecn, frame.trimmed != 0);
        crossed?;
        slot.key = key(frame.time_ps, Phase::Arrival);
        slot.len = frame.len;
        slot.ttl = frame.ttl;
        slot.ecn = frame.ecn;
        slot.control = frame.control;
        if frame.trimmed != 0 {
            slot.set_trimmed(frame.trimmed);
        }
        (slot.place, slot.kind) = (port.place, port.kind);
        Ok((self.pfc.is_none() || frame.control).then_some(port.channel.into()))
    }

    /// Whether a frame at its destination's switch is held for reordering before port `number`.
    #[inline]
    fn has_to_wait(&mut self, index: u32, slot: &Slot, number: u32) -> Result<bool, Cause> {
        if slot.control {
            return Ok(false);
        }
        let Some(state) = self.states.get(slot.place as usize).and_then(Option::as_deref) else { return Ok(false) };
        let waits = self.reorder.joins(index, slot, number, state, self.pfc.as_mut());
        if waits.is_err() {
            let place = self.place(number);
            self.ports[place].counters.drops_queue.add(1);
        }
        waits
    }

    pub(super) fn check_reorder_queue(&mut self, switch: u32, queue: u32, now_ps: u64) {
        let state = self.states.get(switch as usize).and_then(Option::as_deref);
        self.reorder.expire(switch, queue, state, now_ps);
    }

    /// Starts a port's first data frame, if it is due; returns its event and the time of arrival.
    pub(super) fn leaves(&mut self, number: u32, now_ps: u64) -> Option<(u32, u64)> {
        let port = &mut self.ports[number as usize];
        let (event, len) = self.pfc.as_mut()?.leaves(number, port, now_ps)?;
        let there_ps = now_ps + port.config.latency_ps;
        if let Some(bins) = self.bins.get_mut(number as usize) {
            bins.reach(now_ps);
            bins.left(now_ps, len);
        }
        Some((event, there_ps))
    }

    pub(super) fn signalled(&mut self, kind: Kind, number: u32, now_ps: u64) {
        let Some(pfc) = &mut self.pfc else { return };
        match kind {
            Kind::Pause => pfc.pause(number, &mut self.ports[number as usize], now_ps),
            Kind::Resume => pfc.resume(number, &mut self.ports[number as usize], now_ps),
            _ => pfc.watch(&self.ports, now_ps),
        }
    }

    #[inline]
    pub(super) fn signal(&mut self) -> Option<Signal> {
        self.pfc.as_mut()?.signals.pop()
    }

    #[inline]
    pub(super) fn left_host(&mut self, event: u32, port: u32) {
        if let Some(pfc) = &mut self.pfc {
            pfc.set_ingress(event, port);
        }
    }

    /// Number of frames held at ports or in reordering queues, without scheduled events.
    pub(super) fn frames_held(&self) -> u64 {
        self.pfc.as_ref().map_or(0, Pfc::frames) + self.reorder.frames
    }

    /// Marks a frame at the far end of a cable, if that was deferred; returns whether it did.
    //= docs/specs/switch.md#SW-19 marking as a frame leaves
    #[inline]
    pub(super) fn settle(&mut self, index: u32, slot: &mut Slot) -> bool {
        let Some(entry) = self.unsettled.get_mut(index as usize) else { return false };
        let Some(Unsettled { port: number, place }) = entry.take() else { return false };
        let at = self.place(number);
        let port = &mut self.ports[at];
        let left_ps = time_ps(slot.key) - port.config.latency_ps;
        let behind = port.rare().departures.behind(place, left_ps);
        let random = port::share(slot.random, left_ps, number, self.common.spec.seed) as u32;
        let marks = port.config.mark(&mut slot.ecn, behind, random, &port.counters);
        if marks {
            note(&mut self.bins, at, &Transit { flags: MARKED, ..Transit::at(left_ps) });
        }
        marks
    }

    #[inline]
    pub(super) fn leaves_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Departure time of a frame that has yet to be marked.
    pub(super) fn unsettled_until_ps(&self, index: u32, slot: &Slot) -> Option<u64> {
        let Unsettled { port, .. } = self.unsettled.get(index as usize).copied().flatten()?;
        Some(time_ps(slot.key) - self.ports[self.place(port)].config.latency_ps)
    }

    /// `reply` = against the direction of the connection's data.
    #[inline]
    pub(super) fn begin_trail(
        &mut self,
        index: u32,
        entry: u32,
        reply: bool,
        fields: impl FnOnce() -> (Key, PacketFields),
    ) {
        if self.common.uses_trail {
            let (key, fields) = fields();
            self.trail.begin(entry, reply, &key, &fields);
            self.keep_trail(index);
        }
    }

    pub(super) fn keep_trail(&mut self, index: u32) {
        set(&mut self.trails, index, self.trail.words());
    }

    /// Returns the egress port of a frame, and updates its trail.
    #[inline]
    fn find(&mut self, index: u32, slot: &mut Slot) -> Option<u32> {
        if !self.common.uses_trail || !self.routes_by_trail(slot.place) {
            let choice = self.choose(slot)?;
            slot.detour = choice.detour;
            return Some(choice.port);
        }
        self.trail.resume(self.trails[index as usize]);
        let mut frame = Frame { switch: slot.place, ..frame(slot, self.common.trimmed_len) };
        let port = scheme::route_by_trail(self, &mut frame, slot.to).ok()?;
        slot.detour = frame.detour;
        self.keep_trail(index);
        Some(port)
    }

    fn routes_by_trail(&self, switch: u32) -> bool {
        self.common.routes.switch(switch).is_some_and(|config| Scheme::from_number(config.scheme).uses_trail())
    }

    #[inline]
    fn choose(&self, slot: &Slot) -> Option<Choice> {
        let arrival = Arrival {
            t_ps: time_ps(slot.key),
            flow: slot.flow,
            switch: slot.place,
            host: slot.to,
            checksum: slot.random,
            control: slot.control,
            detour: slot.detour,
        };
        scheme::choose(self, &arrival)
    }

    /// Chooses the port of a frame before it arrives, if the scheme is stateless; returns a value
    /// that depends on the memory to prefetch.
    #[inline]
    pub(super) fn choose_early(&self, slot: &mut Slot) -> u64 {
        let Some(switch) = self.common.routes.switch(slot.place) else { return 0 };
        if !Scheme::from_number(switch.scheme).is_stateless() {
            return self
                .common
                .routes
                .group(time_ps(slot.key), slot.place, slot.to)
                .map_or(0, |group| u64::from(group.first));
        }
        let Some(Choice { port: number, .. }) = self.choose(slot) else { return 0 };
        (slot.kind, slot.place) = (Kind::AtPort, number);
        let port = &self.ports[self.place(number)];
        port.queues.total.busy_until_ps() ^ port.config.latency_ps ^ port.config.states[0].ps_per_unit
    }

    /// Reads a host's link, so that it is in the cache.
    #[inline]
    pub(super) fn touch_uplink(&self, uplink: &Uplink) -> u64 {
        let port = &self.ports[uplink.port as usize];
        uplink.link.free_ps() ^ port.counters.frames.get() ^ port.config.states[0].flags
    }

    /// Applies losses and counters of a host's link; its queue and rate are in the [`Uplink`].
    #[inline]
    pub(super) fn leave_host(
        &mut self,
        uplink: &Uplink,
        now_ps: u64,
        len: u32,
        data: bool,
        random: u32,
    ) -> Result<(), Cause> {
        let entry = &mut self.ports[uplink.port as usize];
        if entry.config.states[0].is_healthy() {
            entry.counters.frames.add(1);
            entry.counters.bytes.add(u64::from(len));
            return Ok(());
        }
        entry.lose_periodically(now_ps, data)?;
        let random = port::share(random, now_ps, uplink.number, self.common.spec.seed);
        entry.config.traverse_link(now_ps, len, data, random, &entry.counters)
    }

    /// Returns the next notice of switch `at`, and a host of the switch that it is for.
    #[inline]
    pub(super) fn poll_notice(&self, at: u32) -> Option<(u32, Notice)> {
        if self.common.first_host.is_empty() {
            return None;
        }
        let notice = scheme::poll(self, at)?;
        Some((*self.common.first_host.get(notice.to as usize)?, notice))
    }

    pub(super) fn begin_notice(&mut self, index: u32, entry: u32, notice: &Notice) {
        self.trail.begin_notice(entry, notice.note, notice.flow, notice.more);
        self.keep_trail(index);
    }

    /// Whether a notice has reached its destination switch; if so, the switch processes it.
    pub(super) fn receive_notice(&mut self, index: u32, slot: &Slot) -> bool {
        let is_there = self.common.first_host.get(slot.place as usize) == Some(&slot.to);
        if is_there {
            self.trail.resume(self.trails[index as usize]);
            let mut frame = Frame { switch: slot.place, ..frame(slot, self.common.trimmed_len) };
            let _port = scheme::route_by_trail(self, &mut frame, slot.to);
        }
        is_there
    }
}

fn note(bins: &mut [PortBins<Cell<u64>>], place: usize, transit: &Transit) {
    if let Some(bins) = bins.get_mut(place) {
        bins.reach(transit.arrived_ps.max(transit.departed_ps));
        bins.record(transit);
    }
}

pub(super) fn frame(slot: &Slot, trimmed_len: u16) -> Frame {
    Frame {
        switch: 0,
        port: 0,
        flow: slot.flow,
        checksum: slot.random,
        time_ps: time_ps(slot.key),
        len: slot.len,
        ttl: slot.ttl,
        ecn: slot.ecn,
        control: slot.control,
        trimmed: 0,
        trimmed_len: if slot.is_trimmable() { trimmed_len } else { 0 },
        emulated: true,
        detour: slot.detour,
    }
}

impl Routes for Switches<'_> {
    #[inline]
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.common.routes.switch(switch)
    }
    #[inline]
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        self.common.routes.group(t_ps, switch, host)
    }
    #[inline]
    fn member(&self, index: u32) -> Option<u32> {
        self.common.routes.member(index)
    }
}

impl InMemory for Switches<'_> {}

impl Forwarding for Switches<'_> {
    type Word = LocalWord;
    type TrailWord = Cell<u64>;
    #[inline]
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        self.states.get(switch as usize)?.as_deref()
    }
    #[inline]
    fn trail(&self) -> Option<&Trail> {
        Some(&self.trail)
    }
    #[inline]
    fn word(&self, index: u32) -> Option<&LocalWord> {
        self.common.words.get(index as usize)
    }
    #[inline]
    fn queue_state(&self, port: u32, t_ps: u64) -> Option<QueueState> {
        let port = self.ports.get(self.place(port))?;
        Some(port.queue_state(t_ps))
    }
}
