//! What surrounds the simulated hosts of a part: links, switches, and the events under way.

use std::slice::from_ref;

use spray_core::Time;
use spray_core::host::{EventLog, ReceiveHalf};
use spray_fabric::HostLink;
use spray_fabric::{Action, FlowScheduler, TieBreaker, flow_key};
use spray_pipeline::Cause;
use spray_pipeline::config::NEVER;
use spray_pipeline::hash::mix;
use spray_wire::switch_view::PacketFields;
use spray_wire::{self as wire, Ack, Body, Data, EvPort};

use super::arena::{Arena, Kind, NOTICE, Phase, Slot, flags, key, make_room, time_ps};
use super::batch::{Batch, FlowEnd};
use super::calendar::Calendar;
use super::common::Common;
use super::control_body::ControlBody;
use super::hosts::{End, Uplink};
use super::observer::{Observer, PartObserver};
use super::pfc::Signal;
use super::reorder::Timer;
use super::spec::{FlowOutcome, SimSpec};
use super::switches::Switches;

/// The links and switches of a part, and its scheduled events.
pub(super) struct Net<'a, W> {
    spec: &'a SimSpec<'a>,
    /// When the last event happened.
    pub now_ps: u64,
    number: u32,
    pub queue: Calendar,
    pub arena: Arena,
    pub switches: Switches<'a>,
    pub eyes: PartObserver<W>,
    /// Per host.
    pub uplinks: Vec<Uplink>,
    /// What came of messages at the ends of their connections here.
    pub outcomes: Vec<FlowOutcome>,
    /// Flows from here that neither ended nor failed.
    pub open: usize,
    pub log: EventLog,
    /// Which flows start, and by flow the sender's end; only where there are triggers, and so one part.
    starts: FlowScheduler,
    senders: Vec<u32>,
    pub frames_sent: u64,
    /// By channel what goes on in the part there.
    pub outbox: Vec<Batch>,
    /// Ends of connections in other parts after their flows have ended.
    pub flow_ends: Vec<FlowEnd>,
    /// When the first thing of both is due.
    pub out_ps: u64,
    /// Frames (channel, event) that are marked when they leave their port, before the outbox.
    leaving: Vec<(u32, u32)>,
    /// When the first of them leaves.
    leaves_ps: u64,
}

impl<'a, W: Observer> Net<'a, W> {
    /// When the last event happened, as hosts count time: in steps of 125 ps, rounded down.
    #[inline]
    pub(super) fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    /// What surrounds the hosts of part `number`, in which these connections end.
    pub(super) fn new(
        common: &'a Common<'a>,
        number: usize,
        switches: Switches<'a>,
        eyes: PartObserver<W>,
        ends: &[End],
    ) -> Self {
        let spec = common.spec;
        let first = switches.ports.len() - common.partition.hosts[number].len();
        let uplinks = common.partition.hosts[number].iter().zip(first as u32..);
        let uplinks: Vec<_> = uplinks.map(|(host, port)| uplink(common, *host as usize, port)).collect();
        let fastest = switches.ports.iter().map(|port| port.rate_bps).max().unwrap_or(1);
        let (shift, cells) = geometry(uplinks.len(), first, fastest);
        Self {
            spec,
            number: number as u32,
            now_ps: 0,
            queue: Calendar::new(shift, cells, TieBreaker::new(spec.seed)),
            arena: Arena::default(),
            switches,
            eyes,
            uplinks,
            outcomes: vec![FlowOutcome::default(); ends.iter().map(End::messages).sum::<u32>() as usize],
            open: ends.iter().filter(|end| !end.receives).map(End::messages).sum::<u32>() as usize,
            log: if W::ACTIVE { EventLog::complete() } else { EventLog::unbounded() },
            starts: FlowScheduler::default(),
            senders: Vec::new(),
            frames_sent: 0,
            outbox: common.partition.channels[number].iter().map(|_| Batch::default()).collect(),
            flow_ends: Vec::new(),
            out_ps: NEVER,
            leaving: Vec::new(),
            leaves_ps: NEVER,
        }
    }

    /// Sets the triggers that start flows; `senders` are the senders' ends.
    pub(super) fn on_triggers(&mut self, starts: FlowScheduler, senders: Vec<u32>) {
        (self.starts, self.senders) = (starts, senders);
    }

