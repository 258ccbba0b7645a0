//! Which hosts' addresses are behind which interfaces: learned from what hosts send, as a bridge learns. No I/O.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use spray_wire::switch_view::{Address, neighbour_of};

/// What is known of the hosts behind interfaces that are given.
#[derive(Debug)]
pub(super) struct Stations {
    hosts: Vec<Station>,
    at: HashMap<IpAddr, usize>,
    /// The machine's own addresses on these interfaces: no host has them.
    own: HashSet<IpAddr>,
}

/// A host, or what else is behind its interface.
#[derive(Clone, Debug, Default)]
struct Station {
    addresses: Vec<IpAddr>,
    /// The Ethernet address that it sent from last.
    mac: Option<[u8; 6]>,
    /// When the present span began, and what it has sent to all others since.
    floods: (u64, u32),
}

/// What is news of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// An address that is its from now on.
    pub address: Option<IpAddr>,
    /// The Ethernet address that it sends from, from now on.
    pub mac: Option<[u8; 6]>,
    /// It has as many addresses as are learned.
    pub is_full: bool,
}

/// Whom a frame goes to that no switch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Host(usize),
    /// Every host but the one that it comes from.
    Others,
    Nobody,
    /// Nobody: too many of this host's went to all others already.
    TooMany,
}

impl Stations {
    /// Most addresses of a host: those beyond are never learned, and frames to them go to all.
    pub const ADDRESSES: usize = 32;
    /// Most frames of a host that go to all others in a span, in nanoseconds: who is asked about answers, and data goes through the
    /// switches.
    const FLOODS: u32 = 64;
    const SPAN_NS: u64 = 100_000_000;

    pub fn new(hosts: usize) -> Self {
        Self { hosts: vec![Station::default(); hosts], at: HashMap::new(), own: HashSet::new() }
    }

    /// Takes a frame that came from a host. Returns what is news of that host, and whom the frame goes to.
    pub fn hear(&mut self, from: usize, frame: &[u8], now_ns: u64) -> (News, To) {
        let Some(seen) = Seen::of(frame) else { return (News::default(), To::Nobody) };
        let news = self.learn(from, seen.source, Some(seen.mac));
        let to = match self.at.get(&seen.destination) {
            Some(host) if *host == from => To::Nobody,
            Some(host) => To::Host(*host),
            None if self.hosts[from].may_flood(now_ns) => To::Others,
            None => To::TooMany,
        };
        (news, to)
    }

    /// Notes that an address is a host's, and what is news of it; an address that was another's has moved. The Ethernet address is that of
    /// a host behind an interface of this machine.
    pub fn learn(&mut self, host: usize, address: IpAddr, mac: Option<[u8; 6]>) -> News {
        if !is_of_one_host(address) || self.own.contains(&address) || mac.is_some_and(|mac| mac[0] & 1 != 0) {
            return News::default();
        }
        let Some(Station { addresses, mac: own, .. }) = self.hosts.get_mut(host) else { return News::default() };
        let news = News { mac: mac.filter(|mac| own.replace(*mac) != Some(*mac)), ..News::default() };
        if addresses.contains(&address) || addresses.len() >= Self::ADDRESSES {
            return news;
        }
        addresses.push(address);
        let is_full = addresses.len() == Self::ADDRESSES;
        if let Some(before) = self.at.insert(address, host) {
            self.hosts[before].addresses.retain(|other| *other != address);
        }
        News { address: Some(address), is_full, ..news }
    }

    /// Takes the machine's own addresses. Returns those that are new, and those that are gone.
    pub fn set_own(&mut self, own: HashSet<IpAddr>) -> [Vec<IpAddr>; 2] {
        let new = own.difference(&self.own).copied().collect();
        let gone = self.own.difference(&own).copied().collect();
        for address in &own {
            if let Some(host) = self.at.remove(address) {
                self.hosts[host].addresses.retain(|other| other != address);
            }
        }
        self.own = own;
        [new, gone]
    }

    /// The addresses of a host.
    pub fn addresses(&self, host: usize) -> &[IpAddr] {
        &self.hosts[host].addresses
    }
}

impl Station {
    fn may_flood(&mut self, now_ns: u64) -> bool {
        let (begun_ns, count) = &mut self.floods;
        if now_ns.saturating_sub(*begun_ns) >= Stations::SPAN_NS {
            (*begun_ns, *count) = (now_ns, 0);
        }
        *count += 1;
        *count <= Stations::FLOODS
    }
}

/// Whether an address can be that of one host.
fn is_of_one_host(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

/// What a frame says of who sent it and whom it is for.
struct Seen {
    mac: [u8; 6],
    source: IpAddr,
    destination: IpAddr,
}

impl Seen {
    fn of(frame: &[u8]) -> Option<Self> {
        let v4 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<4>()?));
        let v6 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<16>()?));
        let (source, destination) = match *frame.get(12..)?.first_chunk()? {
            [0x08, 0x06] => (v4(28)?, v4(38)?),
            [0x08, 0x00] => (v4(26)?, v4(30)?),
            [0x86, 0xdd] => (v6(22)?, v6(38)?),
            _ => return None,
        };
        // A question of neighbour discovery goes to a group, and an answer may come from another address than it tells of.
        let destination = neighbour_of(frame).map_or(destination, address_of);
        let answers = destination.is_ipv6() && frame.get(20) == Some(&58) && frame.get(54) == Some(&136);
        let source = if answers { v6(62)? } else { source };
        Some(Self { mac: *frame.get(6..)?.first_chunk()?, source, destination })
    }
}

