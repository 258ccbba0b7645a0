//! The network that hosts behind given interfaces believe they share: what neighbours ask each other is passed on, and from it is learned
//! which host is where.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::stations::{Stations, To};
use crate::program::Addresses;

/// The bridge between hosts; the process that keeps a fabric and the thread that holds frames have one each, of the same stations.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    stations: Arc<Mutex<Stations>>,
    addresses: Arc<Addresses>,
    /// The port that leads to each host.
    ports: Arc<[usize]>,
}

impl Bridge {
    /// Between hosts to which these ports lead. What it learns goes into the switches' `addresses`.
    pub fn new(ports: Vec<usize>, addresses: Addresses) -> Self {
        let stations = Arc::new(Mutex::new(Stations::new(ports.len())));
        Self { stations, addresses: addresses.into(), ports: ports.into() }
    }

    /// Takes a frame that came from a host. Returns the ports that it goes to.
    pub fn hear(&self, from: usize, frame: &[u8]) -> Vec<usize> {
        let (learned, to) = self.stations().hear(from, frame);
        if let Some(address) = learned {
            self.put(address, from);
        }
        match to {
            To::Host(host) => vec![self.ports[host]],
            To::Others => (0..self.ports.len()).filter(|host| *host != from).map(|host| self.ports[host]).collect(),
            To::Nobody => Vec::new(),
        }
    }

    /// Notes what the machine's kernel knows of a host's neighbours.
    pub fn learn(&self, host: usize, address: IpAddr, mac: [u8; 6]) {
        if self.stations().learn(host, address, mac) {
            self.put(address, host);
        }
    }

    /// Takes the machine's own addresses on the interfaces.
    pub fn set_own(&self, own: std::collections::HashSet<IpAddr>) {
        let [new, gone] = self.stations().set_own(own);
        gone.into_iter().for_each(|address| self.addresses.remove(address));
        // There is room for all that is learned; without, packets to it would go as any to a stranger.
        new.into_iter().for_each(|address| drop(self.addresses.put_own(address)));
    }

    /// The addresses that were learned of a host.
    pub fn addresses(&self, host: usize) -> Vec<IpAddr> {
        self.stations().addresses(host).to_vec()
    }

    /// The Ethernet address that a host sends from.
    pub fn mac(&self, host: usize) -> Option<[u8; 6]> {
        self.stations().mac(host)
    }

    fn put(&self, address: IpAddr, host: usize) {
        let _ = self.addresses.put(address, host as u32);
    }

    /// A thread that panicked has left them as they were.
    fn stations(&self) -> MutexGuard<'_, Stations> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