    /// When the next event may come, or the next frame leave a port for another part: no later than it does.
    pub(super) fn next_ps(&self) -> u64 {
        self.queue.bound().map_or(NEVER, time_ps).min(self.leaves_ps)
    }

    /// Frames under way, those that wait at ports included.
    pub(super) fn frames_in_flight(&mut self) -> u64 {
        let mut frames = self.switches.frames_held();
        let leaving = self.leaving.drain(..).map(|(_, event)| event);
        for event in leaving.chain(std::iter::from_fn(|| self.queue.pop_before(u64::MAX)).map(|(_, event)| event)) {
            frames += u64::from(self.arena.slots[event as usize].is_frame());
        }
        frames
    }

    /// Passes a frame to a cable; see [`Port::channel`](super::port::Port::channel).
    #[inline]
    fn pass(&mut self, event: u32, channel: u32) {
        if channel == 0 {
            self.queue.insert(self.arena.slots[event as usize].key, event);
        } else if self.switches.leaves_unsettled() {
            self.leaving.push((channel, event));
        } else {
            self.post(event, channel);
        }
    }

    /// Puts a frame into the outbox. What `push` would put on the stack first, a slice is copied from its place.
    #[inline]
    fn post(&mut self, event: u32, channel: u32) {
        let Self { arena, outbox, .. } = self;
        let slot = &arena.slots[event as usize];
        let mail = &mut outbox[channel as usize - 1];
        make_room(&mut mail.slots, LEAST_MAIL);
        mail.slots.extend_from_slice(from_ref(slot));
        if W::ACTIVE {
            mail.links.push(self.eyes.came_by(event));
        }
        self.out_ps = self.out_ps.min(time_ps(slot.key));
        if slot.has_body() {
            make_room(&mut mail.bodies, LEAST_MAIL);
            let slot = *slot;
            mail.bodies.push(arena.drop_control(&slot));
        }
        arena.free(event);
    }

    /// Puts into the outbox what has left its port before `end_ps`.
    pub(super) fn settle_until(&mut self, end_ps: u64) {
        if self.leaving.is_empty() {
            return;
        }
        self.leaves_ps = NEVER;
        let mut kept = 0;
        for at in 0..self.leaving.len() {
            let (channel, event) = self.leaving[at];
            let slot = &mut self.arena.slots[event as usize];
            let left_ps = self.switches.unsettled_until_ps(event, slot);
            if let Some(left_ps) = left_ps.filter(|left_ps| *left_ps >= end_ps) {
                self.leaves_ps = self.leaves_ps.min(left_ps);
                self.leaving[kept] = (channel, event);
                kept += 1;
            } else {
                let marked = self.switches.settle(event, slot);
                self.eyes.settled(event, marked);
                self.post(event, channel);
            }
        }
        self.leaving.truncate(kept);
    }

    /// Takes in what another part has handed over.
    pub(super) fn insert_batch(&mut self, mail: &mut Batch) {
        let (mut bodies, mut links) = (mail.bodies.drain(..), mail.links.iter());
        for slot in &mail.slots {
            let event = self.arena.take(slot);
            self.queue.insert(slot.key, event);
            if let Some(link) = links.next() {
                self.eyes.come_by(event, *link);
            }
            if slot.has_body() {
                // Every frame that has one brings it.
                let Some(body) = bodies.next() else { return };
                self.arena.slots[event as usize].psn = self.arena.store_control(body);
            }
        }
        drop(bodies);
        mail.clear();
    }

    /// Takes a frame onwards from the switch or port that it is at.
    #[inline]
    pub(super) fn forward(&mut self, event: u32) {
        let Arena { slots, controls, .. } = &mut self.arena;
        match self.switches.forward(event, &mut slots[event as usize], &mut self.eyes, controls) {
            Ok(Some(channel)) => self.pass(event, channel),
            Ok(None) => {}
            Err(_) => self.arena.free_lost(event),
        }
    }

    /// A trigger gets a signal, which may start flows.
    pub(super) fn signal(&mut self, trigger: usize) {
        let mut starts = std::mem::take(&mut self.starts);
        starts.signal(self.now_ps, trigger, &mut |at_ps, due| match due {
            Action::StartFlow(flow) => self.schedule(at_ps, Phase::Start, Kind::Start, self.senders[flow]),
            Action::SignalTrigger(trigger) => self.schedule(at_ps, Phase::Start, Kind::Signal, trigger as u32),
        });
        self.starts = starts;
    }

