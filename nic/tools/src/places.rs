//! Chooses the connection to preempt when a receiver or server is full.

use std::cmp::Reverse;
use std::net::IpAddr;

use spray_core::link::PS_PER_S;
use spray_nic::device::Device;
use spray_nic::keys::PublicKey;
use spray_nic::{ConnectionId, Endpoint, Time};

/// Additional half-open connections.
//= docs/specs/endpoint.md#END-27 24 more, which are half-open
pub const HALF_OPEN: usize = 24;

/// The owner of a connection, for fair sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    pub address: IpAddr,
    pub key: Option<PublicKey>,
}

impl Party {
    pub fn of<D: Device>(endpoint: &Endpoint<D>, connection: ConnectionId, address: IpAddr) -> Self {
        Self { address, key: endpoint.peer_key(connection) }
    }

    /// The prefix that one party may own: 24 bits of IPv4, 64 of IPv6, as in END-34.
    fn network(&self) -> (bool, u64) {
        match self.address {
            IpAddr::V4(address) => (true, u64::from(address.to_bits() >> 8)),
            IpAddr::V6(address) => (false, (address.to_bits() >> 64) as u64),
        }
    }
}

/// The rate of a connection, in windows of 10 s.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    since: Time,
    /// At the start of the window.
    bytes: u64,
    /// In the last complete window.
    window_bytes: Option<u64>,
}

impl Pace {
    const WINDOW_PS: u64 = 10 * PS_PER_S;
    /// Bytes in a window of a slow connection: a piece of 1 MiB then takes the 300 s of END-26.
    //= docs/specs/endpoint.md#END-27 fewer than 35,000 bytes
    const SLOW: u64 = 35_000;

    pub fn new(now: Time) -> Self {
        Self { since: now, bytes: 0, window_bytes: None }
    }

    /// `bytes` is the total.
    pub fn on_bytes(&mut self, bytes: u64, now: Time) {
        let elapsed_ps = now.since(self.since);
        if elapsed_ps >= Self::WINDOW_PS {
            let moved = u128::from(bytes.saturating_sub(self.bytes)) * u128::from(Self::WINDOW_PS);
            self.window_bytes = u64::try_from(moved / u128::from(elapsed_ps)).ok();
            (self.since, self.bytes) = (now, bytes);
        }
    }