fn address_of([high, low]: Address) -> IpAddr {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_ne_bytes());
    bytes[8..].copy_from_slice(&low.to_ne_bytes());
    IpAddr::V6(bytes.into()).to_canonical()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];

    fn v4(host: u8) -> IpAddr {
        [10, 0, 0, host].into()
    }

    /// An ARP frame of a host that tells its own address and asks for, or answers, another.
    fn arp(mac: [u8; 6], own: IpAddr, other: IpAddr) -> Vec<u8> {
        let bytes = |address| match address {
            IpAddr::V4(address) => Ipv4Addr::octets(&address),
            IpAddr::V6(_) => unreachable!(),
        };
        [&[0xff; 6][..], &mac, &[8, 6], &[0; 14], &bytes(own), &[0; 6], &bytes(other), &[0; 18]].concat()
    }

    /// Neighbour discovery of such a type from `source` to `destination`, about `target`.
    fn nd(kind: u8, [source, destination, target]: [Ipv6Addr; 3]) -> Vec<u8> {
        let head = [&MACS[1][..], &MACS[0], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]].concat();
        [&head[..], &source.octets(), &destination.octets(), &[kind, 0, 0, 0, 0, 0, 0, 0], &target.octets()].concat()
    }

    //= docs/specs/switch.md#SW-26 interfaces that are given
    #[test]
    fn askers_are_known_and_unknown_hosts_are_asked_of_all() {
        let mut stations = Stations::new(3);
        let news = |address, mac| News { address: Some(address), mac: Some(mac), is_full: false };
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(2)), 0), (news(v4(1), MACS[0]), To::Others));
        assert_eq!(stations.hear(1, &arp(MACS[1], v4(2), v4(1)), 0), (news(v4(2), MACS[1]), To::Host(0)));
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(2)), 0), (News::default(), To::Host(1)));
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(1)), 0), (News::default(), To::Nobody), "its own");
        let other_nic = News { mac: Some(MACS[2]), ..News::default() };
        assert_eq!(stations.hear(0, &arp(MACS[2], v4(1), v4(2)), 0), (other_nic, To::Host(1)));
        assert_eq!(stations.hear(0, &[0; 60], 0), (News::default(), To::Nobody));
    }

    #[test]
    fn an_address_moves_and_none_is_of_two_hosts_or_the_machines() {
        let mut stations = Stations::new(3);
        stations.learn(0, v4(1), Some(MACS[0]));
        assert_eq!(stations.learn(2, v4(1), Some(MACS[2])).address, Some(v4(1)));
        assert!(stations.addresses(0).is_empty() && stations.addresses(2) == [v4(1)]);
        assert_eq!(stations.hear(1, &arp(MACS[1], v4(2), v4(1)), 0).1, To::Host(2));
        assert_eq!(stations.set_own([v4(1), v4(9)].into()).map(|list| list.len()), [2, 0]);
        assert!(stations.addresses(2).is_empty());
        assert_eq!(stations.learn(0, v4(9), Some(MACS[0])), News::default(), "the machine's");
        assert_eq!(stations.set_own([v4(9)].into()), [vec![], vec![v4(1)]]);
        for strange in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "ff02::1"] {
            assert_eq!(stations.learn(0, strange.parse().unwrap(), Some(MACS[0])), News::default(), "{strange}");
        }
        assert_eq!(stations.learn(0, v4(7), Some([0xff; 6])), News::default(), "a group's Ethernet address");
    }

    #[test]
    fn a_host_that_takes_every_address_fills_only_its_own_table() {
        let mut stations = Stations::new(3);
        let learned = (0..=u16::MAX).filter(|n| {
            let [high, low] = n.to_be_bytes();
            stations.learn(0, [11, 0, high, low].into(), Some(MACS[0])).address.is_some()
        });
        assert_eq!(learned.count(), Stations::ADDRESSES);
        let full =
            (0..=Stations::ADDRESSES as u8).map(|n| stations.learn(1, [12, 0, 0, n].into(), Some(MACS[1])).is_full);
        assert_eq!(full.filter(|is_full| *is_full).count(), 1, "it is told once");
        assert_eq!(stations.learn(2, v4(2), Some(MACS[1])).address, Some(v4(2)));
    }

    #[test]
    fn who_asks_for_nobody_is_passed_on_so_often_only() {
        let mut stations = Stations::new(2);
        let mut passed = |now_ns| {
            let to = (0..1000).map(|_| stations.hear(0, &arp(MACS[0], v4(1), v4(9)), now_ns).1);
            to.filter(|to| *to == To::Others).count() as u32
        };
        assert_eq!(passed(1_000_000_000), Stations::FLOODS);
        assert_eq!(passed(1_000_000_000 + Stations::SPAN_NS - 1), 0);
        assert_eq!(passed(1_000_000_000 + Stations::SPAN_NS), Stations::FLOODS);
    }

    #[test]
    fn neighbour_discovery_tells_targets() {
        let mut stations = Stations::new(2);
        let [one, two]: [Ipv6Addr; 2] = ["fe80::1".parse().unwrap(), "fd00::2".parse().unwrap()];
        let group = "ff02::1:ff00:2".parse().unwrap();
        let heard = |(news, to): (News, To)| (news.address, to);
        assert_eq!(heard(stations.hear(0, &nd(135, [one, group, two]), 0)), (Some(one.into()), To::Others));
        let answer = nd(136, ["fe80::9".parse().unwrap(), one, two]);
        assert_eq!(heard(stations.hear(1, &answer, 0)), (Some(two.into()), To::Host(0)));
        assert_eq!(heard(stations.hear(0, &nd(135, [one, group, two]), 0)), (None, To::Host(1)));
        let tentative = nd(135, [Ipv6Addr::UNSPECIFIED, group, two]);
        assert_eq!(
            heard(stations.hear(0, &tentative, 0)),
            (None, To::Host(1)),
            "a host that asks whether an address is free"
        );
    }
}
