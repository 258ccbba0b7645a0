//! The network that hosts behind given interfaces believe they share: what neighbours ask each other is passed on, and from it is learned
//! which host is where.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_pipeline::standing::{Cable, Door};

use super::stations::{News, Stations, To};
use crate::program::Hosts;

/// The bridge between hosts; the process that keeps a fabric and the thread that holds frames have one each, of the same stations.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    stations: Arc<Mutex<Stations>>,
    hosts: Arc<Hosts>,
    /// To each host.
    ways: Arc<[Way]>,
}

/// The way to a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The port that leads to it.
    pub port: usize,
    /// Its interface, and what the switches know of that.
    pub ifindex: u32,
    pub door: Door,
}

/// Where a frame goes that the switches did not take.
#[derive(Debug)]
pub(super) enum Onward {
    /// By these ports.
    Ports(Vec<usize>),
    /// Nowhere: its host sends too many to addresses that nobody has.
    TooMany,
}

impl Bridge {
    /// Between the hosts to which these ways lead. What it learns, the switches learn.
    pub fn new(ways: Vec<Way>, hosts: Hosts) -> Self {
        let stations = Arc::new(Mutex::new(Stations::new(ways.len())));
        Self { stations, hosts: hosts.into(), ways: ways.into() }
    }

    /// Takes a frame that came from a host. Returns where it goes.
    pub fn hear(&self, from: usize, frame: &[u8], now_ns: u64) -> Onward {
        let (news, to) = self.stations().hear(from, frame, now_ns);
        self.tell(from, news);
        let others = |(_, way): (usize, &Way)| way.port;
        match to {
            To::Host(host) => Onward::Ports(vec![self.ways[host].port]),
            To::Others => {
                Onward::Ports(self.ways.iter().enumerate().filter(|(host, _)| *host != from).map(others).collect())
            }
            To::Nobody => Onward::Ports(Vec::new()),
            To::TooMany => Onward::TooMany,
        }
    }

    /// Notes what the machine's kernel knows of a host's neighbours.
    pub fn learn(&self, host: usize, address: IpAddr, mac: [u8; 6]) {
        let news = self.stations().learn(host, address, mac);
        self.tell(host, news);
    }

    /// Takes the machine's own addresses on the interfaces.
    pub fn set_own(&self, own: HashSet<IpAddr>) {
        let [new, gone] = self.stations().set_own(own);
        gone.into_iter().for_each(|address| self.hosts.remove(address));
        // There is room for some of each interface; packets to those beyond go as any to a stranger.
        new.into_iter().for_each(|address| drop(self.hosts.put_own(address)));
    }

    /// The addresses that were learned of a host.
    pub fn addresses(&self, host: usize) -> Vec<IpAddr> {
        self.stations().addresses(host).to_vec()
    }

    fn tell(&self, host: usize, news: News) {
        let Way { port, ifindex, door } = self.ways[host];
        let [a, b, c, d, e, f, ..] = door.mac;
        // There are such a port and such a door, and room for all that is learned.
        let _ = news.mac.map(|to| self.hosts.put_cable(port, &Cable { to, from: [a, b, c, d, e, f] }));
        let _ = news.address.map(|address| self.hosts.put(address, host as u32));
        let _ = news.is_full.then(|| self.hosts.put_door(ifindex, &Door { learns: 0, ..door }));
    }

    /// A thread that panicked has left them as they were.
    fn stations(&self) -> MutexGuard<'_, Stations> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
