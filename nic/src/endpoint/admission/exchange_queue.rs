//! Clients that wait for their key exchange, a server's most costly operation.
#![expect(clippy::indexing_slicing, reason = "there is a count for every `u8`")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use rand_core::RngCore;
use spray_core::Time;
use spray_core::rng::Rng;
use spray_wire::{Common, Terms};

use crate::endpoint::{Peer, admission::limit::RateLimit, connection::PeerKey, seal::noise::CONNECT_BYTES};

/// Maximum number of waiting clients: 46 KiB.
const PLACES: usize = 256;
/// Networks that are distinguished, by hash.
const NETWORKS: usize = 256;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) terms: Terms,
    /// The number of its port.
    pub(crate) port: u8,
}

impl Client {
    /// Returns the common header of answers.
    pub(crate) fn named(&self) -> Common {
        Common { connection: self.terms.connection, cookie: self.terms.cookie, shard: self.port }
    }

    pub(crate) fn key(&self) -> PeerKey {
        (self.peer.address, self.terms.connection, self.terms.cookie)
    }
}

type PendingExchange = (Client, [u8; CONNECT_BYTES]);

/// Waiting clients, with a rate limit: 16 at once, and 1,000 a second, some 90 us each. Networks
/// (/24, /64) are served in turn, so that a flood from one does not delay the others. Within a
/// network a random client is next.
#[derive(Debug)]
pub(crate) struct ExchangeQueue {
    limit: RateLimit<16, 1_000_000_000>,
    /// Each with its network's hash.
    clients: Vec<(u8, PendingExchange)>,
    /// Clients by network.
    counts: [u16; NETWORKS],
    /// The network that is served next.
    turn: u8,
    /// The secret key of the hash.
    key: u64,
}

impl ExchangeQueue {
    /// Creates it with a secret key.
    pub(crate) fn new(key: u64) -> Self {
        let clients = Vec::with_capacity(PLACES + 1);
        Self { limit: RateLimit::default(), clients, counts: [0; NETWORKS], turn: 0, key }
    }

    /// Adds a client, in place of a random one of the largest network if there are too many.
    /// Returns whether one was removed.
    //= docs/specs/endpoint.md#END-34 rate limit of key exchanges
    pub(crate) fn push(&mut self, asking: PendingExchange, rng: &mut Rng) -> bool {
        let key = asking.0.key();
        if let Some((_, known)) = self.clients.iter_mut().find(|(_, known)| known.0.key() == key) {
            *known = asking;
            return false;
        }
        let network = self.network(key.0);
        self.counts[usize::from(network)] += 1;
        self.clients.push((network, asking));
        let crowded = self.clients.len() > PLACES;
        if crowded {
            let most = (0..=u8::MAX).max_by_key(|&network| self.counts[usize::from(network)]);
            self.take(most.unwrap_or_default(), rng);
        }
        crowded
    }

    /// Removes and returns the next client, if the rate limit permits.
    //= docs/specs/endpoint.md#END-34 rate limit of key exchanges
    pub(crate) fn next(&mut self, now: Time, rng: &mut Rng) -> Option<PendingExchange> {
        if self.clients.is_empty() || !self.limit.allow(now) {
            return None;
        }
        while self.counts[usize::from(self.turn)] == 0 {
            self.turn = self.turn.wrapping_add(1);
        }
        let asking = self.take(self.turn, rng);
        self.turn = self.turn.wrapping_add(1);
        asking
    }

    /// Returns when the next client may be served.
    pub(crate) fn next_at(&self) -> Time {
        if self.clients.is_empty() { Time::NEVER } else { self.limit.next_at() }
    }