    /// The receiver has the last byte of a message.
    fn received(&mut self, end: &mut End, message: u32, bytes: u64) {
        let has_several = end.has_several();
        let Some(half) = end.receiving.as_deref_mut() else { return };
        half.receiver.consumed(bytes);
        let outcome = &mut self.outcomes[(end.outcome + message) as usize];
        outcome.received_ps = Some(self.now_ps);
        if has_several {
            outcome.receiver = *half.receiver.stats();
        }
        if let Some(trigger) = self.spec.flows[end.message(message).flow as usize].on_received {
            self.signal(trigger);
        }
    }

    /// Notes what an end has counted so far.
    pub(super) fn note(&mut self, end: &End) {
        let counting = end.counting(&self.outcomes);
        let outcome = &mut self.outcomes[(end.outcome + counting) as usize];
        if let Some(half) = &end.sending {
            outcome.sender = *half.sender.stats();
        }
        if let Some(half) = &end.receiving {
            outcome.receiver = *half.receiver.stats();
        }
    }

    /// Puts an event of a host among the events.
    pub(super) fn schedule_host(&mut self, at_ps: u64, turn: Phase, kind: Kind, host: u32) {
        self.insert(Slot { key: key(at_ps, turn), kind, place: host, ..Slot::EMPTY });
    }

    /// Puts an event of a connection among the events.
    #[inline]
    pub(super) fn schedule(&mut self, at_ps: u64, turn: Phase, kind: Kind, connection: u32) {
        self.insert(Slot { key: key(at_ps, turn), kind, connection, ..Slot::EMPTY });
    }

    /// Schedules the next grant of a host, unless one is scheduled.
    #[inline]
    pub(super) fn arm_grant(&mut self, host: u32, at: Option<Time>) {
        if let Some(at) = at
            && !std::mem::replace(&mut self.uplinks[host as usize].grant_armed, true)
        {
            self.schedule_host(at.ps().max(self.now_ps), Phase::Timer, Kind::Grant, host);
        }
    }

    /// Tells the other end of a connection, in another part, that the connection is over.
    pub(super) fn notify_flow_end(&mut self, end: &End) {
        let at_ps = self.now_ps + self.switches.common.partition.lookahead_ps;
        self.flow_ends.push(FlowEnd { part: end.peer_part, end: end.peer, at_ps });
        self.out_ps = self.out_ps.min(at_ps);
    }

    /// The number of the next frame, its share of random decisions.
    #[inline]
    fn next_random(&mut self) -> u32 {
        self.frames_sent += 1;
        (self.frames_sent as u32).wrapping_add(self.number.wrapping_mul(PART_STEP))
    }

    /// Puts a frame on its host's link; returns its arrival at the first switch, and any loss.
    #[inline]
    fn leave(&mut self, end: &End, port: EvPort, len: u32) -> (Slot, Result<(), Cause>) {
        let random = self.next_random();
        let uplink = &mut self.uplinks[end.host as usize];
        let at_ps = uplink.link.send(self.now_ps, u64::from(len));
        let left = self.switches.leave_host(uplink, self.now_ps, len, !end.receives, random);
        let slot = Slot {
            key: key(at_ps, Phase::Arrival),
            flow: self.spec.network.switching.hash.digest(&flow_key(end.addresses, port)),
            random,
            connection: end.peer,
            to: end.peer_host,
            len,
            port,
            ttl: wire::INITIAL_TTL,
            control: true,
            kind: Kind::AtSwitch,
            place: uplink.switch,
            ..Slot::EMPTY
        };
        (slot, left)
    }

    #[inline]
    fn insert(&mut self, slot: Slot) -> u32 {
        let key = slot.key;
        let index = self.arena.take(&slot);
        self.queue.insert(key, index);
        index
    }

