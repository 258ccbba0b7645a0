//! The loop: takes events in order and lets hosts and switches act.

mod pulls;

use std::collections::VecDeque;
use std::hint::black_box;

use spray_core::flow::{Arrival, Transmit};
use spray_core::link::HostLink;
use spray_core::rng::stream;
use spray_pipeline::hash;
use spray_wire::{self as wire, Data, ProbeAck};

use super::arena::{Arena, Control, Kind, Slot, Turn, flags, key, time_ps};
use super::calendar::Calendar;
use super::hosts::{Connection, End, Ends, Host, Log, NO_PULLS, addresses};
use super::sample::Sampler;
use super::spec::{FlowOutcome, PortOutcome, SimError, SimOutcome, SimSpec, Start, Trigger};
use super::tables::Switches;
use spray_fabric::Ancestors;

/// A run under way.
pub(super) struct Engine<'a> {
    spec: &'a SimSpec<'a>,
    now_ps: u64,
    queue: Calendar,
    arena: Arena,
    pub(super) switches: Switches,
    pub(super) hosts: Vec<Host>,
    pub(super) connections: Vec<Connection>,
    outcomes: Vec<FlowOutcome>,
    log: Log,
    triggers: Vec<Waiting>,
    sampler: Sampler,
    /// Which paths there are, once a balancer wants to know.
    ancestors: Option<Ancestors<'a>>,
    /// When a link changes or a sample is due.
    next_special_ps: u64,
    /// Flows that neither ended nor failed.
    open: usize,
    pub(super) frames_sent: u64,
    pub(super) frames_delivered: u64,
}

/// A trigger, and the flows that wait for it, the next one last.
struct Waiting {
    kind: Trigger,
    pulls: u32,
    flows: Vec<u32>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(spec: &'a SimSpec<'a>) -> Result<Self, SimError> {
        check(spec)?;
        let switches = Switches::new(spec);
        let hosts: Vec<_> = (0..spec.network.hosts.len()).map(|host| host_of(spec, &switches, host)).collect();
        let connections: Vec<_> = spec.flows.iter().map(|flow| connection(flow.src, flow.dst)).collect();
        let fastest = hosts.iter().map(|host| switches.ports[host.port as usize].rate_bps).max().unwrap_or(1);
        let (shift, cells) = geometry(hosts.len(), fastest);
        let mut engine = Self {
            spec,
            now_ps: 0,
            queue: Calendar::new(shift, cells),
            arena: Arena::new(),
            next_special_ps: 0,
            sampler: Sampler::new(spec, switches.ports.len()),
            ancestors: None,
            switches,
            hosts,
            connections,
            outcomes: vec![FlowOutcome::default(); spec.flows.len()],
            log: Log::default(),
            triggers: spec.triggers.iter().map(|kind| Waiting { kind: *kind, pulls: 0, flows: Vec::new() }).collect(),
            open: spec.flows.len(),
            frames_sent: 0,
            frames_delivered: 0,
        };
        for (flow, setting) in spec.flows.iter().enumerate() {
            match setting.start {
                Start::At(at_ps) => engine.schedule(at_ps, Turn::Start, Kind::Start, flow as u32),
                Start::On(trigger) => engine.triggers[trigger].flows.push(flow as u32),
            }
        }
        engine.triggers.iter_mut().for_each(|waiting| waiting.flows.reverse());
        Ok(engine)
    }

    /// Runs to the end, and says what was found.
    pub(super) fn run(mut self) -> SimOutcome {
        self.special(0);
        let mut fetched = 0;
        while self.open > 0
            && let Some((key, slot)) = self.queue.pop()
        {
            if fetched == 0 {
                fetched = FETCH;
                self.fetch();
            }
            fetched -= 1;
            self.now_ps = time_ps(key);
            if self.now_ps >= self.next_special_ps && !self.special_until(self.now_ps) {
                self.queue.insert(key, slot);
                break;
            }
            self.handle(slot);
        }
        self.outcome()
    }

