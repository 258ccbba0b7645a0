use std::net::IpAddr;

use spray_wire::Ports;

/// The position of an endpoint among those of its host. Each has its own thread, connections and
/// part of the host's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u8,
    count: u8,
}

impl Shard {
    /// The only endpoint of its host.
    pub const SINGLE: Self = Self { number: 0, count: 1 };

    /// Maximum number of endpoints of a host: one for each of its ports.
    pub const MAX: usize = Ports::COUNT as usize;

    /// Returns the endpoints of a host with `count` of them, limited to 1 to [`Shard::MAX`].
    pub fn all(count: usize) -> impl Iterator<Item = Self> {
        let count = count.clamp(1, Self::MAX) as u8;
        (0..count).map(move |number| Self { number, count })
    }

    /// Returns its number, from 0.
    #[must_use]
    pub fn number(self) -> u8 {
        self.number
    }

    /// Returns the number of endpoints of its host.
    #[must_use]
    pub fn count(self) -> u8 {
        self.count
    }

    /// Returns the number of the endpoint that serves receive queue `place` of the interface, from
    /// 0.
    #[inline]
    #[must_use]
    pub fn shard_of_queue(self, place: usize) -> u8 {
        (place % usize::from(self.count)) as u8
    }

    /// Returns the number of the endpoint that receives at port number `port` of the host.
    //= docs/specs/endpoint.md#END-44 Several endpoints of a host
    #[inline]
    #[must_use]
    pub fn shard_of_port(self, port: u8) -> u8 {
        port % self.count
    }

    /// Returns the number of the peer's port for the Connect of this endpoint's connection number
    /// `made`. The endpoints of a host take turns, so that connections spread over those of the
    /// peer, and hosts start at different ports.
    //= docs/specs/endpoint.md#END-44 Several endpoints of a host
    pub(crate) fn next_connect_port(self, own: IpAddr, made: u64) -> u8 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let address = match own {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits() as u64,
        };
        let first = address.wrapping_mul(GOLDEN) >> 58;
        let turn = made.wrapping_mul(self.count.into()).wrapping_add(self.number.into());
        (first.wrapping_add(turn) % u64::from(Ports::COUNT)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_over_the_shards_of_the_peer() {
        let own = [10, 0, 0, 7].into();
        for (ours, theirs) in [(1, 2), (2, 2), (4, 2), (2, 8), (8, 64)] {
            let server = Shard::all(theirs).next().unwrap();
            let each = 64 / ours as u64;
            let aims = Shard::all(ours).flat_map(|shard| (0..each).map(move |made| shard.next_connect_port(own, made)));
            let mut taken = vec![0; theirs];
            aims.for_each(|port| taken[usize::from(server.shard_of_port(port))] += 1);
            assert!(taken.iter().all(|&connections| connections == 64 / theirs), "{ours} to {theirs}: {taken:?}");
        }
    }

    #[test]
    fn hosts_begin_at_different_ports() {
        let first = |host| Shard::SINGLE.next_connect_port([10, 0, 0, host].into(), 0);
        let firsts: std::collections::HashSet<u8> = (1..=64).map(first).collect();
        assert!(firsts.len() >= 32, "{}", firsts.len());
    }

    #[test]
    fn there_are_1_to_64_shards() {
        assert_eq!(Shard::all(0).collect::<Vec<_>>(), [Shard::SINGLE]);
        assert_eq!(Shard::all(100).count(), 64);
    }
}