    /// Puts what switch `at` has to tell other switches on their way.
    //= docs/specs/reunion.md#REU-17 notification frames
    //= docs/specs/conweave.md#CWV-12 control frames between switches
    #[inline]
    pub(super) fn send_notices(&mut self, at: u32) {
        while let Some((host, notice)) = self.switches.poll_notice(at) {
            let random = self.next_random();
            let event = self.insert(Slot {
                key: key(self.now_ps, Phase::Arrival),
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
    pub(super) fn send_released(&mut self) {
        while let Some((event, port)) = self.switches.reorder.released() {
            let slot = &mut self.arena.slots[event as usize];
            (slot.key, slot.kind, slot.place) = (key(self.now_ps, Phase::Arrival), Kind::AtPort, port);
            self.forward(event);
        }
        while let Some(Timer { at_ps, switch, queue }) = self.switches.reorder.timer() {
            let at_ps = at_ps.max(self.now_ps);
            self.insert(Slot {
                key: key(at_ps, Phase::Timer),
                kind: Kind::ReorderTimeout,
                place: switch,
                connection: queue,
                ..Slot::EMPTY
            });
        }
    }

    /// The first frame of data at a port may leave.
    pub(super) fn leaves(&mut self, port: u32) {
        if let Some((event, at_ps)) = self.switches.leaves(port, self.now_ps) {
            let slot = &mut self.arena.slots[event as usize];
            slot.key = key(at_ps, Phase::Arrival);
            self.queue.insert(slot.key, event);
        }
        self.insert_signals();
    }

    /// Puts what the links of a lossless network have asked for among the events.
    #[inline]
    pub(super) fn insert_signals(&mut self) {
        while let Some(Signal { at_ps, kind, port }) = self.switches.signal() {
            // What leaves makes room for what comes.
            let turn = if kind == Kind::Leaves { Phase::Start } else { Phase::Arrival };
            self.insert(Slot { key: key(at_ps, turn), kind, place: port, ..Slot::EMPTY });
        }
    }
}

impl<W: Observer> Net<'_, W> {
    /// Sends a control frame.
    #[inline]
    pub(super) fn send(&mut self, end: &End, port: EvPort, body: Body) {
        let frames = &self.spec.frames;
        let len = match &body {
            Body::Ack(ack) => frames.ack + ack.echoes.bytes() as u32,
            Body::Nack(_) => frames.nack,
            Body::Pull(_) => frames.pull,
            Body::PullRequest(_) => frames.pull_request,
            _ => frames.probe,
        };
        let (start, left) = self.leave(end, port, len);
        let link = self.uplinks[end.host as usize].number;
        self.eyes.sends(self.now_ps, link, &start, &body, &left);
        if left.is_err() {
            return;
        }
        let fields = match &body {
            Body::Ack(Ack { cumulative, timestamp_echo, hops, trimmed, .. }) => {
                PacketFields { number: *cumulative, stamp_ps: timestamp_echo.ps(), hops: *hops, is_ack: !trimmed }
            }
            _ => PacketFields::default(),
        };
        let psn = self.arena.store_control(ControlBody::new(&body));
        let event = self.insert(Slot { psn, ..start });
        self.eyes.leaves(event, link);
        self.switches.begin_trail(event, start.place, true, || (flow_key(end.addresses, port), fields));
    }

    #[inline]
    pub(super) fn send_data(&mut self, end: &End, port: EvPort, data: &Data) {
        let len = u32::from(data.payload_bytes) + end.header_bytes;
        let (start, left) = self.leave(end, port, len);
        let Uplink { number, port: link, .. } = self.uplinks[end.host as usize];
        if W::ACTIVE {
            let sent = Slot { ecn: ECN_ECT0, ..start };
            self.eyes.sends(self.now_ps, number, &sent, &Body::Data(*data), &left);
        }
        if left.is_err() {
            return;
        }
        let event = self.insert(Slot {
            sent_at: data.timestamp,
            psn: data.psn,
            payload_bytes: data.payload_bytes,
            ecn: ECN_ECT0,
            control: false,
            section: data.section.to_bits(),
            flags: flags(data),
            ..start
        });
        self.switches.left_host(event, link);
        self.eyes.leaves(event, number);
        let fields = PacketFields { number: data.psn, stamp_ps: data.timestamp.ps(), ..PacketFields::default() };
        self.switches.begin_trail(event, start.place, false, || (flow_key(end.addresses, port), fields));
    }

    /// Does what follows from an event at a receiver: its messages, NACKs, ACKs and timer.
    #[inline]
    pub(super) fn serve_receiver(&mut self, number: u32, end: &mut End) {
        while let Some((message, bytes)) =
            end.receiving.as_deref_mut().and_then(|half| half.receiver.message_completed())
        {
            self.received(end, message, bytes);
        }
        while let Some((port, body)) = end.receiving.as_deref_mut().and_then(ReceiveHalf::poll_control) {
            self.send(end, port, body);
        }
        self.arm_receiver(number, end);
    }

    /// The peer has acknowledged a message.
    pub(super) fn delivered(&mut self, end: &mut End, message: u32) {
        end.open -= 1;
        self.open -= 1;
        let outcome = &mut self.outcomes[(end.outcome + message) as usize];
        outcome.acked_ps = Some(self.now_ps);
        if end.has_several()
            && let Some(half) = end.sending.as_deref()
        {
            outcome.sender = *half.sender.stats();
        }
        if let Some(trigger) = self.spec.flows[end.message(message).flow as usize].on_sent {
            self.signal(trigger);
        }
    }

    /// Schedules the sender's deadline. After a packet was `sent` the scheduled one is no later.
    #[inline]
    pub(super) fn arm_sender(&mut self, number: u32, end: &mut End, sent: bool) {
        if sent && end.timer_ps != NEVER {
            return;
        }
        let Some(half) = end.sending.as_deref() else { return };
        let at_ps = half.deadline(self.now()).ps();
        if at_ps < end.timer_ps {
            end.timer_ps = at_ps;
            self.schedule(at_ps, Phase::Timer, Kind::SenderTimer, number);
        }
    }

    #[inline]
    fn arm_receiver(&mut self, number: u32, end: &mut End) {
        let Some(half) = end.receiving.as_deref() else { return };
        let at_ps = half.deadline().ps().max(self.now_ps);
        if at_ps < end.timer_ps {
            end.timer_ps = at_ps;
            self.schedule(at_ps, Phase::Timer, Kind::ReceiverTimer, number);
        }
    }
}

/// The link of a host, which is at `port` among the ports of its part.
fn uplink(common: &Common<'_>, host: usize, port: u32) -> Uplink {
    let network = common.spec.network;
    let index = network.uplink(host);
    let link = &network.links[index];
    Uplink {
        link: HostLink::new(link.rate_bps, link.latency_ps),
        number: common.port_of_link[index],
        port,
        switch: network.leaf_of(host) as u32,
        turn_armed: false,
        grant_armed: false,
    }
}

/// Least frames for which a list of mail gets room: there are many lists.
const LEAST_MAIL: usize = 4;

/// The calendar's cell width and number as powers of two: some hundred events a cell when every host and port is busy, more where the
/// calendar would not reach far enough.
fn geometry(hosts: usize, ports: usize, rate_bps: u64) -> (u32, u32) {
    // Events for each full packet of 4 KiB, in keys of a quarter ps.
    let events = (9 * hosts).max(2 * ports) as u64;
    let packet_ps = 8_000_000_000_000u64 * 4096 / rate_bps.max(1);
    let width = (4 * packet_ps * EVENTS_PER_CELL / events.max(1)).max((4 * REACH_PS) >> MOST_CELLS);
    let shift = 63 - width.leading_zeros();
    let cells = 64 - ((4 * REACH_PS) >> shift).leading_zeros();
    (shift, cells.clamp(LEAST_CELLS, MOST_CELLS))
}

/// Few enough for what is inserted into the present cell, many enough to sort fast and to look ahead.
const EVENTS_PER_CELL: u64 = 128;
/// Cells as powers of two.
const LEAST_CELLS: u32 = 4;
const MOST_CELLS: u32 = 11;
/// The latency of a link, and a full queue: what is further ahead waits in a heap.
const REACH_PS: u64 = 12_000_000;

/// A frame between switches: headers and what it says, the links that it lists apart.
const NOTICE_BYTES: u32 = 64;
/// A link: the numbers of two switches.
const LINK_BYTES: u32 = 4;

/// Distance between the numbers of frames of different parts.
const PART_STEP: u32 = 0x9e37_79b9;

const ECN_ECT0: u8 = wire::Ecn::Ect0 as u8;