    /// Has the cache fetch what the next events will touch: of all of them at once, while one after another would wait.
    #[inline]
    fn fetch(&self) {
        let next = || self.queue.upcoming(FETCH).map(|slot| &self.arena.slots[slot as usize]);
        black_box(next().fold(0, |sum, slot| sum ^ slot.key));
        let mut sum = 0;
        for slot in next() {
            sum ^= match slot.kind {
                Kind::AtSwitch => self.switches.touch(slot),
                Kind::AtHost => self.touch_connection(slot),
                Kind::Transmit => self.touch_host(slot.place),
                _ => 0,
            };
        }
        black_box(sum);
    }

    #[inline]
    fn touch_connection(&self, slot: &Slot) -> u64 {
        let Some(ends) = self.connections[slot.connection as usize].ends.as_deref() else { return 0 };
        if slot.control && !slot.trimmed {
            let (cumulative, more) = self.arena.touch(slot);
            more ^ touch_sender(ends) ^ u64::from(ends.sender.is_outstanding(cumulative.wrapping_sub(1)))
        } else {
            let receiver = &ends.receiver;
            receiver.max_data() ^ receiver.stats().packets ^ u64::from(receiver.has_received(slot.psn))
        }
    }

    #[inline]
    fn touch_host(&self, host: u32) -> u64 {
        let host = &self.hosts[host as usize];
        let connection = host.ready.front().map(|connection| &self.connections[*connection as usize]);
        let ends = connection.and_then(|connection| connection.ends.as_deref());
        host.link.free_ps() ^ ends.map_or(0, touch_sender)
    }

    #[inline]
    fn handle(&mut self, index: u32) {
        let slot = &mut self.arena.slots[index as usize];
        match slot.kind {
            Kind::AtSwitch => match self.switches.forward(slot) {
                Ok(()) => self.queue.insert(slot.key, index),
                Err(_) => self.arena.lose(index),
            },
            Kind::AtHost => self.arrive(index),
            Kind::Transmit => {
                let host = slot.place;
                self.arena.give_back(index);
                self.hosts[host as usize].armed = false;
                self.turn(host);
            }
            Kind::SenderTimer => self.sender_timer(index),
            Kind::ReceiverTimer => self.receiver_timer(index),
            Kind::Pull => {
                let host = slot.place;
                self.arena.give_back(index);
                self.pull_due(host);
            }
            Kind::Start => {
                let flow = slot.connection;
                self.arena.give_back(index);
                self.start(flow);
            }
            Kind::Free => {}
        }
    }

    /// A frame reaches its host.
    #[inline]
    fn arrive(&mut self, index: u32) {
        let slot = self.arena.slots[index as usize];
        self.arena.give_back(index);
        self.frames_delivered += 1;
        if slot.control && !slot.trimmed {
            self.control_arrives(&slot);
        } else {
            self.data_arrives(&slot);
        }
    }

    #[inline]
    fn data_arrives(&mut self, slot: &Slot) {
        let connection = slot.connection;
        let entry = &mut self.connections[connection as usize];
        let Some(ends) = entry.ends.as_deref_mut() else { return };
        let (hops, marked) = (wire::INITIAL_TTL - slot.ttl, slot.ecn == ECN_CE);
        let data = slot.data(entry.message_bytes, entry.payload_bytes);
        let arrival = Arrival { data, port: slot.port, marked, hops, trimmed: slot.trimmed };
        if ends.on_data(self.now_ps, &arrival) {
            self.received(connection);
        }
        if slot.trimmed {
            self.wants_credit(connection);
        }
        self.after_receiver(connection);
    }

