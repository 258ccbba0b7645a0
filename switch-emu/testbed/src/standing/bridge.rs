//! The network that hosts behind given interfaces believe they share: what neighbours ask each other is passed on, and from it is learned
//! which host is where.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_pipeline::standing::Cable;

use super::stations::{News, Stations, To};
use crate::program::Hosts;

/// The bridge between hosts; the process that keeps a fabric and the thread that holds frames have one each, of the same stations.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    stations: Arc<Mutex<Stations>>,
    hosts: Arc<Hosts>,
    /// The port that leads to each host, and the Ethernet address of its interface.
    ports: Arc<[(usize, [u8; 6])]>,
}

impl Bridge {
    /// Between hosts to which these ports lead, of interfaces with these Ethernet addresses. What it learns, the switches learn.
    pub fn new(ports: Vec<(usize, [u8; 6])>, hosts: Hosts) -> Self {
        let stations = Arc::new(Mutex::new(Stations::new(ports.len())));
        Self { stations, hosts: hosts.into(), ports: ports.into() }
    }

    /// Takes a frame that came from a host. Returns the ports that it goes to.
    pub fn hear(&self, from: usize, frame: &[u8]) -> Vec<usize> {
        let (news, to) = self.stations().hear(from, frame);
        self.tell(from, news);
        match to {
            To::Host(host) => vec![self.ports[host].0],
            To::Others => (0..self.ports.len()).filter(|host| *host != from).map(|host| self.ports[host].0).collect(),
            To::Nobody => Vec::new(),
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
        let (port, from) = self.ports[host];
        // There is such a port, and room for all that is learned.
        let _ = news.mac.map(|to| self.hosts.put_cable(port, &Cable { to, from }));
        let _ = news.address.map(|address| self.hosts.put(address, host as u32));
    }

    /// A thread that panicked has left them as they were.
    fn stations(&self) -> MutexGuard<'_, Stations> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
