//! Next hops of clients: answers go there, and not to the Ethernet source of a client's frame,
//! which any host of the segment can forge.
#![expect(clippy::indexing_slicing, reason = "there is a place for every `u8`")]

use std::net::IpAddr;

use rand_core::RngCore;
use spray_core::Time;
use spray_core::rng::Rng;

use crate::endpoint::{admission::exchange_queue::Client, admission::limit::Answers, seal::noise::CONNECT_BYTES};

/// Maximum number of clients that wait for their next hop.
const WAITING: usize = 64;
/// Cached next hops, by the last byte of the address.
const PLACES: usize = 256;
/// Lifetime of a cached next hop in picoseconds. Those of open connections are resolved every 2 s.
const FRESH_PS: u64 = 5_000_000_000_000;

/// A client, and its message of the key exchange with keys.
pub(crate) type PendingClient = (Client, Option<[u8; CONNECT_BYTES]>);

#[derive(Debug, Clone, Copy)]
struct NextHop {
    address: IpAddr,
    mac: [u8; 6],
    at: Time,
}

/// Recently resolved next hops, and the clients that wait for one.
#[derive(Debug)]
pub(crate) struct ClientNextHops {
    places: Box<[Option<NextHop>]>,
    waiting: Vec<PendingClient>,
    /// Addresses that the user has to resolve.
    unresolved: Vec<IpAddr>,
    limit: Answers,
}

impl ClientNextHops {
    pub(crate) fn new() -> Self {
        let (waiting, unresolved) = (Vec::with_capacity(WAITING), Vec::with_capacity(WAITING));
        Self { places: vec![None; PLACES].into(), waiting, unresolved, limit: Answers::default() }
    }

    /// Returns the Ethernet address of a client's next hop, if it was resolved recently.
    pub(crate) fn get(&self, now: Time, client: IpAddr) -> Option<[u8; 6]> {
        let known = self.places[place(client)].filter(|hop| hop.address == client && now.since(hop.at) < FRESH_PS);
        known.map(|hop| hop.mac)
    }

    /// Adds a waiting client, in place of a random one if there are too many.
    //= docs/specs/endpoint.md#END-47 64 clients wait
    pub(crate) fn push(&mut self, now: Time, new: PendingClient, rng: &mut Rng) {
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

    /// Returns the addresses to resolve since the last call.
    pub(crate) fn unresolved(&mut self) -> impl Iterator<Item = IpAddr> {
        self.unresolved.drain(..)
    }

    /// Stores an address's next hop.
    pub(crate) fn resolved(&mut self, now: Time, address: IpAddr, mac: [u8; 6]) {
        self.places[place(address)] = Some(NextHop { address, mac, at: now });
    }

    /// Removes and returns a client that has waited for an address's next hop.
    pub(crate) fn take(&mut self, address: IpAddr) -> Option<PendingClient> {
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