    #[inline]
    fn control_arrives(&mut self, slot: &Slot) {
        let (now_ps, connection) = (self.now_ps, slot.connection);
        let control = self.arena.drop_control(slot);
        let Some(ends) = self.connections[connection as usize].ends.as_deref_mut() else { return };
        self.log.flow = connection;
        match control {
            Control::Ack(ack) => ends.sender.on_ack(now_ps, ack, &mut self.log),
            Control::Nack(nack) => ends.sender.on_nack(now_ps, nack, &mut self.log),
            Control::ProbeAck(answer) => ends.sender.on_probe_ack(now_ps, answer, &mut self.log),
            Control::Pull(pull) => ends.sender.on_pull(now_ps, pull),
            Control::PullRequest(request) => {
                let request = *request;
                return self.pull_request_arrives(connection, request);
            }
            Control::Probe(probe) => {
                let (hops, marked) = (wire::INITIAL_TTL - slot.ttl, slot.ecn == ECN_CE);
                let (token, timestamp_ps) = (probe.token, probe.timestamp_ps);
                let answer = ProbeAck { token, timestamp_ps, ev: slot.port, hops, marked };
                return self.send_control(connection, 1, slot.port, self.spec.frames.probe, Control::ProbeAck(answer));
            }
        }
        self.after_sender(connection);
    }

    /// Everything that may follow from an event of a receiver.
    #[inline]
    fn after_receiver(&mut self, connection: u32) {
        let frames = self.spec.frames;
        while let Some(nack) = self.ends(connection).and_then(|ends| ends.receiver.poll_nack()) {
            self.send_control(connection, 1, nack.ev, frames.nack, Control::Nack(nack));
        }
        while let Some(ack) = self.ends(connection).and_then(|ends| ends.receiver.poll_ack()) {
            self.send_control(connection, 1, ack.ev, frames.ack + ack.echoes.bytes() as u32, Control::Ack(ack));
        }
        let Some(at_ps) = self.ends(connection).and_then(|ends| ends.receiver.poll_timeout()) else { return };
        if at_ps < self.connections[connection as usize].receiver_timer_ps {
            self.connections[connection as usize].receiver_timer_ps = at_ps;
            self.schedule(at_ps, Turn::Timer, Kind::ReceiverTimer, connection);
        }
    }

    /// Everything that may follow from an event of a sender.
    #[inline]
    fn after_sender(&mut self, connection: u32) {
        let Some(ends) = self.ends(connection) else { return };
        match ends.poll_end() {
            End::None => {}
            End::Delivered => return self.delivered(connection),
            End::Failed => return self.failed(connection),
        }
        let entry = &mut self.connections[connection as usize];
        let host = entry.src;
        if !std::mem::replace(&mut entry.ready, true) {
            self.hosts[host as usize].ready.push_back(connection);
        }
        self.arm_sender(connection);
        if !self.hosts[host as usize].armed {
            self.turn(host);
        }
    }

    /// Makes sure that the sender's timer is among the events in time.
    #[inline]
    fn arm_sender(&mut self, connection: u32) {
        let now_ps = self.now_ps;
        let entry = &mut self.connections[connection as usize];
        let Some(ends) = entry.ends.as_deref() else { return };
        let Some(at_ps) = ends.sender.poll_timeout() else { return };
        if at_ps >= entry.sender_timer_ps {
            return;
        }
        let at_ps = match at_ps {
            // What it is due for is a turn to send, which it waits for, or nothing that can be done yet.
            due if due <= now_ps && entry.ready => return,
            due if due <= now_ps => now_ps + STUCK_PS,
            later => later,
        };
        if at_ps < entry.sender_timer_ps {
            entry.sender_timer_ps = at_ps;
            self.schedule(at_ps, Turn::Timer, Kind::SenderTimer, connection);
        }
    }

    /// A host's link may be free: sends the next data packet, and asks for another turn.
    fn turn(&mut self, host: u32) {
        let now_ps = self.now_ps;
        let free_ps = self.hosts[host as usize].link.free_ps();
        if free_ps <= now_ps {
            self.transmit(host);
        }
        let entry = &mut self.hosts[host as usize];
        if !entry.ready.is_empty() && !entry.armed {
            entry.armed = true;
            let at_ps = entry.link.free_ps().max(now_ps);
            let slot = Slot { key: key(at_ps, Turn::Transmit), kind: Kind::Transmit, place: host, ..Slot::EMPTY };
            self.insert(slot);
        }
    }

