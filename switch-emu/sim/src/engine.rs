//! The loop: takes events in order and lets hosts and switches act.

use std::hint::black_box;

use spray_core::flow::Arrival;
use spray_core::host::{Fate, Halves, Host, NEVER, Owner, Path};
use spray_core::rng::{Rng, stream};
use spray_fabric::Ancestors;
use spray_wire as wire;

use super::arena::{Arena, Kind, Slot, Turn, time_ps};
use super::hosts::Connection;
use super::net::Net;
use super::sample::Sampler;
use super::spec::{SimError, SimOutcome, SimSpec};

/// A run under way.
pub(super) struct Engine<'a> {
    spec: &'a SimSpec<'a>,
    now_ps: u64,
    net: Net<'a>,
    hosts: Vec<Host<Rng>>,
    /// By their numbers: one for each flow, in the order of the flows.
    connections: Vec<Connection>,
    sampler: Sampler,
    /// Which paths there are, once a balancer wants to know.
    ancestors: Option<Ancestors<'a>>,
    /// When a link changes or a sample is due.
    next_special_ps: u64,
    /// Flows that neither ended nor failed.
    open: usize,
    frames_delivered: u64,
}

impl<'a> Engine<'a> {
    pub(super) fn new(spec: &'a SimSpec<'a>) -> Result<Self, SimError> {
        spec.check()?;
        let net = Net::new(spec);
        let host = |(host, uplink): (usize, &super::hosts::Uplink)| {
            Host::new(net.switches.ports[uplink.port as usize].rate_bps, 0, stream(spec.seed, host as u64))
        };
        Ok(Self {
            spec,
            now_ps: 0,
            hosts: net.uplinks.iter().enumerate().map(host).collect(),
            connections: spec.flows.iter().map(|flow| Connection::new(flow.src, flow.dst, spec.v6)).collect(),
            sampler: Sampler::new(spec, net.switches.ports.len()),
            ancestors: None,
            next_special_ps: 0,
            open: spec.flows.len(),
            frames_delivered: 0,
            net,
        })
    }

    /// Runs to the end, and says what was found.
    pub(super) fn run(mut self) -> SimOutcome {
        self.special(0);
        let mut fetched = 0;
        while self.open > 0
            && let Some((key, slot)) = self.net.queue.pop()
        {
            if fetched == 0 {
                fetched = FETCH;
                self.fetch();
            }
            fetched -= 1;
            self.now_ps = time_ps(key);
            if self.now_ps >= self.next_special_ps && !self.special_until(self.now_ps) {
                self.net.queue.insert(key, slot);
                break;
            }
            self.handle(slot);
        }
        self.outcome()
    }

    /// Has the cache fetch what the next events will touch: of all of them at once, while one after another would wait.
    #[inline]
    fn fetch(&mut self) {
        let Self { connections, hosts, net: Net { queue, arena, switches, uplinks, .. }, .. } = self;
        let next = queue.upcoming(FETCH);
        black_box(next.clone().fold(0, |sum, index| sum ^ arena.slots[index as usize].key));
        let mut sum = 0;
        for index in next {
            let slot = &mut arena.slots[index as usize];
            let (kind, host) = (slot.kind, slot.place as usize);
            sum ^= match kind {
                Kind::AtSwitch => switches.look_ahead(slot),
                Kind::AtHost => switches.touch_uplink(&uplinks[host]) ^ touch_connection(connections, arena, index),
                Kind::Transmit => switches.touch_uplink(&uplinks[host]) ^ touch_turn(connections, &hosts[host]),
                _ => 0,
            };
        }
        black_box(sum);
    }

    #[inline]
    fn handle(&mut self, index: u32) {
        let slot = &mut self.net.arena.slots[index as usize];
        match slot.kind {
            Kind::AtSwitch if slot.is_notice() && self.net.switches.hear(index, slot) => {
                self.take(index);
                self.frames_delivered += 1;
            }
            Kind::AtSwitch | Kind::AtPort => {
                let at = slot.place;
                match self.net.switches.forward(index, slot) {
                    Ok(true) => self.net.queue.insert(slot.key, index),
                    Ok(false) => {}
                    Err(_) => self.net.arena.lose(index),
                }
                self.net.let_go(self.now_ps);
                self.net.insert_signals();
                self.net.send_notices(self.now_ps, at);
            }
            Kind::Leaves => {
                let port = self.take(index).place;
                self.net.leaves(self.now_ps, port);
            }
            Kind::Pause | Kind::Resume | Kind::Watch => self.signalled(index),
            Kind::LetGo => {
                let Slot { place: switch, connection: queue, .. } = self.take(index);
                self.net.switches.look_at_queue(switch, queue, self.now_ps);
                self.net.let_go(self.now_ps);
                self.net.insert_signals();
            }
            Kind::AtHost => self.arrive(index),
            Kind::Transmit => {
                let host = self.take(index).place;
                self.net.uplinks[host as usize].turn_armed = false;
                self.turn(host);
            }
            Kind::SenderTimer => self.sender_timer(index),
            Kind::ReceiverTimer => self.receiver_timer(index),
            Kind::Grant => self.grant(index),
            Kind::Start => {
                let flow = self.take(index).connection;
                self.start(flow);
            }
            Kind::Free => {}
        }
    }

