//! Which hosts' addresses are behind which interfaces: learned from what hosts send, as a bridge learns. No I/O.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use super::claim::{Claim, Dispute, Verdict};
use spray_wire::switch_view::{Address, neighbour_of};

/// What is known of the hosts behind interfaces that are given.
#[derive(Debug)]
pub(super) struct Stations {
    hosts: Vec<Station>,
    at: HashMap<IpAddr, usize>,
    /// The machine's own addresses on these interfaces: no host has them.
    own: HashSet<IpAddr>,
    /// Addresses that the user has bound to hosts.
    bound: HashMap<IpAddr, usize>,
    /// Addresses of a host that another one uses, until the first has answered or has not.
    claims: BTreeMap<IpAddr, Claim>,
    /// How claims ended, for the user.
    disputes: Vec<Dispute>,
}

/// A host, or what else is behind its interface.
#[derive(Clone, Debug, Default)]
struct Station {
    addresses: Vec<IpAddr>,
    /// The Ethernet address that it sent from last.
    mac: Option<[u8; 6]>,
    /// When the present span began, and what it has sent to all others since.
    floods: (u64, u32),
    /// It is behind an interface of another box.
    is_elsewhere: bool,
    /// When it was last reported that it claims addresses of others.
    disputed_ns: Option<u64>,
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
    /// The address is another host's, as long as that answers.
    pub is_claim: bool,
}

/// Whom a frame goes to that no switch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Host(usize),
    /// Every host but the one that it comes from.
    Others,
    Nobody,
    /// Nobody: too many of this host's went to all others already, or it comes from an address of another host.
    Refused,
}

/// What is to be done about claims.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This question goes to that host.
    Ask(usize, Vec<u8>),
    /// The host has the address from now on, and the frame that claimed it goes to all others.
    Move(usize, News, Vec<u8>),
}

impl Stations {
    /// Most addresses of a host: those beyond are never learned, and frames to them go to all.
    pub const ADDRESSES: usize = 32;
    /// Most frames of a host that go to all others in a span, in nanoseconds: who is asked about answers, and data goes through the
    /// switches.
    const FLOODS: u32 = 64;
    const SPAN_NS: u64 = 100_000_000;
    /// Most claims at a time, and most of a host.
    const CLAIMS: usize = 64;
    const CLAIMS_OF_HOST: usize = 8;
    /// How often it is reported that a host claims addresses of others.
    const TELL_NS: u64 = 10_000_000_000;
    /// Most disputes that wait for the user.
    const DISPUTES: usize = 256;

    /// For hosts of which each is behind an interface of this box or elsewhere.
    pub fn new(is_here: impl Iterator<Item = bool>) -> Self {
        let station = |is_here: bool| Station { is_elsewhere: !is_here, ..Station::default() };
        Self {
            hosts: is_here.map(station).collect(),
            at: HashMap::new(),
            own: HashSet::new(),
            bound: HashMap::new(),
            claims: BTreeMap::new(),
            disputes: Vec::new(),
        }
    }

    /// Binds an address to a host: no other gets it.
    //= docs/specs/switch.md#SW-26 never moves
    pub fn bind(&mut self, host: usize, address: IpAddr) -> News {
        self.bound.insert(address, host);
        self.learn(host, address, None, 0)
    }

    /// Takes a frame that came from a host. Returns what is news of that host, and whom the frame goes to.
    pub fn hear(&mut self, from: usize, frame: &[u8], now_ns: u64) -> (News, To) {
        let Some(seen) = Seen::of(frame) else { return (News::default(), To::Nobody) };
        let is_disputed = self.claims.contains_key(&seen.source);
        let news = self.learn(from, seen.source, Some(seen.mac), now_ns);
        if news.is_claim {
            self.claims.get_mut(&seen.source).into_iter().for_each(|claim| claim.keep(from, frame));
            return (news, To::Refused);
        }
        let to = match self.at.get(&seen.destination) {
            // Its answer to a question of ours.
            None if is_disputed && seen.destination.is_unspecified() => To::Nobody,
            Some(host) if *host == from => To::Nobody,
            Some(host) => To::Host(*host),
            None if self.hosts[from].may_flood(now_ns) => To::Others,
            None => To::Refused,
        };
        (news, to)
    }