    /// Sends the next data packet of the connections whose turn it is.
    #[inline]
    fn transmit(&mut self, host: u32) {
        let now_ps = self.now_ps;
        while let Some(connection) = self.hosts[host as usize].ready.pop_front() {
            let entry = &mut self.connections[connection as usize];
            let Some(ends) = entry.ends.as_deref_mut() else {
                entry.ready = false;
                continue;
            };
            self.log.flow = connection;
            let rng = &mut self.hosts[host as usize].rng;
            let transmit = ends.sender.poll_transmit(now_ps, rng, &mut self.log);
            entry.ready = transmit.is_some();
            let evs = entry.evs;
            if transmit.is_some() {
                self.hosts[host as usize].ready.push_back(connection);
            }
            if transmit.is_none() || self.connections[connection as usize].sender_timer_ps == u64::MAX {
                // After a packet the deadline is no earlier than before it, unless there was none.
                self.arm_sender(connection);
            }
            match transmit {
                None => {}
                Some(Transmit::Probe { probe, ev }) => {
                    let port = wire::ev_port(ev, evs);
                    self.send_control(connection, 0, port, self.spec.frames.probe, Control::Probe(probe));
                }
                Some(Transmit::PullRequest { request, ev }) => {
                    let port = wire::ev_port(ev, evs);
                    self.send_control(
                        connection,
                        0,
                        port,
                        self.spec.frames.pull_request,
                        Control::PullRequest(request),
                    );
                }
                Some(Transmit::Data { data, ev }) => {
                    return self.send_data(connection, wire::ev_port(ev, evs), &data);
                }
            }
        }
    }

    #[inline]
    fn send_data(&mut self, connection: u32, port: u16, data: &Data) {
        let len = u32::from(data.payload_bytes) + self.connections[connection as usize].header_bytes;
        let Some(start) = self.leave(connection, 0, port, len) else { return };
        self.insert(Slot {
            sent_ps: data.timestamp_ps,
            psn: data.psn,
            payload_bytes: data.payload_bytes,
            ecn: ECN_ECT0,
            control: false,
            section: data.section.to_bits(),
            flags: flags(data),
            ..start
        });
    }

    /// Sends a frame of the control class, with data (0) or against it (1).
    #[inline]
    fn send_control(&mut self, connection: u32, way: usize, port: u16, len: u32, control: Control) {
        let Some(start) = self.leave(connection, way, port, len) else { return };
        let psn = self.arena.keep(control);
        self.insert(Slot { psn, ..start });
    }

    /// Puts a frame on its host's link, behind the one in progress; returns its arrival at the first switch, unless the link
    /// loses it.
    #[inline]
    fn leave(&mut self, connection: u32, way: usize, port: u16, len: u32) -> Option<Slot> {
        let entry = &self.connections[connection as usize];
        let (from, to) = if way == 0 { (entry.src, entry.dst) } else { (entry.dst, entry.src) };
        let addresses = entry.addresses[way];
        let host = &mut self.hosts[from as usize];
        let at_ps = host.link.send(self.now_ps, u64::from(len));
        let (link, switch) = (host.port, host.switch);
        self.frames_sent += 1;
        let random = self.frames_sent as u32;
        self.switches.leave_host(link, self.now_ps, len, random).ok()?;
        Some(Slot {
            key: key(at_ps, Turn::Arrival),
            flow: hash::flow(addresses, u32::from(port) << 16 | u32::from(wire::UDP_PORT)),
            random,
            connection,
            to,
            len,
            port,
            ttl: wire::INITIAL_TTL,
            control: true,
            kind: Kind::AtSwitch,
            place: switch,
            ..Slot::EMPTY
        })
    }

