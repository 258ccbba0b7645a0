//! The switches: ports, routes by leaf, and how a frame crosses one.

use std::cell::Cell;

use spray_pipeline::config::{NEVER, OUTSIDE, PortConfig};
use spray_pipeline::counters::PortCounters;
use spray_pipeline::fifo::PortFifos;
use spray_pipeline::frame::Frame;
use spray_pipeline::word::Word;
use spray_pipeline::{Cause, port, routes};

use super::arena::{Kind, Slot, Turn, key, time_ps};
use super::hosts::Uplink;
use super::sample::Sampler;
use super::spec::{PortOutcome, SimSpec};
use spray_fabric::{DropEvery, LinkChange, LinkState, Node};
use spray_fabric::{Link, Network, RouteTable, changes};

/// An egress port, with everything that a frame touches there in three cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    pub queues: PortFifos,
    pub rate_bps: u64,
    /// Where its cable ends.
    place: u32,
    kind: Kind,
    /// Nothing has befallen the link.
    unchanged: bool,
    pub counters: PortCounters<Cell<u64>>,
    /// Its first lines hold the healthy state.
    pub config: PortConfig,
    periodic: Option<Periodic>,
}

const _: () = assert!(std::mem::offset_of!(Port, config) == 128);

/// Losses counted in frames.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    every: DropEvery,
    seen: u64,
}

/// All switches of a network, and their state.
#[derive(Debug)]
pub(super) struct Switches {
    pub ports: Vec<Port>,
    routes: RouteTable,
    /// Changes of links, the next one last: (time, link, state).
    changes: Vec<(u64, usize, LinkState)>,
    /// Per link of the network its port; hosts' links come after all ports.
    pub port_of_link: Vec<u32>,
    seed: u64,
    trimmed_len: u16,
    pub no_route: u64,
}