    /// A pause or its end has come to the sender of a link, or it is time to look for deadlocks.
    #[cold]
    fn signalled(&mut self, index: u32) {
        let Slot { kind, place: port, .. } = self.take(index);
        self.net.switches.signalled(kind, port, self.now_ps);
        self.net.insert_signals();
        let host = (port as usize).checked_sub(self.net.switches.ports.len() - self.hosts.len());
        if let (Kind::Resume, Some(host)) = (kind, host) {
            self.turn(host as u32);
        }
    }

    /// A frame reaches its host.
    #[inline]
    fn arrive(&mut self, index: u32) {
        let mut slot = self.take(index);
        self.net.switches.settle(index, &mut slot);
        self.frames_delivered += 1;
        if slot.control && !slot.is_trimmed() {
            self.control_arrives(&slot);
        } else {
            self.data_arrives(&slot);
        }
    }

    #[inline]
    fn data_arrives(&mut self, slot: &Slot) {
        let Self { hosts, connections, net, now_ps, .. } = self;
        let connection = &mut connections[slot.connection as usize];
        if connection.halves.is_none() {
            return;
        }
        let Path { port, hops, marked, .. } = path(slot);
        let data = slot.data(connection.message_bytes, connection.payload_bytes);
        let arrival =
            Arrival { data, port, marked, hops, trimmed: slot.is_trimmed(), last_port: slot.is_trimmed_last() };
        hosts[connection.dst as usize].on_data(*now_ps, slot.connection, connection, &arrival, (), net);
    }

    #[inline]
    fn control_arrives(&mut self, slot: &Slot) {
        let Self { hosts, connections, net, now_ps, .. } = self;
        let body = net.arena.drop_control(slot);
        let connection = &mut connections[slot.connection as usize];
        let host = &mut hosts[slot.to as usize];
        let fate = host.on_control(*now_ps, slot.connection, connection, &body, &path(slot), net);
        self.after_sender(slot.connection, fate);
    }

    /// After an event of a sender: ends its flow, or gives its host a turn.
    #[inline]
    fn after_sender(&mut self, flow: u32, fate: Fate) {
        match fate {
            Fate::Open => {
                let host = self.connections[flow as usize].src;
                if !self.net.uplinks[host as usize].turn_armed {
                    self.turn(host);
                }
            }
            Fate::Done => self.delivered(flow),
            Fate::Failed => self.failed(flow),
        }
    }

    /// A host's link may be free: sends the next data packet, and asks for another turn.
    fn turn(&mut self, number: u32) {
        let Self { hosts, connections, net, now_ps, .. } = self;
        let host = &mut hosts[number as usize];
        //= docs/specs/pfc.md#PFC-5 what a pause stops
        if net.switches.ports[net.uplinks[number as usize].port as usize].is_paused() {
            return;
        }
        if net.uplinks[number as usize].link.free_ps() <= *now_ps {
            host.transmit(*now_ps, connections, net);
        }
        let uplink = &mut net.uplinks[number as usize];
        if host.has_turns() && !std::mem::replace(&mut uplink.turn_armed, true) {
            let at_ps = uplink.link.free_ps().max(*now_ps);
            net.schedule_host(at_ps, Turn::Transmit, Kind::Transmit, number);
        }
    }

    fn sender_timer(&mut self, index: u32) {
        let slot = self.take(index);
        let (flow, at_ps) = (slot.connection, time_ps(slot.key));
        let Self { hosts, connections, net, .. } = self;
        let connection = &mut connections[flow as usize];
        if connection.sender_timer_ps != at_ps {
            return;
        }
        connection.sender_timer_ps = NEVER;
        let Some(halves) = connection.halves.as_deref() else { return };
        if !halves.is_sender_due(at_ps) {
            return net.arm_sender(at_ps, flow, connection, false);
        }
        let fate = hosts[connection.src as usize].on_sender_deadline(at_ps, flow, connection, net);
        self.after_sender(flow, fate);
    }