    fn sender_timer(&mut self, index: u32) {
        let (connection, at_ps) = self.timer(index);
        let entry = &mut self.connections[connection as usize];
        if entry.sender_timer_ps != at_ps {
            return;
        }
        entry.sender_timer_ps = u64::MAX;
        let Some(ends) = entry.ends.as_deref_mut() else { return };
        self.log.flow = connection;
        if ends.sender.poll_timeout().is_some_and(|due_ps| due_ps <= at_ps) {
            ends.sender.on_timeout(at_ps, &mut self.log);
            self.after_sender(connection);
        } else {
            self.arm_sender(connection);
        }
    }

    fn receiver_timer(&mut self, index: u32) {
        let (connection, at_ps) = self.timer(index);
        let entry = &mut self.connections[connection as usize];
        if entry.receiver_timer_ps != at_ps {
            return;
        }
        entry.receiver_timer_ps = u64::MAX;
        let Some(ends) = entry.ends.as_deref_mut() else { return };
        ends.receiver.on_timeout(at_ps);
        self.after_receiver(connection);
    }

    fn timer(&mut self, index: u32) -> (u32, u64) {
        let slot = &self.arena.slots[index as usize];
        let (connection, at_ps) = (slot.connection, time_ps(slot.key));
        self.arena.give_back(index);
        (connection, at_ps)
    }

    fn start(&mut self, flow: u32) {
        let setting = &self.spec.flows[flow as usize];
        let mut config = (self.spec.flow_config)(setting.src, setting.dst);
        config.path.seed = setting.path_seed;
        let ends = Ends::new(&config, setting.bytes, &mut self.hosts[setting.src].rng);
        let entry = &mut self.connections[flow as usize];
        entry.header_bytes = config.header_bytes;
        entry.payload_bytes = u64::from(config.sanitised().payload_bytes);
        entry.message_bytes = setting.bytes;
        entry.evs = config.path.evs;
        entry.ends = Some(Box::new(ends));
        self.outcomes[flow as usize].started_ps = Some(self.now_ps);
        if config.path.balancer.wants_reachability() {
            self.tell(self.now_ps, flow as usize);
        }
        self.after_sender(flow);
    }

    /// The receiver has every byte.
    fn received(&mut self, flow: u32) {
        self.outcomes[flow as usize].received_ps = Some(self.now_ps);
        if let Some(trigger) = self.spec.flows[flow as usize].on_received {
            self.pull(trigger);
        }
    }

    /// The sender has every acknowledgement, so that the receiver has every byte.
    fn delivered(&mut self, flow: u32) {
        self.outcomes[flow as usize].acked_ps = Some(self.now_ps);
        self.end(flow);
        if let Some(trigger) = self.spec.flows[flow as usize].on_sent {
            self.pull(trigger);
        }
    }

    fn failed(&mut self, flow: u32) {
        self.outcomes[flow as usize].failed = true;
        self.end(flow);
    }

    /// Takes leave of a connection; frames that are still under way find nobody.
    fn end(&mut self, flow: u32) {
        self.end_pulls(flow);
        if let Some(ends) = self.connections[flow as usize].ends.take() {
            let outcome = &mut self.outcomes[flow as usize];
            (outcome.sender, outcome.receiver) = (*ends.sender.stats(), *ends.receiver.stats());
            self.sampler.on_end(outcome.receiver.bytes);
        }
        self.open -= 1;
    }

    fn pull(&mut self, trigger: usize) {
        let waiting = &mut self.triggers[trigger];
        waiting.pulls += 1;
        let starts = match waiting.kind {
            Trigger::Oneshot if waiting.pulls == 1 => waiting.flows.len(),
            Trigger::Barrier(count) if waiting.pulls == count => waiting.flows.len(),
            Trigger::Multishot => waiting.flows.len().min(1),
            Trigger::Oneshot | Trigger::Barrier(_) => 0,
        };
        for _ in 0..starts {
            if let Some(flow) = self.triggers[trigger].flows.pop() {
                self.schedule(self.now_ps, Turn::Start, Kind::Start, flow);
            }
        }
    }

