//! A part of a run: takes its events in order and lets its hosts and switches act.

use std::cell::Cell;
use std::hint::black_box;

use spray_core::Time;
use spray_core::flow::{Arrival, DataOutcome, FlowConfig, SenderEvent, Transmit};
use spray_core::host::{FramePath, ReceiveHalf, Scheduler, SendHalf};
use spray_core::rng::stream;
use spray_fabric::{DeliverySeries, EvPaths, FlowSpec};
use spray_pipeline::config::NEVER;
use spray_pipeline::frame::PAUSE;
use spray_wire::{self as wire, Body};

use super::arena::{Arena, Kind, Phase, Slot, key, time_ps};
use super::common::Common;
use super::hosts::End;
use super::net::Net;
use super::observer::{Observer, PartObserver};
use super::switches::Switches;

/// Some switches and hosts, and everything that is to happen there.
pub(super) struct Part<'a, W> {
    common: &'a Common<'a>,
    pub net: Net<'a, W>,
    hosts: Vec<Scheduler>,
    /// By their numbers.
    pub ends: Vec<End>,
    /// Whether the run ends with the last of them.
    alone: bool,
    pub frames_delivered: u64,
    /// The payload that has arrived here.
    pub arrivals: DeliverySeries<Cell<u64>>,
    /// How much work the part was so far: 2 for each event at a switch, 3 for one at a host, where the transport runs.
    pub work: u64,
}

impl<'a, W: Observer> Part<'a, W> {
    /// Part `number`, with the ends of connections that are there.
    pub(super) fn new(
        common: &'a Common<'a>,
        number: usize,
        switches: Switches<'a>,
        eyes: PartObserver<W>,
        ends: Vec<End>,
    ) -> Self {
        let spec = common.spec;
        let net = Net::new(common, number, switches, eyes, &ends);
        let host = |(host, uplink): (&u32, &super::hosts::Uplink)| {
            Scheduler::new(net.switches.ports[uplink.port as usize].rate_bps, 0, stream(spec.seed, u64::from(*host)))
        };
        Self {
            common,
            hosts: common.partition.hosts[number].iter().zip(&net.uplinks).map(host).collect(),
            alone: common.partition.len() == 1,
            frames_delivered: 0,
            arrivals: DeliverySeries::new(common.arrived),
            work: 0,
            ends,
            net,
        }
    }

    /// Takes the events that come before `end_ps`.
    pub(super) fn run(&mut self, end_ps: u64) {
        let end = key(end_ps.min(NEVER >> 2), Phase::Start);
        let mut fetched = 0;
        while (self.net.open > 0 || !self.alone)
            && let Some((key, slot)) = self.net.queue.pop_before(end)
        {
            if fetched == 0 {
                fetched = FETCH;
                self.fetch();
            }
            fetched -= 1;
            let at_switch = matches!(self.net.arena.slots[slot as usize].kind, Kind::AtSwitch | Kind::AtPort);
            self.work += if at_switch { 2 } else { 3 };
            self.net.now_ps = time_ps(key);
            self.handle(slot);
        }
        self.net.settle_until(end_ps);
    }

    /// Has the cache fetch what the next events will touch: of all of them at once, while one after another would wait.
    #[inline]
    fn fetch(&mut self) {
        let Self { ends, hosts, net: Net { queue, arena, switches, uplinks, .. }, .. } = self;
        let next = queue.upcoming(FETCH);
        black_box(next.clone().fold(0, |sum, index| sum ^ arena.slots[index as usize].key));
        let mut sum = 0;
        for index in next {
            let slot = &mut arena.slots[index as usize];
            let (kind, host) = (slot.kind, slot.place as usize);
            sum ^= match kind {
                Kind::AtSwitch => switches.choose_early(slot),
                Kind::AtHost => switches.touch_uplink(&uplinks[host]) ^ touch_end(ends, arena, index),
                Kind::Transmit => switches.touch_uplink(&uplinks[host]) ^ touch_turn(ends, &hosts[host]),
                _ => 0,
            };
        }
        black_box(sum);
    }

    #[inline]
    fn handle(&mut self, index: u32) {
        let slot = &mut self.net.arena.slots[index as usize];
        match slot.kind {
            Kind::AtSwitch | Kind::AtPort => {
                let (at, arrives) = (slot.place, matches!(slot.kind, Kind::AtSwitch));
                if arrives && slot.is_notice() && self.net.switches.receive_notice(index, slot) {
                    self.take(index);
                    self.frames_delivered += 1;
                    return;
                }
                self.net.forward(index);
                if self.common.has_more {
                    self.net.send_released();
                    self.net.insert_signals();
                    self.net.send_notices(at);
                }
            }
            Kind::Leaves => {
                let port = self.take(index).place;
                self.net.leaves(port);
            }
            Kind::Pause | Kind::Resume | Kind::DeadlockCheck => self.signalled(index),
            Kind::ReorderTimeout => {
                let Slot { place: switch, connection: queue, .. } = self.take(index);
                self.net.switches.check_reorder_queue(switch, queue, self.net.now_ps);
                self.net.send_released();
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
                let number = self.take(index).connection;
                self.start(number);
            }
            Kind::Signal => {
                let trigger = self.take(index).connection as usize;
                self.net.signal(trigger);
            }
            Kind::FlowEnd => {
                let number = self.take(index).connection;
                self.over(number);
            }
        }
    }