impl Switches {
    /// Compiles the tables. Hosts' own links follow the switches' ports, in the order of the hosts.
    pub(super) fn new(spec: &SimSpec<'_>) -> Self {
        let network = spec.network;
        let mut port_of_link = vec![0; network.links.len()];
        let mut ports = Vec::new();
        for (index, link) in network.links.iter().enumerate() {
            if let Node::Switch(switch) = link.from {
                port_of_link[index] = ports.len() as u32;
                let latency_ps = link.latency_ps + network.switches[switch].latency_ps;
                ports.push(Port::new(spec, link.to, link.rate_bps, latency_ps));
            }
        }
        for host in 0..network.hosts.len() {
            let link = &network.links[network.uplink(host)];
            port_of_link[network.uplink(host)] = ports.len() as u32;
            ports.push(Port::new(spec, link.to, link.rate_bps, link.latency_ps));
        }
        let mut switches = Self {
            ports,
            routes: RouteTable::new(network, spec.events, spec.seed, |link| port_of_link[link]),
            changes: Vec::new(),
            port_of_link,
            seed: spec.seed,
            trimmed_len: spec.frames.trimmed.min(u32::from(u16::MAX)) as u16,
            no_route: 0,
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

    /// Takes a frame through the switch at which it has arrived, and over the cable behind the port that it takes there.
    #[inline]
    pub(super) fn forward(&mut self, slot: &mut Slot) -> Result<(), Cause> {
        let number = match slot.kind {
            Kind::AtPort => slot.place,
            _ => self.port_of(slot).ok_or(Cause::NoRoute).inspect_err(|_| self.no_route += 1)?,
        };
        let port = &mut self.ports[number as usize];
        let mut frame = Frame {
            switch: 0,
            port: 0,
            flow: slot.flow,
            crc: slot.random,
            time_ps: time_ps(slot.key),
            len: slot.len,
            ttl: slot.ttl,
            ecn: slot.ecn,
            control: slot.control,
            trimmable: slot.is_trimmable(),
            trimmed: slot.trimmed,
            trimmed_len: self.trimmed_len,
            emulated: true,
        };
        if !port.unchanged {
            port.lose_periodically(frame.time_ps)?;
        }
        let random = port::random(&frame, number, self.seed);
        port.config.cross(&mut frame, random, &port.queues, &port.counters)?;
        slot.key = key(frame.time_ps, Turn::Arrival);
        slot.len = frame.len;
        slot.ttl = frame.ttl;
        slot.ecn = frame.ecn;
        slot.control = frame.control;
        slot.trimmed = frame.trimmed;
        (slot.place, slot.kind) = (port.place, port.kind);
        Ok(())
    }

    /// The port by which a frame that arrives at a switch leaves it.
    #[inline]
    fn port_of(&self, slot: &Slot) -> Option<u32> {
        let choice = routes::choose(&self.routes, time_ps(slot.key), slot.place, slot.to, slot.flow);
        choice.map(|choice| choice.port)
    }

    /// Chooses the port of a frame that is about to arrive at a switch, and returns something of it, for the cache to fetch it.
    ///
    /// A choice by hash depends on the frame, the switch, and the routes in force when the frame arrives: all are known before,
    /// and none can change. A scheme that looks at queues must leave the choice to [`Switches::forward`], and may only guess here.
    #[inline]
    pub(super) fn look_ahead(&self, slot: &mut Slot) -> u64 {
        let Some(number) = self.port_of(slot) else { return 0 };
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

    /// Takes a frame of `len` bytes out of a host: what the host's link does to it, its queue and its rate apart.
    #[inline]
    pub(super) fn leave_host(&mut self, port: u32, now_ps: u64, len: u32, random: u32) -> Result<(), Cause> {
        let entry = &mut self.ports[port as usize];
        if entry.unchanged {
            entry.counters.frames.add(1);
            entry.counters.bytes.add(u64::from(len));
            return Ok(());
        }
        entry.lose_periodically(now_ps)?;
        let random = port::share(random, now_ps, port, self.seed);
        entry.config.carry(now_ps, len, random, &entry.counters)
    }

    /// The ports' figures, in the order of [`Switches::ports`].
    pub(super) fn outcome(&self, network: &Network, sampler: &Sampler) -> Vec<PortOutcome> {
        let mut links = vec![0; self.ports.len()];
        let known = |link: &Link| !matches!((link.from, link.to), (Node::Host(_), Node::Host(_)));
        for (link, _) in network.links.iter().enumerate().filter(|(_, link)| known(link)) {
            links[self.port_of_link[link] as usize] = link;
        }
        let outcome = |(number, port): (usize, &Port)| {
            let link = &network.links[links[number]];
            let uplink = link.is_uplink();
            port.outcome(&link.name, sampler.peak(number), uplink)
        };
        self.ports.iter().enumerate().map(outcome).collect()
    }
}

impl Port {
    fn new(spec: &SimSpec<'_>, to: Node, rate_bps: u64, latency_ps: u64) -> Self {
        let thresholds = (spec.queue)(rate_bps);
        let (place, kind) = match to {
            Node::Switch(switch) => (switch as u32, Kind::AtSwitch),
            Node::Host(host) => (host as u32, Kind::AtHost),
        };
        let mut config = PortConfig::new(rate_bps, latency_ps, &thresholds, OUTSIDE, spec.frames.trimmed.max(4096));
        // The exact queue has no limit of its own.
        (config.limit, config.control_limit) = (thresholds.limit_bytes, thresholds.control_limit_bytes);
        let (queues, counters) = (PortFifos::default(), PortCounters::default());
        Self { config, queues, counters, place, kind, rate_bps, periodic: None, unchanged: true }
    }

    /// The link's state from `at_ps` on.
    fn change(&mut self, at_ps: u64, state: &LinkState) {
        self.unchanged = false;
        let before = self.config.states[0].ps_per_unit;
        self.config.set(self.rate_bps, &LinkChange { at_ps, state: *state });
        let after = self.config.states[0].ps_per_unit;
        for queue in [&self.queues.total, &self.queues.control] {
            queue.rescale(at_ps, before, after);
        }
        self.periodic = state.drop_every.map(|every| Periodic { every, seen: 0 });
    }

    #[cold]
    fn lose_periodically(&mut self, now_ps: u64) -> Result<(), Cause> {
        let Some(periodic) = &mut self.periodic else { return Ok(()) };
        let at = periodic.seen % (u64::from(periodic.every.pass) + u64::from(periodic.every.lose)).max(1);
        periodic.seen += 1;
        if at < u64::from(periodic.every.pass) {
            return Ok(());
        }
        self.counters.link_drop(&self.counters.drops_random, now_ps);
        Err(Cause::Random)
    }

    /// Bytes that leave in `time_ps`.
    pub(super) fn bytes_in(&self, time_ps: u64) -> u64 {
        let bits = u128::from(time_ps) * u128::from(self.rate_bps) / 1_000_000_000_000;
        (bits / 8) as u64
    }

    fn outcome(&self, name: &str, peak_queue_bytes: u64, uplink: bool) -> PortOutcome {
        let counters = self.counters.read();
        PortOutcome { name: name.into(), uplink, rate_bps: self.rate_bps, counters, peak_queue_bytes }
    }
}
