//! The forwarding database: learns from received frames which host has which address. No I/O.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use super::claim::{Claim, Dispute, Verdict};
use spray_wire::switch_view::{Address, neighbour_of};

#[derive(Debug)]
pub(super) struct Fdb {
    hosts: Vec<HostEntry>,
    at: HashMap<IpAddr, usize>,
    /// The machine's own addresses on the interfaces, which no host gets.
    own: HashSet<IpAddr>,
    /// Addresses that the user has bound to hosts; they never move.
    bound: HashMap<IpAddr, usize>,
    /// Addresses in conflict, until the owner has answered or has not.
    claims: BTreeMap<IpAddr, Claim>,
    disputes: Vec<Dispute>,
}

#[derive(Clone, Debug, Default)]
struct HostEntry {
    addresses: Vec<IpAddr>,
    /// The source MAC of its last frame.
    mac: Option<[u8; 6]>,
    /// The start of the present window, and the frames flooded since.
    floods: (u64, u32),
    /// It is behind an interface of another machine.
    is_remote: bool,
    /// When a dispute of its claims was last reported.
    reported_at_ns: Option<u64>,
}

/// What has changed of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    /// A new address.
    pub address: Option<IpAddr>,
    /// A new MAC address.
    pub mac: Option<[u8; 6]>,
    /// It has [`Fdb::MAX_ADDRESSES`] now.
    pub is_full: bool,
    /// The frame's address is another host's and claimed.
    pub is_claim: bool,
}

/// The destination of a frame that no switch forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forward {
    Host(usize),
    Flood,
    Drop,
    /// Dropped and counted: the host floods too much, or uses another host's address.
    Refused,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClaimStep {
    /// Sends this probe to the owner.
    Probe(usize, Vec<u8>),
    /// The address has moved to this host; the claiming frame is to be flooded.
    Move(usize, Update, Vec<u8>),
}

impl Fdb {
    /// Further addresses of a host are not learned, and frames to them are flooded.
    pub const MAX_ADDRESSES: usize = 32;
    /// Limits the frames of a host that are flooded per window; data goes through the switches.
    const MAX_FLOODS: u32 = 64;
    const FLOOD_WINDOW_NS: u64 = 100_000_000;
    const MAX_CLAIMS: usize = 64;
    const MAX_CLAIMS_PER_HOST: usize = 8;
    const REPORT_INTERVAL_NS: u64 = 10_000_000_000;
    const MAX_DISPUTES: usize = 256;

    /// Creates an empty database of hosts, on this machine or another.
    pub fn new(is_here: impl Iterator<Item = bool>) -> Self {
        let station = |is_here: bool| HostEntry { is_remote: !is_here, ..HostEntry::default() };
        Self {
            hosts: is_here.map(station).collect(),
            at: HashMap::new(),
            own: HashSet::new(),
            bound: HashMap::new(),
            claims: BTreeMap::new(),
            disputes: Vec::new(),
        }
    }

    /// Binds an address to a host.
    //= docs/specs/switch.md#SW-26 never moves
    pub fn bind(&mut self, host: usize, address: IpAddr) -> Update {
        self.bound.insert(address, host);
        self.learn(host, address, None, 0)
    }

    /// Learns from a frame of a host, and returns what is new and where the frame goes.
    pub fn receive(&mut self, from: usize, frame: &[u8], now_ns: u64) -> (Update, Forward) {
        let Some(seen) = FrameAddresses::of(frame) else { return (Update::default(), Forward::Drop) };
        let is_disputed = self.claims.contains_key(&seen.source);
        let update = self.learn(from, seen.source, Some(seen.mac), now_ns);
        if update.is_claim {
            self.claims.get_mut(&seen.source).into_iter().for_each(|claim| claim.store(from, frame));
            return (update, Forward::Refused);
        }
        let to = match self.at.get(&seen.destination) {
            // The answer to a probe.
            None if is_disputed && seen.destination.is_unspecified() => Forward::Drop,
            Some(host) if *host == from => Forward::Drop,
            Some(host) => Forward::Host(*host),
            None if self.hosts[from].may_flood(now_ns) => Forward::Flood,
            None => Forward::Refused,
        };
        (update, to)
    }