    /// A pause or its end has come to the sender of a link, or it is time to look for deadlocks.
    #[cold]
    fn signalled(&mut self, index: u32) {
        let Slot { kind, place: port, .. } = self.take(index);
        self.net.switches.signalled(kind, port, self.net.now_ps);
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
        let marked = self.net.switches.settle(index, &mut slot);
        self.net.eyes.arrives(index, &slot, marked, &self.net.arena.controls);
        self.frames_delivered += 1;
        if slot.control && !slot.is_trimmed() {
            self.control_arrives(&slot);
        } else {
            self.data_arrives(&slot);
        }
    }

    #[inline]
    fn data_arrives(&mut self, slot: &Slot) {
        self.receives(slot.connection);
        let Self { hosts, ends, net, .. } = self;
        let now = net.now();
        let end = &mut ends[slot.connection as usize];
        let data = slot.data(&end.message_of(slot.psn), end.payload_bytes);
        let Some(half) = end.receiving.as_deref_mut() else { return };
        let FramePath { port, hops, marked, .. } = path(slot);
        let arrival = Arrival {
            data,
            port,
            marked,
            hops,
            trimmed: slot.is_trimmed(),
            last_port: slot.is_trimmed_last(),
            misrouted: false,
        };
        let host = &mut hosts[end.host as usize];
        let accept = host.on_data(now, half, &arrival, |_| true);
        net.arm_grant(end.host, host.grant_at());
        net.serve_receiver(slot.connection, end);
        if matches!(accept, DataOutcome::New { .. }) {
            self.arrivals.add(self.net.now_ps, u64::from(data.payload_bytes));
        }
    }

    #[inline]
    fn control_arrives(&mut self, slot: &Slot) {
        let number = slot.connection;
        self.receives(number);
        let Self { hosts, ends, net, .. } = self;
        let now = net.now();
        let body = net.arena.drop_control(slot).body();
        let end = &mut ends[number as usize];
        let host = &mut hosts[end.host as usize];
        let path = path(slot);
        if let Some(half) = end.receiving.as_deref_mut() {
            let reply = host.on_request(now, number, half, &body, &path);
            net.arm_grant(end.host, host.grant_at());
            if let Some(reply) = reply {
                net.send(end, path.port, reply);
            }
        }
        let sending = end.sending.as_deref_mut();
        if sending.is_some_and(|half| half.on_feedback(now, &body, &path, &mut net.log.of(number))) {
            self.serve_sender(number);
        } else {
            self.request_turn(number);
        }
    }

    /// Creates the receiver of a connection on its first frame.
    #[inline]
    fn receives(&mut self, number: u32) {
        let end = &mut self.ends[number as usize];
        if end.receives && end.receiving.is_none() && !end.over {
            open(self.common, self.net.now_ps, end);
        }
    }

    /// Does what follows from an event at a sender: its events, messages, turn and timer, or its end.
    #[inline]
    fn serve_sender(&mut self, number: u32) {
        let Self { hosts, ends, net, .. } = self;
        let end = &mut ends[number as usize];
        while let Some(event) = end.sending.as_deref_mut().and_then(|half| half.sender.poll_event()) {
            match event {
                SenderEvent::MessageDelivered { message, .. } => net.delivered(end, message),
                SenderEvent::Failed => return self.failed(number),
            }
        }
        end.submit();
        if end.open == 0 {
            return self.end(number);
        }
        if let Some(half) = end.sending.as_deref_mut() {
            hosts[end.host as usize].request_turn(number, half);
            net.arm_sender(number, end, false);
        }
        self.request_turn(number);
    }

    /// Lets the host of a connection send, unless its next turn is scheduled.
    #[inline]
    fn request_turn(&mut self, number: u32) {
        let host = self.ends[number as usize].host;
        if !self.net.uplinks[host as usize].turn_armed {
            self.turn(host);
        }
    }

