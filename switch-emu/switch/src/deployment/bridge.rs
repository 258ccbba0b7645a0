//! The layer-2 segment of hosts behind external interfaces: forwards ARP and neighbour discovery,
//! also to other machines, and learns from them which host has which address.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_pipeline::deployment::{Attachment, KERNEL, MacRewrite};

use super::claim::Dispute;
use super::fdb::{ClaimStep, Fdb, Forward, Update};
use super::link_state::{CableState, Effects, Peers};
use super::message::{ALL_HOSTS, Body};
use crate::program::Hosts;

/// A handle on the bridge, for the process of a fabric and the thread that delays frames.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    shared: Arc<Mutex<Shared>>,
    hosts: Arc<Hosts>,
    ports: Arc<EgressPorts>,
}

#[derive(Debug)]
struct Shared {
    fdb: Fdb,
    peers: Peers,
    /// The links of this machine that are down, visibly to routing.
    down: Vec<u16>,
    /// When everything is next advertised to the other machines.
    advertise_ns: u64,
}

/// The ports by which frames leave this machine.
#[derive(Debug, Default)]
pub(super) struct EgressPorts {
    /// By host of the fabric; `None` for hosts of other machines.
    pub hosts: Vec<Option<EgressPort>>,
    /// To other machines, as [`Peers`] numbers its trunks.
    pub trunks: Vec<EgressPort>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EgressPort {
    pub port: usize,
    pub ifindex: u32,
    pub attachment: Attachment,
}

/// The sender behind an external interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Host(usize),
    /// Another machine, by trunk.
    Trunk(usize),
}

/// Frames to send, each after its egress port.
pub(super) type Frames = Vec<(usize, Vec<u8>)>;

const ADVERTISE_INTERVAL_NS: u64 = 200_000_000;

impl Bridge {
    pub fn new(ports: EgressPorts, peers: Peers, hosts: Hosts) -> Self {
        let fdb = Fdb::new(ports.hosts.iter().map(Option::is_some));
        let shared = Shared { fdb, peers, down: Vec::new(), advertise_ns: 0 };
        Self { shared: Arc::new(Mutex::new(shared)), hosts: hosts.into(), ports: ports.into() }
    }

    /// Binds an address to a host.
    pub fn bind(&self, host: usize, address: IpAddr) {
        let update = self.shared().fdb.bind(host, address);
        self.apply(host, update);
    }

    /// Returns how claims of addresses ended since the last call.
    pub fn disputes(&self) -> Vec<Dispute> {
        self.shared().fdb.disputes()
    }

    /// Receives a frame that no switch forwards, and returns the frames to send. `None`: dropped,
    /// for the host's rate of floods, for another host's address, or as too long for a trunk.
    pub fn receive(&self, from: Source, frame: &[u8], now_ns: u64) -> Option<Frames> {
        match from {
            Source::Host(host) => self.receive_from_host(host, frame, now_ns),
            Source::Trunk(trunk) => Some(self.receive_from_peer(trunk, frame, now_ns)),
        }
    }

    fn receive_from_host(&self, from: usize, frame: &[u8], now_ns: u64) -> Option<Frames> {
        let shared = &mut *self.shared();
        let (update, forward) = shared.fdb.receive(from, frame, now_ns);
        self.apply(from, update);
        let mut frames = Vec::new();
        if update.address.is_some() || update.is_claim {
            // Before the frame, so that the other machines can route the answer.
            frames = shared.advertise_host(from);
        }
        let to = match forward {
            Forward::Host(host) => Some(host),
            Forward::Flood => None,
            Forward::Drop => return Some(frames),
            Forward::Refused => return if frames.is_empty() { None } else { Some(frames) },
        };
        frames.extend(self.copies(to, Some(from), frame));
        if to.is_none_or(|to| self.ports.hosts[to].is_none()) {
            if !shared.peers.fits(frame) {
                return None;
            }
            frames.extend(shared.peers.flood(Body::Frame(to.map_or(ALL_HOSTS, |to| to as u16), frame)));
        }
        Some(frames)
    }

    fn receive_from_peer(&self, trunk: usize, frame: &[u8], now_ns: u64) -> Frames {
        let shared = &mut *self.shared();
        let Effects { far, host, frame, onward } = shared.peers.receive(trunk, frame, now_ns);
        if let Some((_, to)) = far {
            self.set_destination(&self.ports.trunks[trunk], to);
        }
        if let Some((host, addresses)) = host
            && self.ports.hosts.get(host).is_some_and(Option::is_none)
        {
            for address in addresses {
                self.apply(host, shared.fdb.learn(host, address, None, now_ns));
            }
        }
        let mut frames = onward;
        if let Some((to, frame)) = frame {
            frames.extend(self.copies(to, None, frame));
        }
        frames
    }