    /// Returns the hash of an address's network: the first 24 bits of IPv4, 64 bits of IPv6, which
    /// one party may own.
    fn network(&self, address: IpAddr) -> u8 {
        let bits = match address {
            IpAddr::V4(address) => u64::from(address.to_bits() >> 8),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let mut hasher = DefaultHasher::new();
        (self.key, bits).hash(&mut hasher);
        hasher.finish() as u8
    }

    /// Removes and returns a random client of a network.
    fn take(&mut self, network: u8, rng: &mut Rng) -> Option<PendingExchange> {
        let count = &mut self.counts[usize::from(network)];
        let chosen = (rng.next_u64() % u64::from((*count).max(1))) as usize;
        let mut places = self.clients.iter().enumerate().filter(|(_, (of, _))| *of == network);
        let (place, _) = places.nth(chosen)?;
        *count -= 1;
        Some(self.clients.swap_remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use rand_core::SeedableRng;

    use super::*;

    const MS: u64 = 1_000_000_000;

    fn client(address: impl Into<IpAddr>, connection: u32) -> PendingExchange {
        let peer = Peer { address: address.into(), mac: [2; 6] };
        let terms = Terms { connection, ..Terms::default() };
        (Client { peer, terms, port: 0 }, [0; CONNECT_BYTES])
    }

    fn rng() -> Rng {
        Rng::seed_from_u64(1)
    }

    #[test]
    fn a_burst_is_served_at_once_and_then_one_per_millisecond() {
        let (mut waiting, mut rng) = (ExchangeQueue::new(7), rng());
        assert_eq!(waiting.next_at(), Time::NEVER);
        for number in 0..200 {
            assert!(!waiting.push(client([10, 0, 0, number as u8], number), &mut rng));
            assert!(!waiting.push(client([10, 0, 0, number as u8], number), &mut rng), "the same again");
        }
        let mut served = Vec::new();
        let mut now = Time::ZERO;
        while waiting.next_at() < Time::NEVER {
            now = now.max(waiting.next_at());
            let before = served.len();
            served
                .extend(std::iter::from_fn(|| waiting.next(now, &mut rng)).map(|(client, _)| client.terms.connection));
            assert_eq!(served.len() - before, if before == 0 { 16 } else { 1 });
        }
        assert_eq!(now, Time::from_ps((200 - 16) * MS));
        assert!(!served.is_sorted(), "in no order");
        served.sort_unstable();
        assert!(served.iter().copied().eq(0..200), "each once");
    }

    /// One client from each of 20 networks asks once, while clients of one other network ask
    /// 100,000 times per second.
    //= docs/specs/endpoint.md#END-34 rate limit of key exchanges
    #[test]
    fn a_flood_from_one_network_does_not_delay_others() {
        let crowds: [fn(u64) -> IpAddr; 2] = [
            |number| [10, 9, 9, number as u8].into(),
            |number| Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(number)).into(),
        ];
        for crowd in crowds {
            let (mut waiting, mut rng) = (ExchangeQueue::new(7), rng());
            let apart = (0..=u8::MAX).map(|host| IpAddr::from([10, 1, host, 1]));
            let apart = apart.filter(|&other| waiting.network(other) != waiting.network(crowd(0)));
            let others: Vec<_> = apart.take(20).collect();
            let mut served = Vec::new();
            for tick in 0..30_000 {
                let now = Time::from_ps(tick * MS / 100);
                waiting.push(client(crowd(tick), tick as u32), &mut rng);
                if tick == 10_000 {
                    for &other in &others {
                        waiting.push(client(other, 0), &mut rng);
                    }
                }
                while let Some((client, _)) = waiting.next(now, &mut rng) {
                    served.push((tick, client.peer.address));
                }
                assert!(waiting.clients.len() <= PLACES);
            }
            for other in others {
                // 21 networks take turns. The few of the 20 whose hashes collide wait for each
                // other.
                let at = served.iter().find(|(_, address)| *address == other).map(|(tick, _)| tick / 100);
                assert!(at.is_some_and(|ms| (100..200).contains(&ms)), "{other}: {at:?}");
            }
            assert_eq!(served.len(), 16 + 299);
        }
    }
}