    /// A host's link may be free: sends the next data packet, and asks for another turn.
    fn turn(&mut self, number: u32) {
        let Self { hosts, ends, net, .. } = self;
        let now = net.now();
        let host = &mut hosts[number as usize];
        //= docs/specs/pfc.md#PFC-5 effect of a pause
        if net.switches.ports[net.uplinks[number as usize].port as usize].is_paused() {
            return;
        }
        if net.uplinks[number as usize].link.free_ps() <= net.now_ps {
            while let Some(number) = host.next_turn() {
                let end = &mut ends[number as usize];
                let Some(half) = end.sending.as_deref_mut() else { continue };
                let frame = host.transmit(now, number, half, &mut net.log.of(number));
                net.arm_sender(number, end, frame.is_some());
                match frame {
                    Some(Transmit::Data { data, ev }) => {
                        net.send_data(end, ev.port(end.evs), &data);
                        break;
                    }
                    Some(Transmit::Probe { probe, ev }) => net.send(end, ev.port(end.evs), Body::Probe(probe)),
                    Some(Transmit::PullRequest { request, ev }) => {
                        net.send(end, ev.port(end.evs), Body::PullRequest(request));
                    }
                    None => {}
                }
            }
        }
        let uplink = &mut net.uplinks[number as usize];
        if host.has_turns() && !std::mem::replace(&mut uplink.turn_armed, true) {
            let at_ps = uplink.link.free_ps().max(net.now_ps);
            net.schedule_host(at_ps, Phase::Transmit, Kind::Transmit, number);
        }
    }

    fn sender_timer(&mut self, index: u32) {
        let slot = self.take(index);
        let (number, at_ps) = (slot.connection, time_ps(slot.key));
        let Self { ends, net, .. } = self;
        let end = &mut ends[number as usize];
        if end.timer_ps != at_ps {
            return;
        }
        end.timer_ps = NEVER;
        let Some(half) = end.sending.as_deref_mut() else { return };
        if !half.is_due(net.now()) {
            return net.arm_sender(number, end, false);
        }
        half.on_deadline(net.now(), &mut net.log.of(number));
        self.serve_sender(number);
    }

    fn receiver_timer(&mut self, index: u32) {
        let slot = self.take(index);
        let (number, at_ps) = (slot.connection, time_ps(slot.key));
        let Self { ends, net, .. } = self;
        let end = &mut ends[number as usize];
        if end.timer_ps == at_ps {
            end.timer_ps = NEVER;
            if let Some(half) = end.receiving.as_deref_mut() {
                half.receiver.on_timeout(net.now());
            }
            net.serve_receiver(number, end);
        }
    }

    /// Grants a host's next credit.
    fn grant(&mut self, index: u32) {
        let host_number = self.take(index).place;
        let Self { hosts, ends, net, .. } = self;
        let host = &mut hosts[host_number as usize];
        net.uplinks[host_number as usize].grant_armed = false;
        if let Some((number, pull)) = host.grant(net.now()) {
            let end = &mut ends[number as usize];
            if let Some(half) = end.receiving.as_deref_mut() {
                let port = host.pull_port(half);
                net.send(end, port, Body::Pull(pull));
            }
        }
        net.arm_grant(host_number, host.grant_at());
    }

    /// The next message of a connection starts.
    fn start(&mut self, number: u32) {
        let Self { common, hosts, ends, net, .. } = self;
        let now_ps = net.now_ps;
        let end = &mut ends[number as usize];
        //= docs/specs/triggers.md#TRG-8 those included that have yet to start
        if end.over {
            return;
        }
        net.outcomes[(end.outcome + end.started) as usize].started_ps = Some(now_ps);
        end.started += 1;
        let host = &mut hosts[end.host as usize];
        //= docs/specs/triggers.md#TRG-6 lasts until its last message
        if end.sending.is_none() {
            connect(common, now_ps, end, host);
        }
        self.serve_sender(number);
    }

    fn failed(&mut self, number: u32) {
        let Self { ends, net, .. } = self;
        let end = &mut ends[number as usize];
        net.open -= std::mem::take(&mut end.open) as usize;
        let own = &mut net.outcomes[end.outcome as usize..][..end.messages() as usize];
        let open = own.iter_mut().filter(|outcome| outcome.acked_ps.is_none());
        open.for_each(|outcome| outcome.given_up_ps = Some(net.now_ps));
        self.end(number);
    }

    /// Takes leave of a sender; frames that are still under way to it find nobody.
    fn end(&mut self, number: u32) {
        self.over(number);
        let peer = self.ends[number as usize].peer;
        if self.alone {
            self.over(peer);
        } else {
            self.net.notify_flow_end(&self.ends[number as usize]);
        }
    }

    /// The connection of an end is over.
    fn over(&mut self, number: u32) {
        let end = &mut self.ends[number as usize];
        self.net.note(end);
        end.over = true;
        if let Some(half) = end.sending.take() {
            self.hosts[end.host as usize].save_history(end.peer_host.into(), &half);
        }
        if let Some(half) = end.receiving.take() {
            self.hosts[end.host as usize].close(&half);
        }
    }

