//! The network that hosts behind given interfaces believe they share: what neighbours ask each other is passed on, and from it is learned
//! which host is where. Where other boxes run the other switches, they hear it all.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_pipeline::deployment::{Attachment, Cable};

use super::boxes::{Boxes, CableState, Heard};
use super::claim::Dispute;
use super::message::{Body, EVERYBODY};
use super::stations::{News, Stations, Step, To};
use crate::program::Hosts;

/// The bridge between hosts; the process that keeps a fabric and the thread that holds frames have one each, of the same stations.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    shared: Arc<Mutex<Shared>>,
    hosts: Arc<Hosts>,
    ways: Arc<Ways>,
}

/// What is known of hosts and of other boxes.
#[derive(Debug)]
struct Shared {
    stations: Stations,
    boxes: Boxes,
    /// Of the links at this box, those that are down as far as routing may know.
    down: Vec<u16>,
    /// When the other boxes are told all of it again.
    tell_ns: u64,
}

/// The ways out of a box.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// To each host of the fabric; `None` to those of other boxes.
    pub hosts: Vec<Option<Way>>,
    /// To other boxes, as [`Boxes`] numbers them.
    pub trunks: Vec<Way>,
}

/// A way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The port that leads there.
    pub port: usize,
    /// Its interface, and what the switches know of that.
    pub ifindex: u32,
    pub attachment: Attachment,
}

/// The sender behind an interface that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Host(usize),
    /// Another box, by this trunk.
    Trunk(usize),
}

/// Frames to send, and by which ports.
pub(super) type Frames = Vec<(usize, Vec<u8>)>;

/// How often other boxes are told everything.
const TELL_NS: u64 = 200_000_000;

impl Bridge {
    /// Between the hosts and boxes to which these ways lead. What it learns, the switches learn.
    pub fn new(ways: Ways, boxes: Boxes, hosts: Hosts) -> Self {
        let stations = Stations::new(ways.hosts.iter().map(Option::is_some));
        let shared = Shared { stations, boxes, down: Vec::new(), tell_ns: 0 };
        Self { shared: Arc::new(Mutex::new(shared)), hosts: hosts.into(), ways: ways.into() }
    }

    /// Binds an address to a host.
    pub fn bind(&self, host: usize, address: IpAddr) {
        let news = self.shared().stations.bind(host, address);
        self.tell(host, news);
    }

    /// How claims of addresses ended since the last call.
    pub fn disputes(&self) -> Vec<Dispute> {
        self.shared().stations.disputes()
    }

    /// Takes a frame that the switches did not take. Returns what goes where because of it; `None`: nothing, its host sends too many to addresses
    /// that nobody has or uses that of another, or it is too long for a cable to another box.
    pub fn hear(&self, from: Behind, frame: &[u8], now_ns: u64) -> Option<Frames> {
        match from {
            Behind::Host(host) => self.hear_host(host, frame, now_ns),
            Behind::Trunk(trunk) => Some(self.hear_box(trunk, frame, now_ns)),
        }
    }

    fn hear_host(&self, from: usize, frame: &[u8], now_ns: u64) -> Option<Frames> {
        let shared = &mut *self.shared();
        let (news, to) = shared.stations.hear(from, frame, now_ns);
        self.tell(from, news);
        let mut frames = Vec::new();
        if news.address.is_some() || news.is_claim {
            // Before the frame, so that all know where the answer goes.
            frames = shared.say_host(from);
        }
        let to = match to {
            To::Host(host) => Some(host),
            To::Others => None,
            To::Nobody => return Some(frames),
            To::Refused => return if frames.is_empty() { None } else { Some(frames) },
        };
        frames.extend(self.to_hosts(to, Some(from), frame));
        if to.is_none_or(|to| self.ways.hosts[to].is_none()) {
            if !shared.boxes.takes(frame) {
                return None;
            }
            frames.extend(shared.boxes.say(Body::Frame(to.map_or(EVERYBODY, |to| to as u16), frame)));
        }
        Some(frames)
    }

    fn hear_box(&self, trunk: usize, frame: &[u8], now_ns: u64) -> Frames {
        let shared = &mut *self.shared();
        let Heard { far, host, frame, onward } = shared.boxes.hear(trunk, frame, now_ns);
        if let Some((_, to)) = far {
            self.lead(&self.ways.trunks[trunk], to);
        }
        if let Some((host, addresses)) = host
            && self.ways.hosts.get(host).is_some_and(Option::is_none)
        {
            for address in addresses {
                self.tell(host, shared.stations.learn(host, address, None, now_ns));
            }
        }
        let mut frames = onward;
        if let Some((to, frame)) = frame {
            frames.extend(self.to_hosts(to, None, frame));
        }
        frames
    }

