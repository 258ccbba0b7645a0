//! The switches: their routes, and how a frame crosses one.

use std::cell::Cell;

use spray_pipeline::config::NEVER;
use spray_pipeline::flow_hash::Key;
use spray_pipeline::frame::Frame;
use spray_pipeline::routes::{Choice, Group, Routes, SwitchConfig};
use spray_pipeline::scheme::{self, Arrival, Entries, Forwarding, Waiting, reunion};
use spray_pipeline::trail::{self, Trail};
use spray_pipeline::word::Word;
use spray_pipeline::{Cause, port};
use spray_wire::switch_view::PacketFields;

use super::arena::{Kind, Slot, Turn, key, time_ps};
use super::hosts::Uplink;
use super::notices;
use super::pfc::{Pfc, Signal};
use super::port::Port;
use super::reorder::Reorder;
use super::shared::Shared;
use super::spec::{Deadlock, PortOutcome, SimSpec};
use spray_fabric::{Link, LinkChange, LinkState, Network, Node, RouteTable, Scheme, changes};

/// All switches of a network, and their state.
#[derive(Debug)]
pub(super) struct Switches {
    pub ports: Vec<Port>,
    routes: RouteTable,
    /// The switches' memory: pointers, and what schemes keep.
    words: Vec<Cell<u64>>,
    /// Whether some scheme remembers; then frames have trails.
    remembers: bool,
    /// That of the frame at hand.
    pub trail: Trail,
    /// By event that of its frame.
    pub trails: Vec<[u64; trail::WORDS]>,
    /// Frames that wait for others of their flow, at switches with ConWeave.
    pub reorder: Reorder,
    /// By switch its first host, where switches tell each other something.
    pub first_host: Vec<u32>,
    /// Changes of links, the next one last: (time, link, state).
    changes: Vec<(u64, usize, LinkState)>,
    /// Per link of the network its port; hosts' links come after all ports.
    pub port_of_link: Vec<u32>,
    seed: u64,
    pub trimmed_len: u16,
    pub no_route: u64,
    shared: Option<Shared>,
    pub pfc: Option<Pfc>,
    /// Per event the port that its frame has left without its mark; empty where frames are marked as they come.
    unsettled: Vec<Option<Unsettled>>,
}

/// A frame that has left a port without its mark.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    port: u32,
    /// See [`Departures::admit`].
    place: u64,
}

impl Switches {
    /// Compiles the tables. Hosts' own links follow the switches' ports, in the order of the hosts.
    pub(super) fn new(spec: &SimSpec<'_>) -> Self {
        let network = spec.network;
        let mut port_of_link = vec![0; network.links.len()];
        let queues = spec.queues();
        let mut ports = Vec::new();
        for (index, link) in network.links.iter().enumerate() {
            if let Node::Switch(switch) = link.from {
                port_of_link[index] = ports.len() as u32;
                let latency_ps = link.latency_ps + network.switches[switch].latency_ps;
                ports.push(Port::new(spec, link.to, link.rate_bps, latency_ps, &queues[index]));
            }
        }
        for host in 0..network.hosts.len() {
            let index = network.uplink(host);
            let link = &network.links[index];
            port_of_link[index] = ports.len() as u32;
            ports.push(Port::new(spec, link.to, link.rate_bps, link.latency_ps, &queues[index]));
        }
        let pfc = spec.pfc.map(|config| Pfc::new(spec, &config, &port_of_link, ports.len()));
        let routes = RouteTable::new(network, spec.events, spec.seed, |link| port_of_link[link]);
        let mut switches = Self {
            ports,
            remembers: (0..network.switches.len() as u32)
                .any(|switch| routes.switch(switch).is_some_and(|config| config.remembers != 0)),
            trail: Trail::default(),
            trails: Vec::new(),
            reorder: Reorder::default(),
            first_host: notices::first_hosts(network),
            words: routes.words().iter().copied().map(Cell::new).collect(),
            routes,
            changes: Vec::new(),
            port_of_link,
            seed: spec.seed,
            trimmed_len: spec.frames.trimmed.clamp(1, u32::from(u16::MAX)) as u16,
            no_route: 0,
            // With PFC memory is that of the links by which data comes.
            shared: if pfc.is_some() { None } else { Shared::new(spec.network, &queues) },
            pfc,
            unsettled: Vec::new(),
        };
        switches.add_changes(changes(spec.events, network.links.len()));
        switches
    }