    /// Notes that a host uses an address, and what is news of it. One of another host is claimed. The Ethernet address is that of
    /// a host behind an interface of this machine.
    pub fn learn(&mut self, host: usize, address: IpAddr, mac: Option<[u8; 6]>, now_ns: u64) -> News {
        if !is_of_one_host(address) || self.own.contains(&address) || mac.is_some_and(|mac| mac[0] & 1 != 0) {
            return News::default();
        }
        let Some(station) = self.hosts.get_mut(host) else { return News::default() };
        let news = News { mac: mac.filter(|mac| station.mac.replace(*mac) != Some(*mac)), ..News::default() };
        match self.owner(address) {
            Some(owner) if owner != host => {
                self.claim(host, owner, address, now_ns);
                return News { is_claim: true, ..news };
            }
            _ => self.on_answer(host, address, now_ns),
        }
        if self.hosts[host].addresses.contains(&address) { news } else { self.give(host, address, news) }
    }

    /// Notes what the machine's kernel knows of a host's neighbours, which may be old.
    pub fn learn_of_kernel(&mut self, host: usize, address: IpAddr, mac: [u8; 6]) -> News {
        match self.owner(address) {
            Some(owner) if owner == host && mac[0] & 1 == 0 => {
                let is_news = self.hosts[host].mac.replace(mac) != Some(mac);
                News { mac: is_news.then_some(mac), ..News::default() }
            }
            Some(_) => News::default(),
            None => self.learn(host, address, Some(mac), 0),
        }
    }