    fn receiver_timer(&mut self, index: u32) {
        let slot = self.take(index);
        let (flow, at_ps) = (slot.connection, time_ps(slot.key));
        let Self { hosts, connections, net, .. } = self;
        let connection = &mut connections[flow as usize];
        if connection.receiver_timer_ps == at_ps {
            connection.receiver_timer_ps = NEVER;
            hosts[connection.dst as usize].on_receiver_deadline(at_ps, flow, connection, net);
        }
    }

    /// The time of a host's next grant of credit has come.
    fn grant(&mut self, index: u32) {
        let number = self.take(index).place;
        let Self { hosts, connections, net, now_ps, .. } = self;
        let host = &mut hosts[number as usize];
        net.uplinks[number as usize].grant_armed = false;
        host.grant(*now_ps, connections, net);
        if let Some(at_ps) = host.grant_ps() {
            net.arm_grant(*now_ps, number, at_ps);
        }
    }

    fn start(&mut self, flow: u32) {
        let setting = &self.spec.flows[flow as usize];
        let mut config = (self.spec.flow_config)(setting.src, setting.dst);
        config.path.seed = setting.path_seed;
        let host = &mut self.hosts[setting.src];
        let mut halves = Halves::new(&config, config.window_packets, config.max_data_bytes, &mut host.rng);
        if self.spec.ideal_code {
            halves = halves.in_ideal_code();
        }
        // The first message always finds room.
        let _ = halves.sender.send_message(0, setting.bytes);
        let connection = &mut self.connections[flow as usize];
        connection.header_bytes = config.header_bytes;
        connection.payload_bytes = u64::from(config.sanitised().payload_bytes);
        connection.message_bytes = setting.bytes;
        connection.evs = config.path.evs;
        connection.halves = Some(Box::new(halves));
        self.net.outcomes[flow as usize].started_ps = Some(self.now_ps);
        if config.path.balancer.wants_reachability() {
            self.tell(self.now_ps, flow as usize);
        }
        let connection = &mut self.connections[flow as usize];
        let fate = self.hosts[setting.src].serve_sender(self.now_ps, flow, connection, &mut self.net);
        self.after_sender(flow, fate);
    }

    /// The sender has every acknowledgement, so that the receiver has every byte.
    fn delivered(&mut self, flow: u32) {
        self.end(flow);
        if let Some(trigger) = self.spec.flows[flow as usize].on_sent {
            self.net.signal(self.now_ps, trigger);
        }
    }

    fn failed(&mut self, flow: u32) {
        self.net.outcomes[flow as usize].failed = true;
        self.end(flow);
    }