    fn add_changes(&mut self, changes: Vec<Vec<LinkChange>>) {
        for (link, changes) in changes.into_iter().enumerate() {
            self.changes.extend(changes.into_iter().map(|change| (change.at_ps, link, change.state)));
        }
        self.changes.sort_by_key(|(at_ps, link, _)| std::cmp::Reverse((*at_ps, *link)));
    }

    /// When a link or the routing next changes.
    pub(super) fn next_change_ps(&self) -> u64 {
        let change = self.changes.last().map_or(NEVER, |(at_ps, ..)| *at_ps);
        change.min(self.routes.next_epoch_ps())
    }

    /// Applies what changes at or before `now_ps`; returns the ports that changed.
    pub(super) fn change(&mut self, now_ps: u64) -> Vec<(u32, LinkState)> {
        let mut changed = Vec::new();
        while let Some((at_ps, link, state)) = self.changes.pop_if(|(at_ps, ..)| *at_ps <= now_ps) {
            let port = self.port_of_link[link];
            self.ports[port as usize].change(at_ps, &state);
            changed.push((port, state));
        }
        self.routes.advance(now_ps);
        changed
    }

    /// Takes a frame through the switch at which it has arrived, and over the cable behind the port that it takes there; `false` if
    /// it waits there for as long as it has to.
    #[inline]
    pub(super) fn forward(&mut self, index: u32, slot: &mut Slot) -> Result<bool, Cause> {
        self.settle(index, slot);
        let number = match slot.kind {
            Kind::AtPort => slot.place,
            _ => {
                let number = self.find(index, slot).ok_or(Cause::NoRoute).inspect_err(|_| self.no_route += 1)?;
                if self.has_to_wait(index, slot, number)? {
                    return Ok(false);
                }
                number
            }
        };
        let limit = self.shared.as_ref().map(|shared| shared.limit(&self.ports, number, time_ps(slot.key)));
        let port = &mut self.ports[number as usize];
        let mut frame = frame(slot, self.trimmed_len);
        if !port.unchanged {
            port.lose_periodically(frame.time_ps, frame.is_trimmable())?;
        }
        let random = port::random(&frame, number, self.seed);
        let crossed = match &mut self.pfc {
            None => port.cross(&mut frame, random, limit.unwrap_or(port.config.limit)),
            Some(pfc) => pfc.cross(index, number, port, &mut frame, random),
        };
        if port.config.mark_departing != 0 {
            self.leave_unsettled(index, number, time_ps(slot.key), &frame, crossed);
        }
        crossed?;
        let port = &self.ports[number as usize];
        slot.key = key(frame.time_ps, Turn::Arrival);
        slot.len = frame.len;
        slot.ttl = frame.ttl;
        slot.ecn = frame.ecn;
        slot.control = frame.control;
        if frame.trimmed != 0 {
            slot.set_trimmed(frame.trimmed);
        }
        (slot.place, slot.kind) = (port.place, port.kind);
        Ok(self.pfc.is_none() || frame.control)
    }

    /// The first frame of data at a port may leave; returns its event, with the time at which it reaches the far end.
    pub(super) fn leaves(&mut self, number: u32, now_ps: u64) -> Option<(u32, u64)> {
        let port = &mut self.ports[number as usize];
        let event = self.pfc.as_mut()?.leaves(number, port, now_ps)?;
        Some((event, now_ps + port.config.latency_ps))
    }

    /// A pause or its end has come to the sender of a link, or it is time to look for deadlocks.
    pub(super) fn signalled(&mut self, kind: Kind, number: u32, now_ps: u64) {
        let Some(pfc) = &mut self.pfc else { return };
        match kind {
            Kind::Pause => pfc.pause(number, &mut self.ports[number as usize], now_ps),
            Kind::Resume => pfc.resume(number, &mut self.ports[number as usize], now_ps),
            _ => pfc.watch(&self.ports, now_ps),
        }
    }

    /// What has yet to be put among the events.
    #[inline]
    pub(super) fn signal(&mut self) -> Option<Signal> {
        self.pfc.as_mut()?.signals.pop()
    }

    /// The frame of this event has left its host.
    #[inline]
    pub(super) fn left_host(&mut self, event: u32, port: u32) {
        if let Some(pfc) = &mut self.pfc {
            pfc.comes_by(event, port);
        }
    }

    /// Frames that wait at ports without being among the events.
    pub(super) fn frames_held(&self) -> u64 {
        self.pfc.as_ref().map_or(0, Pfc::frames) + self.reorder.frames()
    }