    /// Does what is due at certain times up to `now_ps`; `false` when the run's time is over.
    #[cold]
    fn special_until(&mut self, now_ps: u64) -> bool {
        while self.next_special_ps <= now_ps {
            if self.next_special_ps >= self.spec.until_ps {
                self.now_ps = self.spec.until_ps;
                return false;
            }
            self.special(self.next_special_ps);
        }
        true
    }

    /// Tells a connection which paths there are by the routes in force.
    //= docs/specs/host-dr.md#HDR-3
    fn tell(&mut self, now_ps: u64, connection: usize) {
        let spec = self.spec;
        let ancestors = self.ancestors.get_or_insert_with(|| Ancestors::new(spec.network, spec.events, spec.seed));
        let entry = &mut self.connections[connection];
        let (src, dst) = (entry.src as usize, entry.dst as usize);
        let paths = ancestors.paths(now_ps, src, dst, entry.addresses[0], entry.evs);
        if let Some(ends) = entry.ends.as_deref_mut() {
            ends.sender.on_reachable(now_ps, &paths);
        }
    }

    /// Tells all connections when routing changes, if any has wanted to know.
    fn tell_all(&mut self, at_ps: u64) {
        let reroutes = self.ancestors.as_ref().is_some_and(|known| known.epoch_starts().contains(&at_ps));
        if reroutes {
            self.now_ps = at_ps;
            let open = |flow: &usize| self.connections[*flow].ends.is_some();
            let open: Vec<usize> = (0..self.connections.len()).filter(open).collect();
            open.into_iter().for_each(|flow| self.tell(at_ps, flow));
        }
    }

    fn special(&mut self, at_ps: u64) {
        for (port, state) in self.switches.change(at_ps) {
            if let Some(host) = (port as usize).checked_sub(self.switches.ports.len() - self.hosts.len()) {
                let rate = u128::from(self.switches.ports[port as usize].rate_bps) * u128::from(state.rate_ppm);
                self.hosts[host].link.set_rate((rate / 1_000_000) as u64);
            }
        }
        self.tell_all(at_ps);
        self.sampler.look(at_ps, &self.switches, &self.hosts, &self.connections);
        self.next_special_ps =
            self.switches.next_change_ps().min(self.sampler.next_ps()).min(self.spec.until_ps.max(at_ps + 1));
    }

    #[inline]
    fn ends(&mut self, connection: u32) -> Option<&mut Ends> {
        self.connections[connection as usize].ends.as_deref_mut()
    }

    fn schedule(&mut self, at_ps: u64, turn: Turn, kind: Kind, connection: u32) {
        self.insert(Slot { key: key(at_ps, turn), kind, connection, ..Slot::EMPTY });
    }

    #[inline]
    fn insert(&mut self, slot: Slot) {
        let key = slot.key;
        let index = self.arena.take(slot);
        self.queue.insert(key, index);
    }

    /// Gathers the figures, and asserts that no frame got lost in the simulator itself.
    fn outcome(mut self) -> SimOutcome {
        let mut frames_in_flight = 0;
        while let Some((_, slot)) = self.queue.pop() {
            frames_in_flight += u64::from(self.arena.slots[slot as usize].is_frame());
        }
        for (entry, outcome) in self.connections.iter().zip(&mut self.outcomes) {
            if let Some(ends) = &entry.ends {
                (outcome.sender, outcome.receiver) = (*ends.sender.stats(), *ends.receiver.stats());
            }
        }
        let ports = self.switches.outcome(self.spec.network, &self.sampler);
        let crossed: u64 = ports.iter().map(|port| port.counters.frames).sum();
        let dropped: u64 = ports.iter().map(dropped).sum::<u64>() + self.switches.no_route;
        let ends = self.frames_delivered + dropped + frames_in_flight;
        assert_eq!(self.frames_sent, ends, "frames sent are delivered, dropped or in flight");
        let (samples, delivered) = self.sampler.finish();
        SimOutcome {
            flows: self.outcomes,
            ports,
            samples,
            delivered,
            events: self.log.events,
            end_ps: self.now_ps,
            packet_hops: crossed,
            frames_sent: self.frames_sent,
            frames_delivered: self.frames_delivered,
            frames_dropped: dropped,
            frames_in_flight,
        }
    }
}

