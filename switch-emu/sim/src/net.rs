//! What surrounds the simulated hosts: links, switches, and the events under way.

use spray_core::host::{self, Log};
use spray_core::link::HostLink;
use spray_fabric::flow_key;
use spray_pipeline::hash::mix;
use spray_wire::switch_view::PacketFields;
use spray_wire::{self as wire, Ack, Body, Data, EvPort};

use super::arena::{Arena, Kind, NOTICE, Slot, Turn, flags, key};
use super::calendar::Calendar;
use super::hosts::{Connection, Uplink};
use super::pfc::Signal;
use super::reorder::Timer;
use super::spec::{FlowOutcome, SimSpec, Start, Trigger};
use super::tables::Switches;

/// The owner of the hosts, in the words of [`spray_core::host`].
pub(super) struct Net<'a> {
    spec: &'a SimSpec<'a>,
    pub queue: Calendar,
    pub arena: Arena,
    pub switches: Switches,
    /// Per host.
    pub uplinks: Vec<Uplink>,
    pub outcomes: Vec<FlowOutcome>,
    pub log: Log,
    triggers: Vec<Waiting>,
    pub frames_sent: u64,
}

/// A trigger, how often it was signalled, and the flows that wait for it, the next one last.
struct Waiting {
    kind: Trigger,
    signals: u32,
    flows: Vec<u32>,
}

impl<'a> Net<'a> {
    pub(super) fn new(spec: &'a SimSpec<'a>) -> Self {
        let switches = Switches::new(spec);
        let uplinks: Vec<_> = (0..spec.network.hosts.len()).map(|host| uplink(spec, &switches, host)).collect();
        let fastest = uplinks.iter().map(|uplink| switches.ports[uplink.port as usize].rate_bps).max().unwrap_or(1);
        let (shift, cells) = geometry(uplinks.len(), fastest);
        let mut net = Self {
            spec,
            queue: Calendar::new(shift, cells),
            arena: Arena::new(),
            switches,
            uplinks,
            outcomes: vec![FlowOutcome::default(); spec.flows.len()],
            log: Log::unbounded(),
            triggers: spec.triggers.iter().map(|kind| Waiting { kind: *kind, signals: 0, flows: Vec::new() }).collect(),
            frames_sent: 0,
        };
        for (flow, setting) in spec.flows.iter().enumerate() {
            match setting.start {
                Start::At(at_ps) => net.schedule(at_ps, Turn::Start, Kind::Start, flow as u32),
                Start::On(trigger) => net.triggers[trigger].flows.push(flow as u32),
            }
        }
        net.triggers.iter_mut().for_each(|waiting| waiting.flows.reverse());
        net
    }

    /// Takes a signal of a trigger, which may start flows.
    pub(super) fn signal(&mut self, now_ps: u64, trigger: usize) {
        let waiting = &mut self.triggers[trigger];
        waiting.signals += 1;
        let starts = match waiting.kind {
            Trigger::Oneshot if waiting.signals == 1 => waiting.flows.len(),
            Trigger::Barrier(count) if waiting.signals == count => waiting.flows.len(),
            Trigger::Multishot => waiting.flows.len().min(1),
            Trigger::MultishotUntil(until_ps) if now_ps < until_ps => waiting.flows.len().min(1),
            Trigger::Oneshot | Trigger::Barrier(_) | Trigger::MultishotUntil(_) => 0,
        };
        for _ in 0..starts {
            if let Some(flow) = self.triggers[trigger].flows.pop() {
                self.schedule(now_ps, Turn::Start, Kind::Start, flow);
            }
        }
    }

    /// Puts an event of a host among the events.
    pub(super) fn schedule_host(&mut self, at_ps: u64, turn: Turn, kind: Kind, host: u32) {
        self.insert(Slot { key: key(at_ps, turn), kind, place: host, ..Slot::EMPTY });
    }

    /// Puts an event of a connection among the events.
    pub(super) fn schedule(&mut self, at_ps: u64, turn: Turn, kind: Kind, connection: u32) {
        self.insert(Slot { key: key(at_ps, turn), kind, connection, ..Slot::EMPTY });
    }

    /// Puts the next grant of a host among the events, unless one is there already.
    #[inline]
    pub(super) fn arm_grant(&mut self, now_ps: u64, host: u32, at_ps: u64) {
        if !std::mem::replace(&mut self.uplinks[host as usize].grant_armed, true) {
            self.schedule_host(at_ps.max(now_ps), Turn::Timer, Kind::Grant, host);
        }
    }