    /// Settles what is due of claims, and asks the hosts that have the addresses.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        for (address, mut claim) in std::mem::take(&mut self.claims) {
            let owner = self.at.get(&address).copied();
            let is_elsewhere = owner.is_some_and(|owner| self.hosts[owner].is_elsewhere);
            match claim.look(is_elsewhere, owner.is_none(), now_ns) {
                Verdict::Wait => {
                    self.claims.insert(address, claim);
                }
                Verdict::Ask => {
                    steps.extend(owner.map(|owner| Step::Ask(owner, claim.question(address))));
                    self.claims.insert(address, claim);
                }
                Verdict::Keep => self.dispute(address, owner, claim.by, false, now_ns),
                Verdict::Move => {
                    let news = self.give(claim.by, address, News::default());
                    self.dispute(address, owner, claim.by, news.address.is_some(), now_ns);
                    steps.push(Step::Move(claim.by, news, claim.frame));
                }
            }
        }
        steps
    }

    /// How claims ended since the last call.
    pub fn disputes(&mut self) -> Vec<Dispute> {
        std::mem::take(&mut self.disputes)
    }

    fn owner(&self, address: IpAddr) -> Option<usize> {
        self.bound.get(&address).or_else(|| self.at.get(&address)).copied()
    }

    /// A host uses an address of another.
    //= docs/specs/switch.md#SW-26 if none is answered
    fn claim(&mut self, by: usize, owner: usize, address: IpAddr, now_ns: u64) {
        if self.bound.contains_key(&address) {
            return self.dispute(address, Some(owner), by, false, now_ns);
        }
        let of_host = self.claims.values().filter(|claim| claim.by == by).count();
        if self.claims.len() < Self::CLAIMS && of_host < Self::CLAIMS_OF_HOST {
            self.claims.entry(address).or_insert_with(|| Claim::new(by, now_ns));
        }
    }

    /// The host that has an address uses it.
    fn on_answer(&mut self, owner: usize, address: IpAddr, now_ns: u64) {
        let is_elsewhere = self.hosts[owner].is_elsewhere;
        let Some(claim) = self.claims.get_mut(&address) else { return };
        if is_elsewhere {
            claim.on_told(now_ns);
        } else {
            let by = claim.by;
            self.claims.remove(&address);
            self.dispute(address, Some(owner), by, false, now_ns);
        }
    }

    /// Has an address be that of a host, unless it has as many as are learned.
    fn give(&mut self, host: usize, address: IpAddr, news: News) -> News {
        if self.hosts[host].addresses.len() >= Self::ADDRESSES {
            return news;
        }
        if let Some(before) = self.at.insert(address, host) {
            self.hosts[before].addresses.retain(|other| *other != address);
        }
        let addresses = &mut self.hosts[host].addresses;
        addresses.push(address);
        News { address: Some(address), is_full: addresses.len() == Self::ADDRESSES, ..news }
    }

    fn dispute(&mut self, address: IpAddr, of: Option<usize>, by: usize, has_moved: bool, now_ns: u64) {
        let Some(of) = of else { return };
        let told_ns = self.hosts[by].disputed_ns;
        let is_due = has_moved || told_ns.is_none_or(|told_ns| now_ns.saturating_sub(told_ns) >= Self::TELL_NS);
        if is_due && self.disputes.len() < Self::DISPUTES {
            self.hosts[by].disputed_ns = Some(now_ns);
            self.disputes.push(Dispute { address, of, by, has_moved });
        }
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

    /// The addresses of a host, and those that it claims.
    pub fn used(&self, host: usize) -> Vec<IpAddr> {
        let claimed = self.claims.iter().filter(|(_, claim)| claim.by == host).map(|(address, _)| *address);
        self.hosts[host].addresses.iter().copied().chain(claimed).collect()
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
pub(super) fn is_of_one_host(address: IpAddr) -> bool {
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

    const MS: u64 = 1_000_000;

    fn all_here(hosts: usize) -> Stations {
        Stations::new(std::iter::repeat_n(true, hosts))
    }

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

    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[test]
    fn askers_are_known_and_unknown_hosts_are_asked_of_all() {
        let mut stations = all_here(3);
        let news = |address, mac| News { address: Some(address), mac: Some(mac), is_full: false, is_claim: false };
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(2)), 0), (news(v4(1), MACS[0]), To::Others));
        assert_eq!(stations.hear(1, &arp(MACS[1], v4(2), v4(1)), 0), (news(v4(2), MACS[1]), To::Host(0)));
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(2)), 0), (News::default(), To::Host(1)));
        assert_eq!(stations.hear(0, &arp(MACS[0], v4(1), v4(1)), 0), (News::default(), To::Nobody), "its own");
        let other_nic = News { mac: Some(MACS[2]), ..News::default() };
        assert_eq!(stations.hear(0, &arp(MACS[2], v4(1), v4(2)), 0), (other_nic, To::Host(1)));
        assert_eq!(stations.hear(0, &[0; 60], 0), (News::default(), To::Nobody));
    }

    #[test]
    fn no_address_is_of_two_hosts_or_the_machines() {
        let mut stations = all_here(3);
        stations.learn(2, v4(1), Some(MACS[2]), 0);
        assert_eq!(stations.set_own([v4(1), v4(9)].into()).map(|list| list.len()), [2, 0]);
        assert!(stations.addresses(2).is_empty());
        assert_eq!(stations.learn(0, v4(9), Some(MACS[0]), 0), News::default(), "the machine's");
        assert_eq!(stations.set_own([v4(9)].into()), [vec![], vec![v4(1)]]);
        for strange in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "ff02::1"] {
            assert_eq!(stations.learn(0, strange.parse().unwrap(), Some(MACS[0]), 0), News::default(), "{strange}");
        }
        assert_eq!(stations.learn(0, v4(7), Some([0xff; 6]), 0), News::default(), "a group's Ethernet address");
    }

    /// What is due until `until_ms`, looked at every 50 ms; a host that is asked answers if `answers`.
    fn steps(stations: &mut Stations, until_ms: u64, answers: bool) -> Vec<Step> {
        let mut all = Vec::new();
        for now_ns in (0..=until_ms).step_by(50).map(|ms| ms * MS) {
            for step in stations.tick(now_ns) {
                if let (Step::Ask(host, frame), true) = (&step, answers) {
                    assert_eq!(frame[..6], [0xff; 6]);
                    let answer = arp(MACS[*host], v4(1), Ipv4Addr::UNSPECIFIED.into());
                    assert_eq!(stations.hear(*host, &answer, now_ns).1, To::Nobody);
                }
                all.push(step);
            }
        }
        all
    }

    #[test]
    //= docs/specs/switch.md#SW-26 if none is answered
    fn an_address_stays_with_a_host_that_answers_and_moves_from_one_that_does_not() {
        for answers in [true, false] {
            let mut stations = all_here(3);
            stations.hear(0, &arp(MACS[0], v4(1), v4(3)), 0);
            let taking = arp(MACS[2], v4(1), v4(1));
            let (news, to) = stations.hear(2, &taking, 0);
            assert!(news.is_claim && news.address.is_none() && to == To::Refused);
            assert_eq!(stations.addresses(0), [v4(1)], "it has it until then");
            let steps = steps(&mut stations, 2000, answers);
            let owner = if answers { 0 } else { 2 };
            assert_eq!(stations.hear(1, &arp(MACS[1], v4(2), v4(1)), 0).1, To::Host(owner));
            assert_eq!(stations.addresses(owner), [v4(1)]);
            let dispute = Dispute { address: v4(1), of: 0, by: 2, has_moved: !answers };
            assert_eq!(stations.disputes(), [dispute]);
            let moved =
                matches!(&steps.last(), Some(Step::Move(2, News { address: Some(_), .. }, frame)) if *frame == taking);
            assert_eq!((moved, steps.len()), (!answers, if answers { 1 } else { 4 }), "{steps:?}");
        }
    }

    #[test]
    //= docs/specs/switch.md#SW-26 never moves
    fn an_address_that_is_bound_never_moves() {
        let mut stations = all_here(3);
        assert_eq!(stations.bind(0, v4(1)).address, Some(v4(1)));
        for host in [1, 2] {
            assert_eq!(stations.hear(host, &arp(MACS[host], v4(1), v4(2)), 0).1, To::Refused);
            stations.learn_of_kernel(host, v4(1), MACS[host]);
        }
        assert!(steps(&mut stations, 3000, false).is_empty());
        assert_eq!((stations.disputes().len(), stations.addresses(0)), (2, &[v4(1)][..]));
        // It is reported every 10 s.
        let heard = (0..20_000).map(|ms| stations.hear(1, &arp(MACS[1], v4(1), v4(2)), ms * MS).1);
        assert!(heard.collect::<Vec<_>>().iter().all(|to| *to == To::Refused));
        assert_eq!(stations.disputes().len(), 1);
    }

    /// The box of the host that has it says so again and again, until it finds that it does not answer.
    #[test]
    //= docs/specs/switch.md#SW-26 that machine sends the requests
    fn an_address_of_another_box_moves_when_that_box_no_longer_says_it_is_there() {
        for (told_until, moves) in [(5000, false), (900, true), (0, true)] {
            let mut stations = Stations::new([true, false].into_iter());
            stations.learn(1, v4(1), None, 0);
            assert!(stations.hear(0, &arp(MACS[0], v4(1), v4(2)), 0).0.is_claim);
            assert_eq!(stations.used(0), [v4(1)], "it is said to the others");
            let mut moved = false;
            for ms in (0..2100).step_by(100) {
                if ms <= told_until && ms % 200 == 0 {
                    stations.learn(1, v4(1), None, ms * MS);
                }
                let steps = stations.tick(ms * MS);
                assert!(steps.iter().all(|step| matches!(step, Step::Move(0, ..))), "{steps:?}");
                moved |= !steps.is_empty();
            }
            assert_eq!(moved, moves, "{told_until}");
        }
    }

    #[test]
    fn a_host_that_claims_every_address_has_eight_claims() {
        let mut stations = all_here(2);
        (1..=20).for_each(|host| assert!(stations.learn(0, v4(host), Some(MACS[0]), 0).address.is_some()));
        (1..=20).for_each(|host| assert!(stations.learn(1, v4(host), Some(MACS[1]), 0).is_claim));
        assert_eq!(stations.claims.len(), Stations::CLAIMS_OF_HOST);
    }

    /// As RFC 4861 has the checksum, over a question to the group of the address.
    #[test]
    fn a_neighbour_is_asked_by_a_question_with_a_right_checksum() {
        let address: Ipv6Addr = "fd00::1:2".parse().unwrap();
        let frame = Claim::new(0, 0).question(address.into());
        assert_eq!(frame.len(), 78);
        assert_eq!(frame[38..54], "ff02::1:ff01:2".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(Seen::of(&frame).unwrap().destination, IpAddr::V6(address));
        let pseudo = [&frame[22..54], &[0, 0, 0, 24, 0, 0, 0, 58], &frame[54..]].concat();
        let sum: u32 = pseudo.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_host_that_takes_every_address_fills_only_its_own_table() {
        let mut stations = all_here(3);
        let learned = (0..=u16::MAX).filter(|n| {
            let [high, low] = n.to_be_bytes();
            stations.learn(0, [11, 0, high, low].into(), Some(MACS[0]), 0).address.is_some()
        });
        assert_eq!(learned.count(), Stations::ADDRESSES);
        let full =
            (0..=Stations::ADDRESSES as u8).map(|n| stations.learn(1, [12, 0, 0, n].into(), Some(MACS[1]), 0).is_full);
        assert_eq!(full.filter(|is_full| *is_full).count(), 1, "it is told once");
        assert_eq!(stations.learn(2, v4(2), Some(MACS[1]), 0).address, Some(v4(2)));
    }

    #[test]
    fn who_asks_for_nobody_is_passed_on_so_often_only() {
        let mut stations = all_here(2);
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
        let mut stations = all_here(2);
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