/// Something of each part of a sender.
#[inline]
fn touch_sender(ends: &Ends) -> u64 {
    let sender = &ends.sender;
    sender.in_flight_bytes() ^ sender.window_bytes() ^ sender.next_psn() ^ sender.rtt().min_ps() ^ sender.stats().acks
}

fn dropped(port: &PortOutcome) -> u64 {
    let counters = &port.counters;
    counters.drops_queue + counters.drops_link() + counters.drops_random + counters.drops_ttl
}

fn check(spec: &SimSpec<'_>) -> Result<(), SimError> {
    let hosts = spec.network.hosts.len();
    let triggers = spec.triggers.len();
    for (flow, setting) in spec.flows.iter().enumerate() {
        if setting.src == setting.dst || setting.src >= hosts || setting.dst >= hosts {
            return Err(SimError::Hosts { flow, src: setting.src, dst: setting.dst, hosts });
        }
        let start = if let Start::On(trigger) = setting.start { Some(trigger) } else { None };
        for trigger in [start, setting.on_sent, setting.on_received].into_iter().flatten() {
            if trigger >= triggers {
                return Err(SimError::Trigger { flow, trigger, triggers });
            }
        }
    }
    Ok(())
}

fn host_of(spec: &SimSpec<'_>, switches: &Switches, host: usize) -> Host {
    let uplink = spec.network.uplink(host);
    let link = &spec.network.links[uplink];
    Host {
        link: HostLink::new(link.rate_bps, link.latency_ps),
        port: switches.port_of_link[uplink],
        switch: spec.network.leaf_of(host) as u32,
        ready: VecDeque::new(),
        armed: false,
        pulls: None,
        rng: stream(spec.seed, host as u64),
    }
}

fn connection(src: usize, dst: usize) -> Connection {
    Connection {
        src: src as u32,
        dst: dst as u32,
        addresses: [addresses(src, dst), addresses(dst, src)],
        header_bytes: 0,
        payload_bytes: 0,
        message_bytes: 0,
        evs: 1,
        ends: None,
        ready: false,
        sender_timer_ps: u64::MAX,
        receiver_timer_ps: u64::MAX,
        pull_entry: NO_PULLS,
    }
}

/// The calendar's cell width and number as powers of two: some hundred events a cell when every host is busy, more where the
/// calendar would not reach far enough.
fn geometry(hosts: usize, rate_bps: u64) -> (u32, u32) {
    // Nine events for each full packet of 4 KiB, in keys of a quarter ps.
    let packet_ps = 8_000_000_000_000u64 * 4096 / rate_bps.max(1);
    let width = (4 * packet_ps * EVENTS_PER_CELL / (9 * hosts as u64)).max((4 * REACH_PS) >> CELLS);
    (63 - width.leading_zeros(), CELLS)
}

/// Few enough for what is inserted into the present cell, many enough to sort fast and to look ahead.
const EVENTS_PER_CELL: u64 = 128;
/// Cells as a power of two.
const CELLS: u32 = 11;
/// The latency of a link, and a full queue: what is further ahead waits in a heap.
const REACH_PS: u64 = 12_000_000;
/// How many events' slots and bodies are fetched at a time: many enough for the fetches to overlap, few enough for the
/// first-level cache to keep them.
const FETCH: usize = 32;

const ECN_ECT0: u8 = wire::Ecn::Ect0 as u8;
const ECN_CE: u8 = wire::Ecn::Ce as u8;

/// A sender whose time has come but that has nothing to do or send is asked again after 1 us rather than at once, for ever.
const STUCK_PS: u64 = 1_000_000;