    /// Puts a frame on its host's link, behind the one in progress; returns its arrival at the first switch, unless the link
    /// loses it. `way` is 0 with the connection's data and 1 against it.
    #[inline]
    fn leave(
        &mut self,
        now_ps: u64,
        number: u32,
        connection: &Connection,
        way: usize,
        port: EvPort,
        len: u32,
    ) -> Option<Slot> {
        let Connection { src, dst, addresses, .. } = connection;
        let (from, to) = if way == 0 { (*src, *dst) } else { (*dst, *src) };
        let uplink = &mut self.uplinks[from as usize];
        let at_ps = uplink.link.send(now_ps, u64::from(len));
        let (link, switch) = (uplink.port, uplink.switch);
        self.frames_sent += 1;
        let random = self.frames_sent as u32;
        self.switches.leave_host(link, now_ps, len, way == 0, random).ok()?;
        Some(Slot {
            key: key(at_ps, Turn::Arrival),
            flow: self.spec.network.switching.hash.digest(&flow_key(addresses[way], port)),
            random,
            connection: number,
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

    #[inline]
    fn insert(&mut self, slot: Slot) -> u32 {
        let key = slot.key;
        let index = self.arena.take(slot);
        self.queue.insert(key, index);
        index
    }

    /// Puts what switch `at` has to tell other switches on their way.
    //= docs/specs/reunion.md#REU-17 a frame of its own
    //= docs/specs/conweave.md#CWV-12 frames of their own
    #[inline]
    pub(super) fn send_notices(&mut self, now_ps: u64, at: u32) {
        while let Some((host, notice)) = self.switches.poll_notice(at) {
            self.frames_sent += 1;
            let random = self.frames_sent as u32;
            let event = self.insert(Slot {
                key: key(now_ps, Turn::Arrival),
                flow: mix(u64::from(random)),
                random,
                to: host,
                len: NOTICE_BYTES + LINK_BYTES * notice.links,
                ttl: wire::INITIAL_TTL,
                control: true,
                flags: NOTICE,
                kind: Kind::AtSwitch,
                place: at,
                ..Slot::EMPTY
            });
            self.switches.begin_notice(event, at, &notice);
        }
    }

    /// Sends what has waited in a reordering queue on its way, and puts the times of such queues among the events.
    #[inline]
    pub(super) fn let_go(&mut self, now_ps: u64) {
        while let Some((event, port)) = self.switches.reorder.released() {
            let slot = &mut self.arena.slots[event as usize];
            (slot.key, slot.kind, slot.place) = (key(now_ps, Turn::Arrival), Kind::AtPort, port);
            match self.switches.forward(event, slot) {
                Ok(true) => self.queue.insert(slot.key, event),
                Ok(false) => {}
                Err(_) => self.arena.lose(event),
            }
        }
        while let Some(Timer { at_ps, switch, queue }) = self.switches.reorder.timer() {
            let at_ps = at_ps.max(now_ps);
            self.insert(Slot {
                key: key(at_ps, Turn::Timer),
                kind: Kind::LetGo,
                place: switch,
                connection: queue,
                ..Slot::EMPTY
            });
        }
    }

    /// The first frame of data at a port may leave.
    pub(super) fn leaves(&mut self, now_ps: u64, port: u32) {
        if let Some((event, at_ps)) = self.switches.leaves(port, now_ps) {
            let slot = &mut self.arena.slots[event as usize];
            slot.key = key(at_ps, Turn::Arrival);
            self.queue.insert(slot.key, event);
        }
        self.insert_signals();
    }

    /// Puts what the links of a lossless network have asked for among the events.
    #[inline]
    pub(super) fn insert_signals(&mut self) {
        while let Some(Signal { at_ps, kind, port }) = self.switches.signal() {
            // What leaves makes room for what comes.
            let turn = if kind == Kind::Leaves { Turn::Start } else { Turn::Arrival };
            self.insert(Slot { key: key(at_ps, turn), kind, place: port, ..Slot::EMPTY });
        }
    }
}

impl host::Owner for Net<'_> {
    type Connection = Connection;
    /// Bytes are counted, not carried.
    type Payload<'a> = ();

    #[inline]
    fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    #[inline]
    fn send(&mut self, now_ps: u64, number: u32, connection: &mut Connection, port: EvPort, body: Body) {
        let frames = &self.spec.frames;
        let (way, len) = match &body {
            Body::Ack(ack) => (1, frames.ack + ack.echoes.bytes() as u32),
            Body::Nack(_) => (1, frames.nack),
            Body::Pull(_) => (1, frames.pull),
            Body::ProbeAck(_) => (1, frames.probe),
            Body::PullRequest(_) => (0, frames.pull_request),
            _ => (0, frames.probe),
        };
        let Some(start) = self.leave(now_ps, number, connection, way, port, len) else { return };
        let fields = match &body {
            Body::Ack(Ack { cumulative, timestamp_echo_ps, hops, trimmed, .. }) => {
                PacketFields { number: *cumulative, stamp_ps: *timestamp_echo_ps, hops: *hops, is_ack: !trimmed }
            }
            _ => PacketFields::default(),
        };
        let psn = self.arena.keep(body);
        let event = self.insert(Slot { psn, ..start });
        let key = || flow_key(connection.addresses[way], port);
        self.switches.begin_trail(event, (start.place, true), || (key(), fields));
    }

    #[inline]
    fn send_data(&mut self, now_ps: u64, number: u32, connection: &mut Connection, port: EvPort, data: &Data) {
        let len = u32::from(data.payload_bytes) + connection.header_bytes;
        let Some(start) = self.leave(now_ps, number, connection, 0, port, len) else { return };
        let link = self.uplinks[connection.src as usize].port;
        let event = self.insert(Slot {
            sent_ps: data.timestamp_ps,
            psn: data.psn,
            payload_bytes: data.payload_bytes,
            ecn: ECN_ECT0,
            control: false,
            section: data.section.to_bits(),
            flags: flags(data),
            ..start
        });
        self.switches.left_host(event, link);
        let fields = PacketFields { number: data.psn, stamp_ps: data.timestamp_ps, ..PacketFields::default() };
        self.switches.begin_trail(event, (start.place, false), || (flow_key(connection.addresses[0], port), fields));
    }

    #[inline]
    fn place(&mut self, _connection: &mut Connection, _data: &Data, (): ()) -> bool {
        true
    }

    #[inline]
    fn take_messages(&mut self, now_ps: u64, number: u32, connection: &mut Connection) {
        let Some(halves) = connection.halves.as_deref_mut() else { return };
        while let Some((_, bytes)) = halves.receiver.message_completed() {
            halves.receiver.consumed(bytes);
            self.outcomes[number as usize].received_ps = Some(now_ps);
            if let Some(trigger) = self.spec.flows[number as usize].on_received {
                self.signal(now_ps, trigger);
            }
        }
    }

    fn on_delivered(&mut self, number: u32, _connection: &mut Connection, _message: u32, at_ps: u64) {
        self.outcomes[number as usize].acked_ps = Some(at_ps);
    }

    /// A flow is one message, which its sender has from the beginning.
    #[inline]
    fn submit(&mut self, connection: &mut Connection) -> bool {
        connection.halves.as_deref().is_some_and(|halves| !halves.sender.is_idle())
    }

    #[inline]
    fn arm_sender(&mut self, now_ps: u64, number: u32, connection: &mut Connection, sent: bool) {
        if sent && connection.sender_timer_ps != host::NEVER {
            return;
        }
        let Some(halves) = connection.halves.as_deref() else { return };
        let at_ps = halves.sender_deadline_ps(now_ps);
        if at_ps < connection.sender_timer_ps {
            connection.sender_timer_ps = at_ps;
            self.schedule(at_ps, Turn::Timer, Kind::SenderTimer, number);
        }
    }

    #[inline]
    fn arm_receiver(&mut self, _now_ps: u64, number: u32, connection: &mut Connection) {
        let Some(halves) = connection.halves.as_deref() else { return };
        let at_ps = halves.receiver_deadline_ps();
        if at_ps < connection.receiver_timer_ps {
            connection.receiver_timer_ps = at_ps;
            self.schedule(at_ps, Turn::Timer, Kind::ReceiverTimer, number);
        }
    }

    #[inline]
    fn arm_grant(&mut self, now_ps: u64, connection: &mut Connection, at_ps: u64) {
        Net::arm_grant(self, now_ps, connection.dst, at_ps);
    }
}

fn uplink(spec: &SimSpec<'_>, switches: &Switches, host: usize) -> Uplink {
    let index = spec.network.uplink(host);
    let link = &spec.network.links[index];
    Uplink {
        link: HostLink::new(link.rate_bps, link.latency_ps),
        port: switches.port_of_link[index],
        switch: spec.network.leaf_of(host) as u32,
        turn_armed: false,
        grant_armed: false,
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

/// A frame between switches: headers and what it says, the links that it lists apart.
const NOTICE_BYTES: u32 = 64;
/// A link: the numbers of two switches.
const LINK_BYTES: u32 = 4;

const ECN_ECT0: u8 = wire::Ecn::Ect0 as u8;