    /// The first deadlock of paused links.
    pub(super) fn deadlock(&self, network: &Network) -> Option<Deadlock> {
        self.pfc.as_ref()?.deadlock(network, &self.port_of_link)
    }

    /// Notes that a frame has yet to be marked for the port that it came to at `came_ps`.
    fn leave_unsettled(&mut self, index: u32, number: u32, came_ps: u64, frame: &Frame, crossed: Result<(), Cause>) {
        // A frame that the link loses has used the queue all the same.
        if frame.control || !matches!(crossed, Ok(()) | Err(Cause::Random)) {
            return;
        }
        let port = &mut self.ports[number as usize];
        let place = port.departures.admit(came_ps, frame.len, port.config.latency_ps);
        if crossed.is_ok() {
            let index = index as usize;
            self.unsettled.resize(self.unsettled.len().max(index + 1), None);
            self.unsettled[index] = Some(Unsettled { port: number, place });
        }
    }

    /// Marks a frame that has come to the far end of a cable, if it has to be: for what it left behind at the near end.
    //= docs/specs/switch.md#SW-19 marking as a frame leaves
    #[inline]
    pub(super) fn settle(&mut self, index: u32, slot: &mut Slot) {
        let Some(entry) = self.unsettled.get_mut(index as usize) else { return };
        let Some(Unsettled { port: number, place }) = entry.take() else { return };
        let port = &mut self.ports[number as usize];
        let left_ps = time_ps(slot.key) - port.config.latency_ps;
        let behind = port.departures.behind(place, left_ps);
        let random = port::share(slot.random, left_ps, number, self.seed) as u32;
        port.config.mark(&mut slot.ecn, behind, random, &port.counters);
    }

    /// A frame leaves its host for the switch `entry`; a `reply` goes against its connection's data.
    #[inline]
    pub(super) fn begin_trail(
        &mut self,
        index: u32,
        (entry, reply): (u32, bool),
        told: impl FnOnce() -> (Key, PacketFields),
    ) {
        if self.remembers {
            let (key, fields) = told();
            self.trail.begin(entry, reply, &key, &fields);
            self.keep_trail(index);
        }
    }

    pub(super) fn keep_trail(&mut self, index: u32) {
        let index = index as usize;
        self.trails.resize(self.trails.len().max(index + 1), [0; trail::WORDS]);
        self.trails[index] = self.trail.words();
    }

    /// The port by which a frame leaves the switch that it is at; also notes in the frame what switches tell each other.
    #[inline]
    fn find(&mut self, index: u32, slot: &mut Slot) -> Option<u32> {
        if !self.remembers || !self.recalls(slot.place) {
            let choice = self.choose(slot)?;
            slot.detour = choice.detour;
            return Some(choice.port);
        }
        self.trail.resume(self.trails[index as usize]);
        let mut frame = Frame { switch: slot.place, ..frame(slot, self.trimmed_len) };
        let port = scheme::recall(self, &mut frame, slot.to).ok()?;
        slot.detour = frame.detour;
        self.keep_trail(index);
        Some(port)
    }

    fn recalls(&self, switch: u32) -> bool {
        self.routes.switch(switch).is_some_and(|config| Scheme::from_number(config.scheme).remembers())
    }

    /// Whether the scheme of a switch holds packets.
    #[inline]
    pub(super) fn holds(&self, switch: u32) -> bool {
        self.routes.switch(switch).is_some_and(|config| Scheme::from_number(config.scheme).holds())
    }

    /// How a frame that arrives at a switch leaves it.
    #[inline]
    fn choose(&self, slot: &Slot) -> Option<Choice> {
        let arrival = Arrival {
            t_ps: time_ps(slot.key),
            flow: slot.flow,
            switch: slot.place,
            host: slot.to,
            crc: slot.random,
            control: slot.control,
            detour: slot.detour,
        };
        scheme::choose(self, &arrival)
    }

    /// Chooses the port of a frame that is about to arrive at a switch, and returns something of it, for the cache to fetch it.
    ///
    /// Some schemes choose by the frame, its time, and the routes in force then: all are known before, and none can change. Where
    /// a scheme looks at queues or pointers, the choice is left to [`Switches::forward`].
    #[inline]
    pub(super) fn look_ahead(&self, slot: &mut Slot) -> u64 {
        let Some(switch) = self.routes.switch(slot.place) else { return 0 };
        if !Scheme::from_number(switch.scheme).is_stateless() {
            return self.routes.group(time_ps(slot.key), slot.place, slot.to).map_or(0, |group| u64::from(group.first));
        }
        let Some(Choice { port: number, .. }) = self.choose(slot) else { return 0 };
        (slot.kind, slot.place) = (Kind::AtPort, number);
        let port = &self.ports[number as usize];
        let [healthy, next, ..] = &port.config.states;
        port.queues.total.busy_until_ps() ^ port.config.latency_ps ^ healthy.ps_per_unit ^ next.at_ps
    }