    /// Considers the last window fast, since the peer had to wait for this side.
    pub fn restart(&mut self, bytes: u64, now: Time) {
        *self = Self { since: now, bytes, window_bytes: Some(u64::MAX) };
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Slot<T> {
    pub id: T,
    pub party: Party,
    pub pace: Pace,
    /// How long the peer has owed data.
    pub overdue_ps: Option<u64>,
}

/// Returns the connection that is preempted by a new one of `new`: the longest overdue one, else
/// the slowest of the slow ones, else the slowest of the key, network or address with more than its
/// share.
//= docs/specs/endpoint.md#END-27 the one that has been overdue longest is evicted
pub fn gives_way<T: Copy>(taken: &[Slot<T>], new: &Party) -> Option<T> {
    let overdue = taken.iter().filter_map(|it| Some((it.overdue_ps?, it.id)));
    if let Some((_, id)) = overdue.max_by_key(|&(overdue_ps, _)| overdue_ps) {
        return Some(id);
    }
    let slow = taken.iter().filter_map(|it| Some((it.pace.window_bytes.filter(|&bytes| bytes < Pace::SLOW)?, it.id)));
    if let Some((_, id)) = slow.min_by_key(|&(bytes, _)| bytes) {
        return Some(id);
    }
    let levels: [fn(&Party, &Party) -> bool; 3] =
        [|a, b| a.key == b.key, |a, b| a.network() == b.network(), |a, b| a.address == b.address];
    let mut sharing: Vec<&Slot<T>> = taken.iter().collect();
    //= docs/specs/endpoint.md#END-27 at least two places more
    for is_same in levels {
        let places = |of: &Party| sharing.iter().filter(|it| is_same(&it.party, of)).count();
        let most = sharing.iter().map(|it| it.party).max_by_key(|party| places(party))?;
        let has_too_many = places(&most) >= places(new) + 2;
        let group = if has_too_many { most } else { *new };
        sharing.retain(|it| is_same(&it.party, &group));
        if has_too_many {
            let moved = |it: &&&Slot<T>| (it.pace.window_bytes.unwrap_or(0), Reverse(it.pace.since));
            return sharing.iter().min_by_key(moved).map(|it| it.id);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use spray_nic::keys::PrivateKey;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_ps(seconds * PS_PER_S)
    }

    /// Returns a connection that has moved this number of bytes in a window.
    fn slot(id: usize, address: [u8; 4], key: Option<PublicKey>, bytes: u64) -> Slot<usize> {
        let mut pace = Pace::new(Time::ZERO);
        pace.on_bytes(bytes, at(10));
        Slot { id, party: Party { address: address.into(), key }, pace, overdue_ps: None }
    }

    fn party(address: [u8; 4], key: Option<PublicKey>) -> Party {
        Party { address: address.into(), key }
    }

    fn keys() -> [Option<PublicKey>; 2] {
        [(); 2].map(|()| Some(PrivateKey::generate().unwrap().public()))
    }

    #[test]
    //= docs/specs/endpoint.md#END-27 the one that has been overdue longest is evicted
    fn the_longest_overdue_is_evicted_first_and_then_the_slowest() {
        let fast = |id| slot(id, [10, 0, 0, id as u8], None, 1 << 30);
        let mut all: Vec<_> = (0..4).map(fast).collect();
        let new = party([10, 0, 0, 9], None);
        assert_eq!(gives_way(&all, &new), None, "each party is within its share and sends");
        (all[1].overdue_ps, all[2].overdue_ps) = (Some(5), Some(7));
        all[3] = slot(3, [10, 0, 0, 3], None, 5);
        assert_eq!(gives_way(&all, &new), Some(2));
        (all[1].overdue_ps, all[2].overdue_ps) = (None, None);
        assert_eq!(gives_way(&all, &new), Some(3));
        all[2] = slot(2, [10, 0, 0, 2], None, 4);
        assert_eq!(gives_way(&all, &new), Some(2));
    }

    #[test]
    //= docs/specs/endpoint.md#END-27 fewer than 35,000 bytes
    fn new_or_waiting_connections_are_not_slow() {
        let mut pace = Pace::new(Time::ZERO);
        pace.on_bytes(5, at(9));
        assert_eq!(pace.window_bytes, None);
        pace.on_bytes(50_000, at(20));
        assert_eq!(pace.window_bytes, Some(25_000), "over the last 10 s");
        pace.restart(50_000, at(20));
        assert_eq!(pace.window_bytes, Some(u64::MAX));
        pace.on_bytes(50_007, at(30));
        assert_eq!(pace.window_bytes, Some(7));
    }

    /// Nine fast connections of a party with many addresses, and one of another party.
    #[test]
    //= docs/specs/endpoint.md#END-27 at least two places more
    fn keys_networks_and_addresses_share_the_places() {
        let [one, two] = keys();
        type Addresses = fn(usize) -> [u8; 4];
        let cases: [(Addresses, [Option<PublicKey>; 2], [u8; 4]); 4] = [
            (|id| [10, id as u8, 0, 1], [one, two], [10, 99, 0, 1]),
            (|id| [10, 1, 1, id as u8], [one, one], [10, 2, 2, 2]),
            (|id| [10, 1, 1, id as u8], [None, None], [10, 2, 2, 2]),
            (|_| [10, 1, 1, 1], [None, None], [10, 1, 1, 2]),
        ];
        for (addresses, [theirs, ours], own) in cases {
            let mut all: Vec<_> = (0..9).map(|id| slot(id, addresses(id), theirs, 1 << 30)).collect();
            all[4].pace.window_bytes = Some(1 << 20);
            let new = party(own, ours);
            for place in 0..4 {
                let id = gives_way(&all, &new).unwrap_or_else(|| panic!("{own:?}: {place}"));
                assert_eq!(id == 4, place == 0, "{own:?}: the slowest first");
                let at = all.iter().position(|it| it.id == id).unwrap();
                assert!(id < 9, "{own:?}: its own connections are not evicted");
                all[at] = slot(100 + place, own, ours, 1 << 30);
            }
            assert_eq!(gives_way(&all, &new), None, "{own:?}: five and four");
        }
    }
}