    /// Copies a frame for host `to`, or all but `from`, as far as they are on this machine.
    fn copies(&self, to: Option<usize>, from: Option<usize>, frame: &[u8]) -> Frames {
        let copy = |(host, egress): (usize, &Option<EgressPort>)| {
            let is_target = to.is_none_or(|to| to == host) && from != Some(host);
            egress.filter(|_| is_target).map(|egress| (egress.port, frame.to_vec()))
        };
        self.ports.hosts.iter().enumerate().filter_map(copy).collect()
    }

    /// Advances claims, and advertises this machine's links and hosts when that is due.
    pub fn tick(&self, now_ns: u64) -> Frames {
        let shared = &mut *self.shared();
        let mut frames = Vec::new();
        for step in shared.fdb.tick(now_ns) {
            match step {
                ClaimStep::Probe(host, frame) => frames.extend(self.copies(Some(host), None, &frame)),
                ClaimStep::Move(host, update, frame) => {
                    self.apply(host, update);
                    if self.ports.hosts[host].is_some() && !frame.is_empty() {
                        frames.extend(shared.advertise_host(host));
                        frames.extend(self.copies(None, Some(host), &frame));
                        frames.extend(shared.peers.flood(Body::Frame(ALL_HOSTS, &frame)));
                    }
                }
            }
        }
        if self.ports.trunks.is_empty() || now_ns < shared.advertise_ns {
            return frames;
        }
        shared.advertise_ns = now_ns + ADVERTISE_INTERVAL_NS;
        frames.extend(shared.peers.flood(Body::Down(shared.down.clone())));
        for (host, _) in self.ports.hosts.iter().enumerate().filter(|(_, egress)| egress.is_some()) {
            frames.extend(shared.advertise_host(host));
        }
        frames
    }

    /// Sets which links of this machine are down, and advertises a change at once.
    pub fn set_down(&self, down: Vec<u16>) {
        let shared = &mut *self.shared();
        if shared.down != down {
            (shared.down, shared.advertise_ns) = (down, 0);
        }
    }

    /// Returns the links that other machines advertise as down.
    pub fn down_remotely(&self, now_ns: u64) -> Vec<usize> {
        self.shared().peers.down(now_ns)
    }

    /// Returns what is at the other ends of the trunks, by link.
    pub fn cable_states(&self, now_ns: u64) -> Vec<(usize, CableState<usize>)> {
        self.shared().peers.cable_states(now_ns)
    }

    /// Adds an entry of the kernel's neighbour table.
    pub fn learn(&self, host: usize, address: IpAddr, mac: [u8; 6]) {
        let update = self.shared().fdb.learn_neighbour(host, address, mac);
        self.apply(host, update);
    }

    /// Sets the machine's own addresses on the interfaces.
    pub fn set_local(&self, local: HashSet<IpAddr>) {
        let [new, gone] = self.shared().fdb.set_local(local);
        gone.into_iter().for_each(|address| self.hosts.remove(address));
        // The map has room for some per interface; others are treated as unknown addresses.
        new.into_iter().for_each(|address| drop(self.hosts.put(address, KERNEL)));
    }

    /// Returns the addresses learned of a host.
    pub fn addresses(&self, host: usize) -> Vec<IpAddr> {
        self.shared().fdb.addresses(host).to_vec()
    }

    /// Writes an update of the forwarding database to the switches' maps.
    fn apply(&self, host: usize, update: Update) {
        // The attachment exists, and the map has room for all that is learned.
        let _ = update.address.map(|address| self.hosts.put(address, host as u32));
        let Some(egress) = self.ports.hosts[host] else { return };
        if let Some(to) = update.mac {
            self.set_destination(&egress, to);
        }
        if update.is_full {
            let _ = self.hosts.put_attachment(egress.ifindex, &Attachment { learns: 0, ..egress.attachment });
        }
    }

    /// Sets the destination MAC of routed frames that leave by a port.
    fn set_destination(&self, egress: &EgressPort, to: [u8; 6]) {
        let [a, b, c, d, e, f, ..] = egress.attachment.mac;
        // The port exists.
        let _ = self.hosts.set_mac_rewrite(egress.port, &MacRewrite { to, from: [a, b, c, d, e, f] });
    }

    /// Ignores poisoning: a panic leaves the state consistent.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn advertise_host(&mut self, host: usize) -> Frames {
        let addresses = self.fdb.announced(host);
        if addresses.is_empty() { Vec::new() } else { self.peers.flood(Body::Host(host as u16, addresses)) }
    }
}