    /// Something of a host's link, for the cache to fetch it.
    #[inline]
    pub(super) fn touch_uplink(&self, uplink: &Uplink) -> u64 {
        let port = &self.ports[uplink.port as usize];
        uplink.link.free_ps() ^ port.counters.frames.get() ^ u64::from(port.unchanged)
    }

    /// Takes a frame of `len` bytes, with data or not, out of a host: what the host's link does to it, its queue and its rate apart.
    #[inline]
    pub(super) fn leave_host(
        &mut self,
        port: u32,
        now_ps: u64,
        len: u32,
        data: bool,
        random: u32,
    ) -> Result<(), Cause> {
        let entry = &mut self.ports[port as usize];
        if entry.unchanged {
            entry.counters.frames.add(1);
            entry.counters.bytes.add(u64::from(len));
            return Ok(());
        }
        entry.lose_periodically(now_ps, data)?;
        let random = port::share(random, now_ps, port, self.seed);
        entry.config.carry(now_ps, len, data, random, &entry.counters)
    }

    /// How full the switches' tables of flows became, where they keep any.
    pub(super) fn entries(&self) -> Option<Entries> {
        Entries::of(self.configs(), |index| self.value(index))
    }

    /// What switches with Reunion did; `None` where none has it.
    pub(super) fn reunion(&self) -> Option<reunion::Counts> {
        reunion::Counts::of(self.configs(), |index| self.value(index))
    }

    fn configs(&self) -> impl Iterator<Item = &SwitchConfig> {
        (0..).map_while(|switch| self.routes.switch(switch))
    }

    fn value(&self, index: u32) -> u64 {
        self.words.get(index as usize).map_or(0, Cell::get)
    }

    /// The ports' figures, in the order of [`Switches::ports`], of a run from `start_ps` to `end_ps`.
    pub(super) fn outcome(&mut self, network: &Network, start_ps: u64, end_ps: u64) -> Vec<PortOutcome> {
        for port in &mut self.ports {
            port.thaw(end_ps);
        }
        let mut links = vec![0; self.ports.len()];
        let known = |link: &Link| !matches!((link.from, link.to), (Node::Host(_), Node::Host(_)));
        for (link, _) in network.links.iter().enumerate().filter(|(_, link)| known(link)) {
            links[self.port_of_link[link] as usize] = link;
        }
        let layers = network.layers();
        let outcome = |(port, link): (&Port, usize)| {
            let (name, layer) = (network.links[link].name.clone(), layers[link].clone());
            let counters = port.counters_until(end_ps);
            let queue_mean_bytes = counters.queue_mean_bytes(end_ps.saturating_sub(start_ps));
            let uplink = network.links[link].is_uplink();
            let number = self.port_of_link[link] as usize;
            let (pauses, paused_ps) = self.pfc.as_ref().map_or((0, 0), |pfc| pfc.pauses(number, port, end_ps));
            let rate_bps = port.rate_bps;
            PortOutcome { name, layer, uplink, rate_bps, counters, queue_mean_bytes, pauses, paused_ps }
        };
        self.ports.iter().zip(links).map(outcome).collect()
    }
}

/// The frame of an event, as ports see it.
pub(super) fn frame(slot: &Slot, trimmed_len: u16) -> Frame {
    Frame {
        switch: 0,
        port: 0,
        flow: slot.flow,
        crc: slot.random,
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

impl Routes for Switches {
    #[inline]
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.routes.switch(switch)
    }
    #[inline]
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        self.routes.group(t_ps, switch, host)
    }
    #[inline]
    fn member(&self, index: u32) -> Option<u32> {
        self.routes.member(index)
    }
}

impl Forwarding for Switches {
    type Word = Cell<u64>;
    type Note = Cell<u64>;
    #[inline]
    fn trail(&self) -> Option<&Trail> {
        Some(&self.trail)
    }
    #[inline]
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        self.words.get(index as usize)
    }
    #[inline]
    fn waiting(&self, port: u32, t_ps: u64) -> Option<Waiting> {
        let port = self.ports.get(port as usize)?;
        Some(port.waiting(t_ps))
    }
}