    /// Records that a host uses an address, or its claim. `mac`: `None` for other machines' hosts.
    pub fn learn(&mut self, host: usize, address: IpAddr, mac: Option<[u8; 6]>, now_ns: u64) -> Update {
        if !is_unicast(address) || self.own.contains(&address) || mac.is_some_and(|mac| mac[0] & 1 != 0) {
            return Update::default();
        }
        let Some(station) = self.hosts.get_mut(host) else { return Update::default() };
        let update = Update { mac: mac.filter(|mac| station.mac.replace(*mac) != Some(*mac)), ..Update::default() };
        match self.owner(address) {
            Some(owner) if owner != host => {
                self.claim(host, owner, address, now_ns);
                return Update { is_claim: true, ..update };
            }
            _ => self.on_answer(host, address, now_ns),
        }
        if self.hosts[host].addresses.contains(&address) { update } else { self.give(host, address, update) }
    }

    /// Adds an entry of the kernel's neighbour table, which may be stale and hence claims nothing.
    pub fn learn_neighbour(&mut self, host: usize, address: IpAddr, mac: [u8; 6]) -> Update {
        match self.owner(address) {
            Some(owner) if owner == host && mac[0] & 1 == 0 => {
                let is_new = self.hosts[host].mac.replace(mac) != Some(mac);
                Update { mac: is_new.then_some(mac), ..Update::default() }
            }
            Some(_) => Update::default(),
            None => self.learn(host, address, Some(mac), 0),
        }
    }

    /// Advances all claims.
    pub fn tick(&mut self, now_ns: u64) -> Vec<ClaimStep> {
        let mut steps = Vec::new();
        for (address, mut claim) in std::mem::take(&mut self.claims) {
            let owner = self.at.get(&address).copied();
            let is_remote = owner.is_some_and(|owner| self.hosts[owner].is_remote);
            match claim.decide(is_remote, owner.is_none(), now_ns) {
                Verdict::Wait => {
                    self.claims.insert(address, claim);
                }
                Verdict::Probe => {
                    steps.extend(owner.map(|owner| ClaimStep::Probe(owner, claim.probe(address))));
                    self.claims.insert(address, claim);
                }
                Verdict::Keep => self.dispute(address, owner, claim.by, false, now_ns),
                Verdict::Move => {
                    let update = self.give(claim.by, address, Update::default());
                    self.dispute(address, owner, claim.by, update.address.is_some(), now_ns);
                    steps.push(ClaimStep::Move(claim.by, update, claim.frame));
                }
            }
        }
        steps
    }

    /// Takes the reports of how claims ended.
    pub fn disputes(&mut self) -> Vec<Dispute> {
        std::mem::take(&mut self.disputes)
    }

    fn owner(&self, address: IpAddr) -> Option<usize> {
        self.bound.get(&address).or_else(|| self.at.get(&address)).copied()
    }

    //= docs/specs/switch.md#SW-26 if none is answered
    fn claim(&mut self, by: usize, owner: usize, address: IpAddr, now_ns: u64) {
        if self.bound.contains_key(&address) {
            return self.dispute(address, Some(owner), by, false, now_ns);
        }
        let of_host = self.claims.values().filter(|claim| claim.by == by).count();
        if self.claims.len() < Self::MAX_CLAIMS && of_host < Self::MAX_CLAIMS_PER_HOST {
            self.claims.entry(address).or_insert_with(|| Claim::new(by, now_ns));
        }
    }

    /// The owner of an address has used it.
    fn on_answer(&mut self, owner: usize, address: IpAddr, now_ns: u64) {
        let is_remote = self.hosts[owner].is_remote;
        let Some(claim) = self.claims.get_mut(&address) else { return };
        if is_remote {
            claim.announced_ns = Some(now_ns);
        } else {
            let by = claim.by;
            self.claims.remove(&address);
            self.dispute(address, Some(owner), by, false, now_ns);
        }
    }

    /// Assigns an address to a host, unless it has [`Fdb::MAX_ADDRESSES`].
    fn give(&mut self, host: usize, address: IpAddr, update: Update) -> Update {
        if self.hosts[host].addresses.len() >= Self::MAX_ADDRESSES {
            return update;
        }
        if let Some(before) = self.at.insert(address, host) {
            self.hosts[before].addresses.retain(|other| *other != address);
        }
        let addresses = &mut self.hosts[host].addresses;
        addresses.push(address);
        Update { address: Some(address), is_full: addresses.len() == Self::MAX_ADDRESSES, ..update }
    }