    /// Tells all senders which paths there are by the routes in force at `at_ps`.
    pub(super) fn update_paths(&mut self, at_ps: u64) {
        self.net.now_ps = at_ps;
        self.ends.iter_mut().for_each(|end| set_paths(self.common, at_ps, end));
    }

    /// Stores the counters of flows that have not ended, and divides those of several flows on one connection.
    pub(super) fn close(&mut self) {
        for end in &self.ends {
            self.net.note(end);
            if end.has_several() {
                end.share_out(&mut self.net.outcomes);
            }
        }
    }

    /// Takes an event out of its slot.
    #[inline]
    fn take(&mut self, index: u32) -> Slot {
        let slot = self.net.arena.slots[index as usize];
        self.net.arena.free(index);
        slot
    }
}

/// How the connection of an end works.
fn config(common: &Common<'_>, end: &End) -> FlowConfig {
    let flow = end.first.flow as usize;
    let mut config = (common.spec.flow_config)(flow);
    config.path.seed = common.spec.flows[flow].path_seed;
    config
}

#[cold]
fn connect(common: &Common<'_>, now_ps: u64, end: &mut End, host: &mut Scheduler) {
    let config = config(common, end);
    let half = SendHalf::new(&config, config.window_packets, config.max_data_bytes, &mut host.rng);
    end.configure(&config);
    end.sending = Some(Box::new(if common.spec.ideal_code { half.erasure_coded() } else { half }));
    if config.balancer.wants_reachability() {
        set_paths(common, now_ps, end);
    }
    if let Some(half) = end.sending.as_deref_mut() {
        host.restore_history(Time::from_ps(now_ps), end.peer_host.into(), half);
    }
}

#[cold]
fn open(common: &Common<'_>, now_ps: u64, end: &mut End) {
    let config = config(common, end);
    let half = ReceiveHalf::new(&config);
    end.configure(&config);
    end.receiving = Some(Box::new(if common.spec.ideal_code { half.erasure_coded() } else { half }));
    if config.balancer.acks_in_turn() {
        set_paths(common, now_ps, end);
    }
}

/// Tells an end which paths lead from it to its peer by the routes in force.
//= docs/specs/host-dr.md#HDR-3 reachable paths
fn set_paths(common: &Common<'_>, now_ps: u64, end: &mut End) {
    if end.sending.is_none() && !end.receiving.as_deref().is_some_and(ReceiveHalf::acks_in_turn) {
        return;
    }
    let spec = common.spec;
    let ev_paths = common.ev_paths.get_or_init(|| EvPaths::new(spec.network, spec.events, spec.seed));
    let FlowSpec { src, dst, .. } = spec.flows[end.first.flow as usize];
    let (from, to) = if end.receives { (dst, src) } else { (src, dst) };
    let paths = ev_paths.paths(now_ps, from, to, end.addresses, end.evs);
    if let Some(half) = end.sending.as_deref_mut() {
        half.sender.on_reachable(Time::from_ps(now_ps), &paths);
    }
    if let Some(half) = end.receiving.as_deref_mut() {
        half.on_reachable(&paths);
    }
}

/// Something of what a frame will touch at its host.
#[inline]
fn touch_end(ends: &[End], arena: &Arena, index: u32) -> u64 {
    let slot = &arena.slots[index as usize];
    let end = &ends[slot.connection as usize];
    if slot.has_body() {
        let Some(half) = end.sending.as_deref() else { return 0 };
        let (cumulative, more) = arena.controls[slot.psn as usize].touch();
        more ^ half.sender.prefetch() ^ u64::from(half.sender.is_outstanding(cumulative.wrapping_sub(1)))
    } else {
        end.receiving.as_deref().map_or(0, |half| half.receiver.prefetch(slot.psn))
    }
}

/// Reads state of the connection with the next turn.
#[inline]
fn touch_turn(ends: &[End], host: &Scheduler) -> u64 {
    let next = host.turn(0).and_then(|number| ends[number as usize].sending.as_deref());
    next.map_or(0, |half| half.sender.prefetch())
}

#[inline]
fn path(slot: &Slot) -> FramePath {
    let pause = slot.detour == PAUSE;
    FramePath { port: slot.port, hops: wire::INITIAL_TTL - slot.ttl, marked: slot.ecn == ECN_CE, pause }
}

/// How many events' slots and bodies are fetched at a time: many enough for the fetches to overlap, few enough for the
/// first-level cache to keep them.
const FETCH: usize = 32;

const ECN_CE: u8 = wire::Ecn::Ce as u8;