    /// Takes leave of a connection; frames that are still under way find nobody.
    fn end(&mut self, flow: u32) {
        let connection = &mut self.connections[flow as usize];
        if let Some(halves) = connection.halves.take() {
            self.hosts[connection.dst as usize].close(&halves);
            let outcome = &mut self.net.outcomes[flow as usize];
            (outcome.sender, outcome.receiver) = (*halves.sender.stats(), *halves.receiver.stats());
            self.sampler.on_end(outcome.receiver.bytes);
        }
        self.open -= 1;
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
    //= docs/specs/host-dr.md#HDR-3 paths that can be reached
    fn tell(&mut self, now_ps: u64, connection: usize) {
        let spec = self.spec;
        let ancestors = self.ancestors.get_or_insert_with(|| Ancestors::new(spec.network, spec.events, spec.seed));
        let entry = &mut self.connections[connection];
        let (src, dst) = (entry.src as usize, entry.dst as usize);
        let paths = ancestors.paths(now_ps, src, dst, entry.addresses[0], entry.evs);
        if let Some(halves) = entry.halves.as_deref_mut() {
            halves.sender.on_reachable(now_ps, &paths);
        }
    }

    /// Tells all connections when routing changes, if any has wanted to know.
    fn tell_all(&mut self, at_ps: u64) {
        let reroutes = self.ancestors.as_ref().is_some_and(|known| known.epoch_starts().contains(&at_ps));
        if reroutes {
            self.now_ps = at_ps;
            let open = |flow: &usize| self.connections[*flow].halves.is_some();
            let open: Vec<usize> = (0..self.connections.len()).filter(open).collect();
            open.into_iter().for_each(|flow| self.tell(at_ps, flow));
        }
    }

    fn special(&mut self, at_ps: u64) {
        let Net { switches, uplinks, .. } = &mut self.net;
        for (port, state) in switches.change(at_ps) {
            if let Some(host) = (port as usize).checked_sub(switches.ports.len() - uplinks.len()) {
                let rate = u128::from(switches.ports[port as usize].rate_bps) * u128::from(state.rate_ppm);
                uplinks[host].link.set_rate((rate / 1_000_000) as u64);
            }
        }
        self.tell_all(at_ps);
        let Net { switches, uplinks, .. } = &self.net;
        self.sampler.look(at_ps, switches, uplinks, &self.connections);
        self.next_special_ps =
            switches.next_change_ps().min(self.sampler.next_ps()).min(self.spec.until_ps.max(at_ps + 1));
    }

    /// Takes an event out of its slot.
    #[inline]
    fn take(&mut self, index: u32) -> Slot {
        let slot = self.net.arena.slots[index as usize];
        self.net.arena.give_back(index);
        slot
    }

    /// Gathers the figures, and asserts that no frame got lost in the simulator itself.
    fn outcome(mut self) -> SimOutcome {
        let net = &mut self.net;
        let mut frames_in_flight = net.switches.frames_held();
        while let Some((_, slot)) = net.queue.pop() {
            frames_in_flight += u64::from(net.arena.slots[slot as usize].is_frame());
        }
        for (entry, outcome) in self.connections.iter().zip(&mut net.outcomes) {
            if let Some(halves) = &entry.halves {
                (outcome.sender, outcome.receiver) = (*halves.sender.stats(), *halves.receiver.stats());
            }
        }
        let start_ps = net.outcomes.iter().filter_map(|outcome| outcome.started_ps).min().unwrap_or(0);
        let ports = net.switches.outcome(self.spec.network, start_ps, self.now_ps);
        let crossed: u64 = ports.iter().map(|port| port.counters.frames).sum();
        let dropped: u64 = ports.iter().map(|port| port.counters.drops()).sum::<u64>() + net.switches.no_route;
        let ends = self.frames_delivered + dropped + frames_in_flight;
        assert_eq!(net.frames_sent, ends, "frames sent are delivered, dropped or in flight");
        let (samples, delivered) = self.sampler.finish();
        SimOutcome {
            entries: net.switches.entries(),
            flows: std::mem::take(&mut net.outcomes),
            ports,
            samples,
            delivered,
            deadlock: net.switches.deadlock(self.spec.network),
            reunion: net.switches.reunion(),
            conweave: net.switches.conweave(),
            events: net.log.drain().map(|entry| (entry.at_ps, entry.connection, entry.event)).collect(),
            end_ps: self.now_ps,
            packet_hops: crossed,
            frames_sent: net.frames_sent,
            frames_delivered: self.frames_delivered,
            frames_dropped: dropped,
            frames_in_flight,
        }
    }
}

/// Something of what a frame will touch at its host.
#[inline]
fn touch_connection(connections: &[Connection], arena: &Arena, index: u32) -> u64 {
    let slot = &arena.slots[index as usize];
    let Some(halves) = connections[slot.connection as usize].halves.as_deref() else { return 0 };
    if slot.control && !slot.is_trimmed() {
        let (cumulative, more) = arena.touch(slot);
        more ^ halves.sender.touch() ^ u64::from(halves.sender.is_outstanding(cumulative.wrapping_sub(1)))
    } else {
        halves.receiver.touch(slot.psn)
    }
}

/// Something of the connection whose turn comes next.
#[inline]
fn touch_turn(connections: &[Connection], host: &Host<Rng>) -> u64 {
    let next = host.next_turn().and_then(|number| connections[number as usize].halves.as_deref());
    next.map_or(0, |halves| halves.sender.touch())
}

#[inline]
fn path(slot: &Slot) -> Path {
    let pause = slot.detour == wire::switch_view::PAUSE;
    Path { port: slot.port, hops: wire::INITIAL_TTL - slot.ttl, marked: slot.ecn == ECN_CE, pause }
}

/// How many events' slots and bodies are fetched at a time: many enough for the fetches to overlap, few enough for the
/// first-level cache to keep them.
const FETCH: usize = 32;

const ECN_CE: u8 = wire::Ecn::Ce as u8;