    /// The frame to the host that is meant, or to all but the one that it is from, as far as they are this box's.
    fn to_hosts(&self, to: Option<usize>, from: Option<usize>, frame: &[u8]) -> Frames {
        let meant = |(host, way): (usize, &Option<Way>)| {
            way.filter(|_| to.is_none_or(|to| to == host) && from != Some(host)).map(|way| (way.port, frame.to_vec()))
        };
        self.ways.hosts.iter().enumerate().filter_map(meant).collect()
    }

    /// What is due of claims, and what other boxes are told now and then, if it is time.
    pub fn tick(&self, now_ns: u64) -> Frames {
        let shared = &mut *self.shared();
        let mut frames = Vec::new();
        for step in shared.stations.tick(now_ns) {
            match step {
                Step::Ask(host, frame) => frames.extend(self.to_hosts(Some(host), None, &frame)),
                Step::Move(host, news, frame) => {
                    self.tell(host, news);
                    if self.ways.hosts[host].is_some() && !frame.is_empty() {
                        frames.extend(shared.say_host(host));
                        frames.extend(self.to_hosts(None, Some(host), &frame));
                        frames.extend(shared.boxes.say(Body::Frame(EVERYBODY, &frame)));
                    }
                }
            }
        }
        if self.ways.trunks.is_empty() || now_ns < shared.tell_ns {
            return frames;
        }
        shared.tell_ns = now_ns + TELL_NS;
        frames.extend(shared.boxes.say(Body::Down(shared.down.clone())));
        for (host, _) in self.ways.hosts.iter().enumerate().filter(|(_, way)| way.is_some()) {
            frames.extend(shared.say_host(host));
        }
        frames
    }

    /// Takes which links of this box are down as far as routing may know.
    pub fn set_down(&self, down: Vec<u16>) {
        let shared = &mut *self.shared();
        if shared.down != down {
            (shared.down, shared.tell_ns) = (down, 0);
        }
    }

    /// The links that other boxes say are down.
    pub fn down_elsewhere(&self, now_ns: u64) -> Vec<usize> {
        self.shared().boxes.down(now_ns)
    }

    /// Who is at the other ends of cables to other boxes, by their links.
    pub fn cabled(&self, now_ns: u64) -> Vec<(usize, CableState<usize>)> {
        self.shared().boxes.cabled(now_ns)
    }

    /// Notes what the machine's kernel knows of a host's neighbours.
    pub fn learn(&self, host: usize, address: IpAddr, mac: [u8; 6]) {
        let news = self.shared().stations.learn_of_kernel(host, address, mac);
        self.tell(host, news);
    }

    /// Takes the machine's own addresses on the interfaces.
    pub fn set_own(&self, own: HashSet<IpAddr>) {
        let [new, gone] = self.shared().stations.set_own(own);
        gone.into_iter().for_each(|address| self.hosts.remove(address));
        // There is room for some of each interface; packets to those beyond go as any to a stranger.
        new.into_iter().for_each(|address| drop(self.hosts.put_own(address)));
    }

    /// The addresses that were learned of a host.
    pub fn addresses(&self, host: usize) -> Vec<IpAddr> {
        self.shared().stations.addresses(host).to_vec()
    }

    fn tell(&self, host: usize, news: News) {
        // There is such an attachment, and room for all that is learned.
        let _ = news.address.map(|address| self.hosts.put(address, host as u32));
        let Some(way) = self.ways.hosts[host] else { return };
        if let Some(to) = news.mac {
            self.lead(&way, to);
        }
        let _ =
            news.is_full.then(|| self.hosts.put_attachment(way.ifindex, &Attachment { learns: 0, ..way.attachment }));
    }

    /// Has routed frames that leave by a way go to this Ethernet address.
    fn lead(&self, way: &Way, to: [u8; 6]) {
        let [a, b, c, d, e, f, ..] = way.attachment.mac;
        // There is such a port.
        let _ = self.hosts.put_cable(way.port, &Cable { to, from: [a, b, c, d, e, f] });
    }

    /// A thread that panicked has left them as they were.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn say_host(&mut self, host: usize) -> Frames {
        let addresses = self.stations.used(host);
        if addresses.is_empty() { Vec::new() } else { self.boxes.say(Body::Host(host as u16, addresses)) }
    }
}
