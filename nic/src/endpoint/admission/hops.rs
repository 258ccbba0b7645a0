//! The next hops of clients, where the endpoint's owner resolves them: answers go there, and not to the Ethernet address that a client's frames
//! have as their source, which any host of the segment may send from.
#![expect(clippy::indexing_slicing, reason = "there is a place for every `u8`")]

use std::net::IpAddr;

use rand_core::RngCore;
use spray_core::Time;
use spray_core::rng::Rng;

use crate::endpoint::{admission::limit::Answers, admission::waiting::Client, seal::exchange::CONNECT_BYTES};

/// Clients that wait for their next hop.
const WAITING: usize = 64;
/// Next hops that are kept. An address whose last byte is the same takes the place of another.
const PLACES: usize = 256;
/// How long a next hop is used before it is resolved again, in picoseconds. Those of open connections are resolved every 2 s.
const FRESH_PS: u64 = 5_000_000_000_000;

/// A client, and its message of the key exchange where there are keys.
pub(crate) type Asking = (Client, Option<[u8; CONNECT_BYTES]>);

/// The Ethernet address of an address's next hop, and when it was resolved.
#[derive(Debug, Clone, Copy)]
struct NextHop {
    address: IpAddr,
    mac: [u8; 6],
    at: Time,
}

/// Next hops that were resolved lately, and the clients that wait for one.
#[derive(Debug)]
pub(crate) struct NextHops {
    places: Box<[Option<NextHop>]>,
    waiting: Vec<Asking>,
    /// Addresses that the owner has yet to resolve.
    unresolved: Vec<IpAddr>,
    limit: Answers,
}

impl NextHops {
    pub(crate) fn new() -> Self {
        let (waiting, unresolved) = (Vec::with_capacity(WAITING), Vec::with_capacity(WAITING));
        Self { places: vec![None; PLACES].into(), waiting, unresolved, limit: Answers::default() }
    }

    /// The Ethernet address of a client's next hop, if it was resolved lately.
    pub(crate) fn get(&self, now: Time, client: IpAddr) -> Option<[u8; 6]> {
        let known = self.places[place(client)].filter(|hop| hop.address == client && now.since(hop.at) < FRESH_PS);
        known.map(|hop| hop.mac)
    }

    /// Has a client wait until its next hop is resolved. If it is one too many, a random one gives way.
    //= docs/specs/endpoint.md#END-47 64 clients wait
    pub(crate) fn push(&mut self, now: Time, new: Asking, rng: &mut Rng) {
        let (key, address) = (new.0.key(), new.0.peer.address);
        if let Some(known) = self.waiting.iter_mut().find(|known| known.0.key() == key) {
            *known = new;
        } else if self.waiting.len() < WAITING {
            self.waiting.push(new);
        } else {
            self.waiting[rng.next_u64() as usize % WAITING] = new;
        }
        if self.unresolved.len() < WAITING && !self.unresolved.contains(&address) && self.limit.allow(now) {
            self.unresolved.push(address);
        }
    }

    /// The addresses to resolve that have come since the last call.
    pub(crate) fn unresolved(&mut self) -> impl Iterator<Item = IpAddr> {
        self.unresolved.drain(..)
    }

    /// Keeps an address's next hop.
    pub(crate) fn resolved(&mut self, now: Time, address: IpAddr, mac: [u8; 6]) {
        self.places[place(address)] = Some(NextHop { address, mac, at: now });
    }

    /// Takes one of the clients that have waited for an address's next hop.
    pub(crate) fn take(&mut self, address: IpAddr) -> Option<Asking> {
        let at = self.waiting.iter().position(|(client, _)| client.peer.address == address)?;
        Some(self.waiting.swap_remove(at))
    }
}

fn place(address: IpAddr) -> usize {
    let last = match address {
        IpAddr::V4(address) => address.to_bits() as u8,
        IpAddr::V6(address) => address.to_bits() as u8,
    };
    usize::from(last)
}