    fn dispute(&mut self, address: IpAddr, of: Option<usize>, by: usize, has_moved: bool, now_ns: u64) {
        let Some(of) = of else { return };
        let reported_ns = self.hosts[by].reported_at_ns;
        let is_due = has_moved
            || reported_ns.is_none_or(|reported_ns| now_ns.saturating_sub(reported_ns) >= Self::REPORT_INTERVAL_NS);
        if is_due && self.disputes.len() < Self::MAX_DISPUTES {
            self.hosts[by].reported_at_ns = Some(now_ns);
            self.disputes.push(Dispute { address, of, by, has_moved });
        }
    }

    /// Sets the machine's own addresses. Returns those that are new, and those that are gone.
    pub fn set_local(&mut self, own: HashSet<IpAddr>) -> [Vec<IpAddr>; 2] {
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

    pub fn announced(&self, host: usize) -> Vec<IpAddr> {
        let claimed = self.claims.iter().filter(|(_, claim)| claim.by == host).map(|(address, _)| *address);
        self.hosts[host].addresses.iter().copied().chain(claimed).collect()
    }

    pub fn addresses(&self, host: usize) -> &[IpAddr] {
        &self.hosts[host].addresses
    }
}

impl HostEntry {
    fn may_flood(&mut self, now_ns: u64) -> bool {
        let (begun_ns, count) = &mut self.floods;
        if now_ns.saturating_sub(*begun_ns) >= Fdb::FLOOD_WINDOW_NS {
            (*begun_ns, *count) = (now_ns, 0);
        }
        *count += 1;
        *count <= Fdb::MAX_FLOODS
    }
}

/// Returns whether an address is unicast and not loopback.
pub(super) fn is_unicast(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

struct FrameAddresses {
    mac: [u8; 6],
    source: IpAddr,
    destination: IpAddr,
}

impl FrameAddresses {
    fn of(frame: &[u8]) -> Option<Self> {
        let v4 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<4>()?));
        let v6 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<16>()?));
        let (source, destination) = match *frame.get(12..)?.first_chunk()? {
            [0x08, 0x06] => (v4(28)?, v4(38)?),
            [0x08, 0x00] => (v4(26)?, v4(30)?),
            [0x86, 0xdd] => (v6(22)?, v6(38)?),
            _ => return None,
        };
        // A solicitation goes to a group, and an advertisement's source may not be its target.
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

    fn all_here(hosts: usize) -> Fdb {
        Fdb::new(std::iter::repeat_n(true, hosts))
    }

    fn v4(host: u8) -> IpAddr {
        [10, 0, 0, host].into()
    }

    /// Returns an ARP frame from address `own` for address `other`.
    fn arp(mac: [u8; 6], own: IpAddr, other: IpAddr) -> Vec<u8> {
        let bytes = |address| match address {
            IpAddr::V4(address) => Ipv4Addr::octets(&address),
            IpAddr::V6(_) => unreachable!(),
        };
        [&[0xff; 6][..], &mac, &[8, 6], &[0; 14], &bytes(own), &[0; 6], &bytes(other), &[0; 18]].concat()
    }

    /// Returns a neighbour discovery message of type `kind`.
    fn nd(kind: u8, [source, destination, target]: [Ipv6Addr; 3]) -> Vec<u8> {
        let head = [&MACS[1][..], &MACS[0], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]].concat();
        [&head[..], &source.octets(), &destination.octets(), &[kind, 0, 0, 0, 0, 0, 0, 0], &target.octets()].concat()
    }

    //= docs/specs/switch.md#SW-26 user-supplied interfaces
    #[test]
    fn senders_are_learned_and_unknown_destinations_flooded() {
        let mut fdb = all_here(3);
        let update = |address, mac| Update { address: Some(address), mac: Some(mac), is_full: false, is_claim: false };
        assert_eq!(fdb.receive(0, &arp(MACS[0], v4(1), v4(2)), 0), (update(v4(1), MACS[0]), Forward::Flood));
        assert_eq!(fdb.receive(1, &arp(MACS[1], v4(2), v4(1)), 0), (update(v4(2), MACS[1]), Forward::Host(0)));
        assert_eq!(fdb.receive(0, &arp(MACS[0], v4(1), v4(2)), 0), (Update::default(), Forward::Host(1)));
        assert_eq!(
            fdb.receive(0, &arp(MACS[0], v4(1), v4(1)), 0),
            (Update::default(), Forward::Drop),
            "the sender's address"
        );
        let other_nic = Update { mac: Some(MACS[2]), ..Update::default() };
        assert_eq!(fdb.receive(0, &arp(MACS[2], v4(1), v4(2)), 0), (other_nic, Forward::Host(1)));
        assert_eq!(fdb.receive(0, &[0; 60], 0), (Update::default(), Forward::Drop));
    }

    #[test]
    fn an_address_belongs_to_one_host_and_not_to_the_machine() {
        let mut fdb = all_here(3);
        fdb.learn(2, v4(1), Some(MACS[2]), 0);
        assert_eq!(fdb.set_local([v4(1), v4(9)].into()).map(|list| list.len()), [2, 0]);
        assert!(fdb.addresses(2).is_empty());
        assert_eq!(fdb.learn(0, v4(9), Some(MACS[0]), 0), Update::default(), "the machine's address");
        assert_eq!(fdb.set_local([v4(9)].into()), [vec![], vec![v4(1)]]);
        for strange in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "ff02::1"] {
            assert_eq!(fdb.learn(0, strange.parse().unwrap(), Some(MACS[0]), 0), Update::default(), "{strange}");
        }
        assert_eq!(fdb.learn(0, v4(7), Some([0xff; 6]), 0), Update::default(), "a group's Ethernet address");
    }

    /// Runs all steps until `until_ms`, in ticks of 50 ms; a probed host answers if `answers`.
    fn steps(fdb: &mut Fdb, until_ms: u64, answers: bool) -> Vec<ClaimStep> {
        let mut all = Vec::new();
        for now_ns in (0..=until_ms).step_by(50).map(|ms| ms * MS) {
            for step in fdb.tick(now_ns) {
                if let (ClaimStep::Probe(host, frame), true) = (&step, answers) {
                    assert_eq!(frame[..6], [0xff; 6]);
                    let answer = arp(MACS[*host], v4(1), Ipv4Addr::UNSPECIFIED.into());
                    assert_eq!(fdb.receive(*host, &answer, now_ns).1, Forward::Drop);
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
            let mut fdb = all_here(3);
            fdb.receive(0, &arp(MACS[0], v4(1), v4(3)), 0);
            let taking = arp(MACS[2], v4(1), v4(1));
            let (update, to) = fdb.receive(2, &taking, 0);
            assert!(update.is_claim && update.address.is_none() && to == Forward::Refused);
            assert_eq!(fdb.addresses(0), [v4(1)], "bound until then");
            let steps = steps(&mut fdb, 2000, answers);
            let owner = if answers { 0 } else { 2 };
            assert_eq!(fdb.receive(1, &arp(MACS[1], v4(2), v4(1)), 0).1, Forward::Host(owner));
            assert_eq!(fdb.addresses(owner), [v4(1)]);
            let dispute = Dispute { address: v4(1), of: 0, by: 2, has_moved: !answers };
            assert_eq!(fdb.disputes(), [dispute]);
            let moved = matches!(&steps.last(), Some(ClaimStep::Move(2, Update { address: Some(_), .. }, frame)) if *frame == taking);
            assert_eq!((moved, steps.len()), (!answers, if answers { 1 } else { 4 }), "{steps:?}");
        }
    }

    #[test]
    //= docs/specs/switch.md#SW-26 never moves
    fn an_address_that_is_bound_never_moves() {
        let mut fdb = all_here(3);
        assert_eq!(fdb.bind(0, v4(1)).address, Some(v4(1)));
        for host in [1, 2] {
            assert_eq!(fdb.receive(host, &arp(MACS[host], v4(1), v4(2)), 0).1, Forward::Refused);
            fdb.learn_neighbour(host, v4(1), MACS[host]);
        }
        assert!(steps(&mut fdb, 3000, false).is_empty());
        assert_eq!((fdb.disputes().len(), fdb.addresses(0)), (2, &[v4(1)][..]));
        // Reported every 10 s.
        let forwards = (0..20_000).map(|ms| fdb.receive(1, &arp(MACS[1], v4(1), v4(2)), ms * MS).1);
        assert!(forwards.collect::<Vec<_>>().iter().all(|to| *to == Forward::Refused));
        assert_eq!(fdb.disputes().len(), 1);
    }

    /// The owner's machine advertises the address until its own probes are unanswered.
    #[test]
    //= docs/specs/switch.md#SW-26 that machine sends the requests
    fn a_remote_address_moves_when_it_is_no_longer_advertised() {
        for (told_until, moves) in [(5000, false), (900, true), (0, true)] {
            let mut fdb = Fdb::new([true, false].into_iter());
            fdb.learn(1, v4(1), None, 0);
            assert!(fdb.receive(0, &arp(MACS[0], v4(1), v4(2)), 0).0.is_claim);
            assert_eq!(fdb.announced(0), [v4(1)], "it is advertised");
            let mut moved = false;
            for ms in (0..2100).step_by(100) {
                if ms <= told_until && ms % 200 == 0 {
                    fdb.learn(1, v4(1), None, ms * MS);
                }
                let steps = fdb.tick(ms * MS);
                assert!(steps.iter().all(|step| matches!(step, ClaimStep::Move(0, ..))), "{steps:?}");
                moved |= !steps.is_empty();
            }
            assert_eq!(moved, moves, "{told_until}");
        }
    }

    #[test]
    fn a_host_has_at_most_eight_claims() {
        let mut fdb = all_here(2);
        (1..=20).for_each(|host| assert!(fdb.learn(0, v4(host), Some(MACS[0]), 0).address.is_some()));
        (1..=20).for_each(|host| assert!(fdb.learn(1, v4(host), Some(MACS[1]), 0).is_claim));
        assert_eq!(fdb.claims.len(), Fdb::MAX_CLAIMS_PER_HOST);
    }

    /// The checksum of RFC 4861, for a solicitation to the solicited-node group.
    #[test]
    fn a_neighbour_solicitation_has_a_valid_checksum() {
        let address: Ipv6Addr = "fd00::1:2".parse().unwrap();
        let frame = Claim::new(0, 0).probe(address.into());
        assert_eq!(frame.len(), 78);
        assert_eq!(frame[38..54], "ff02::1:ff01:2".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(FrameAddresses::of(&frame).unwrap().destination, IpAddr::V6(address));
        let pseudo = [&frame[22..54], &[0, 0, 0, 24, 0, 0, 0, 58], &frame[54..]].concat();
        let sum: u32 = pseudo.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_host_that_uses_every_address_fills_only_its_table() {
        let mut fdb = all_here(3);
        let learned = (0..=u16::MAX).filter(|n| {
            let [high, low] = n.to_be_bytes();
            fdb.learn(0, [11, 0, high, low].into(), Some(MACS[0]), 0).address.is_some()
        });
        assert_eq!(learned.count(), Fdb::MAX_ADDRESSES);
        let full = (0..=Fdb::MAX_ADDRESSES as u8).map(|n| fdb.learn(1, [12, 0, 0, n].into(), Some(MACS[1]), 0).is_full);
        assert_eq!(full.filter(|is_full| *is_full).count(), 1, "it is reported once");
        assert_eq!(fdb.learn(2, v4(2), Some(MACS[1]), 0).address, Some(v4(2)));
    }

    #[test]
    fn requests_for_unknown_addresses_are_rate_limited() {
        let mut fdb = all_here(2);
        let mut passed = |now_ns| {
            let to = (0..1000).map(|_| fdb.receive(0, &arp(MACS[0], v4(1), v4(9)), now_ns).1);
            to.filter(|to| *to == Forward::Flood).count() as u32
        };
        assert_eq!(passed(1_000_000_000), Fdb::MAX_FLOODS);
        assert_eq!(passed(1_000_000_000 + Fdb::FLOOD_WINDOW_NS - 1), 0);
        assert_eq!(passed(1_000_000_000 + Fdb::FLOOD_WINDOW_NS), Fdb::MAX_FLOODS);
    }

    #[test]
    fn neighbour_discovery_targets_are_parsed() {
        let mut fdb = all_here(2);
        let [one, two]: [Ipv6Addr; 2] = ["fe80::1".parse().unwrap(), "fd00::2".parse().unwrap()];
        let group = "ff02::1:ff00:2".parse().unwrap();
        let forwards = |(update, to): (Update, Forward)| (update.address, to);
        assert_eq!(forwards(fdb.receive(0, &nd(135, [one, group, two]), 0)), (Some(one.into()), Forward::Flood));
        let answer = nd(136, ["fe80::9".parse().unwrap(), one, two]);
        assert_eq!(forwards(fdb.receive(1, &answer, 0)), (Some(two.into()), Forward::Host(0)));
        assert_eq!(forwards(fdb.receive(0, &nd(135, [one, group, two]), 0)), (None, Forward::Host(1)));
        let tentative = nd(135, [Ipv6Addr::UNSPECIFIED, group, two]);
        assert_eq!(
            forwards(fdb.receive(0, &tentative, 0)),
            (None, Forward::Host(1)),
            "a host that asks whether an address is free"
        );
    }
}
