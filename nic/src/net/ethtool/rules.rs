//! Flow steering rules of a NIC (ntuple: `ethtool -N IF flow-type udp4 dst-ip ... action QUEUE`).

use std::io;
use std::net::IpAddr;

use super::features::word;
use super::{Ethtool, Request, UdpFlow};

/// Steers UDP packets to a port of an address to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Destination address.
    pub address: IpAddr,
    /// Destination port.
    pub port: u16,
    /// Queue.
    pub queue: u32,
    /// Index in the NIC's table.
    pub place: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Rules that match exactly what a [`Rule`] does.
    pub(crate) rules: Vec<Rule>,
    /// Free indices, the best one last, at most [`MAX_FREE`].
    pub(crate) free: Vec<u32>,
}

pub(crate) trait RuleTable {
    fn contents(&self) -> io::Result<Contents>;

    /// Adds a rule. Returns its index, which the driver may have changed.
    fn add(&self, rule: Rule) -> io::Result<u32>;

    fn remove(&self, rule: Rule) -> io::Result<()>;
}

/// Word offsets in `struct ethtool_rxnfc`: `data`, and the rule `fs` (flow type, fields to compare,
/// a mask of the same layout, queue, index), then the number of indices and the indices.
const DATA: usize = 2;
const FLOW: usize = 4;
const FIELDS: usize = 5;
const MASK: usize = 23;
const QUEUE: usize = 42;
const PLACE: usize = 44;
const COUNT: usize = 46;
const PLACES: usize = 47;
const GET_COUNT: u32 = 0x2e;
const GET: u32 = 0x2f;
const GET_PLACES: u32 = 0x30;
const DELETE: u32 = 0x31;
const INSERT: u32 = 0x32;
/// Flag of drivers that choose the index of a rule.
const CHOOSES: u32 = 1 << 31;
const ANY: u32 = u32::MAX;
const MAX_FREE: usize = spray_wire::Ports::COUNT as usize;

impl RuleTable for Ethtool {
    fn contents(&self) -> io::Result<Contents> {
        let count = self.get(GET_COUNT)?;
        let used = count[COUNT] as usize;
        let mut places = vec![0; PLACES + used];
        places[COUNT] = used as u32;
        self.ioctl_words(GET_PLACES, &mut places)?;
        // Rules may have been removed in the meantime.
        let used = used.min(places[COUNT] as usize);
        let (size, used) = (places[DATA], &places[PLACES..PLACES + used]);
        let free = if count[DATA] & CHOOSES == 0 { highest_free(size, used) } else { vec![ANY; MAX_FREE] };
        Ok(Contents { rules: used.iter().filter_map(|&place| self.rule(place)).collect(), free })
    }

    fn add(&self, rule: Rule) -> io::Result<u32> {
        let mut request = rule.insertion();
        self.ioctl_words(INSERT, &mut request.0)?;
        Ok(request.0[PLACE])
    }

    fn remove(&self, rule: Rule) -> io::Result<()> {
        self.ioctl_words(DELETE, &mut rule.removal().0)
    }
}

impl Ethtool {
    /// Returns the NIC's rules for UDP packets to a port of an address, without others.
    pub fn rules(&self) -> io::Result<Vec<Rule>> {
        Ok(self.contents()?.rules)
    }

    /// Returns the rule at an index, if it has the form of a [`Rule`].
    fn rule(&self, place: u32) -> Option<Rule> {
        let mut request = Request::NONE;
        request.0[PLACE] = place;
        self.ioctl_words(GET, &mut request.0).ok()?;
        request.rule()
    }
}

/// Returns free indices below `size`, the highest one last, which `ethtool` uses first as well.
fn highest_free(size: u32, used: &[u32]) -> Vec<u32> {
    let mut free: Vec<u32> = (0..size).rev().filter(|place| !used.contains(place)).take(MAX_FREE).collect();
    free.reverse();
    free
}

impl Rule {
    /// Creates a rule without an index.
    #[must_use]
    pub const fn new(address: IpAddr, port: u16, queue: u32) -> Self {
        Self { address, port, queue, place: 0 }
    }

    pub(crate) fn insertion(self) -> Request {
        let mut words = [0; Request::WORDS];
        // Source before destination, in the addresses and in the ports that follow them.
        let (flow, address): (_, Vec<u8>) = match self.address {
            IpAddr::V4(address) => (UdpFlow::V4, address.octets().into()),
            IpAddr::V6(address) => (UdpFlow::V6, address.octets().into()),
        };
        (words[0], words[FLOW], words[PLACE]) = (INSERT, flow.number(), self.place);
        let length = address.len() / 4;
        for (at, part) in address.chunks_exact(4).enumerate() {
            words[FIELDS + length + at] = word(part);
            words[MASK + length + at] = u32::MAX;
        }
        let [high, low] = self.port.to_be_bytes();
        words[FIELDS + 2 * length] = u32::from_ne_bytes([0, 0, high, low]);
        words[MASK + 2 * length] = u32::from_ne_bytes([0, 0, 0xff, 0xff]);
        let queue = u64::from(self.queue).to_ne_bytes();
        for (at, half) in queue.chunks_exact(4).enumerate() {
            words[QUEUE + at] = word(half);
        }
        Request(words)
    }

    /// Returns the request that removes it. Drivers use the index only; the rest identifies the
    /// rule, see [`Request::is_of_another`].
    pub(crate) fn removal(self) -> Request {
        let mut request = self.insertion();
        request.0[0] = DELETE;
        request
    }
}

impl Request {
    /// Returns the rule in the request; `None` if it matches more than the destination.
    pub(crate) fn rule(&self) -> Option<Rule> {
        let words = &self.0;
        let length = if words[FLOW] == UdpFlow::V4.number() { 1 } else { 4 };
        let parts = &words[FIELDS + length..=FIELDS + 2 * length];
        let bytes: Vec<u8> = parts.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (address, ports) = bytes.split_at(4 * length);
        let address = match <[u8; 16]>::try_from(address) {
            Ok(octets) => octets.into(),
            Err(_) => <[u8; 4]>::try_from(address).ok()?.into(),
        };
        let port = u16::from_be_bytes([ports[2], ports[3]]);
        let queue = words[QUEUE + usize::from(cfg!(target_endian = "big"))];
        let rule = Rule { address, port, queue, place: words[PLACE] };
        (rule.insertion().0[FLOW..COUNT] == words[FLOW..COUNT]).then_some(rule)
    }

    /// Returns the query for the rule that this request removes; `None` of other requests.
    pub(crate) fn asks_before(&self) -> Option<Self> {
        let mut request = Self::NONE;
        (request.0[0], request.0[PLACE]) = (GET, self.0[PLACE]);
        (self.0[0] == DELETE).then_some(request)
    }

    /// Returns whether the rule `found` has another port than the one to remove: another program's.
    pub(crate) fn is_of_another(&self, found: &Self) -> bool {
        let port = FIELDS + if self.0[FLOW] == UdpFlow::V4.number() { 2 } else { 8 };
        (self.0[FLOW], self.0[port]) != (found.0[FLOW], found.0[port])
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// `struct ethtool_rxnfc` of `linux/ethtool.h`.
    #[repr(C)]
    struct RxNfc {
        cmd: u32,
        flow_type: u32,
        data: u64,
        fs: FlowSpec,
        rule_cnt: u32,
        rule_locs: [u32; 0],
    }

    #[repr(C)]
    struct FlowSpec {
        flow_type: u32,
        h_u: [u8; 52],
        h_ext: [u32; 5],
        m_u: [u8; 52],
        m_ext: [u32; 5],
        ring_cookie: u64,
        location: u32,
    }

    #[test]
    fn the_offsets_are_those_of_the_kernel() {
        let fs = offset_of!(RxNfc, fs);
        let at = |offset: usize| offset / 4;
        assert_eq!(at(offset_of!(RxNfc, data)), DATA);
        assert_eq!(at(fs + offset_of!(FlowSpec, flow_type)), FLOW);
        assert_eq!(at(fs + offset_of!(FlowSpec, h_u)), FIELDS);
        assert_eq!(at(fs + offset_of!(FlowSpec, m_u)), MASK);
        assert_eq!(at(fs + offset_of!(FlowSpec, ring_cookie)), QUEUE);
        assert_eq!(at(fs + offset_of!(FlowSpec, location)), PLACE);
        assert_eq!(at(offset_of!(RxNfc, rule_cnt)), COUNT);
        assert_eq!(at(offset_of!(RxNfc, rule_locs)), PLACES);
        assert_eq!(size_of::<RxNfc>(), size_of::<Request>());
    }

    fn bytes(request: &Request) -> Vec<u8> {
        request.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// `struct ethtool_tcpip4_spec` is two addresses, two ports, and a byte; that of IPv6 is the
    /// same with longer addresses.
    #[test]
    fn a_rule_matches_the_destination_only() {
        let v4 = bytes(&Rule { address: [10, 1, 2, 3].into(), port: 0xf001, queue: 5, place: 7 }.insertion());
        assert_eq!(v4[16..20], 2_u32.to_ne_bytes(), "UDP_V4_FLOW");
        assert_eq!(v4[20..34], [0, 0, 0, 0, 10, 1, 2, 3, 0, 0, 0xf0, 1, 0, 0]);
        assert_eq!(v4[92..106], [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 255, 255, 0, 0]);
        assert_eq!(v4[168..176], 5_u64.to_ne_bytes());
        assert_eq!(v4[176..180], 7_u32.to_ne_bytes());
        assert!(v4[34..92].iter().chain(&v4[106..168]).all(|&byte| byte == 0));
        let own = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let v6 = bytes(&Rule { address: own.into(), port: 0xf03f, queue: 63, place: 7 }.insertion());
        assert_eq!(v6[16..20], 6_u32.to_ne_bytes(), "UDP_V6_FLOW");
        assert_eq!((&v6[20..36], &v6[36..52], &v6[52..56]), (&[0; 16][..], &own[..], &[0, 0, 0xf0, 0x3f][..]));
        assert_eq!((&v6[92..108], &v6[108..124], &v6[124..128]), (&[0; 16][..], &[255; 16][..], &[0, 0, 255, 255][..]));
    }

    #[test]
    fn rules_round_trip_and_more_specific_ones_are_not_ours() {
        for address in [IpAddr::from([10, 1, 2, 3]), IpAddr::from([0xfd00, 1, 2, 3, 4, 5, 6, 7])] {
            let rule = Rule { address, port: 0xf001, queue: 5, place: 300 };
            let request = rule.insertion();
            assert_eq!(request.rule(), Some(rule));
            for (at, what) in [(FLOW, "flow"), (FIELDS, "source"), (MASK, "its mask"), (QUEUE - 1, "extension")] {
                let mut other = request;
                other.0[at] ^= 0x80;
                assert_eq!(other.rule(), None, "{what}");
            }
            let mut elsewhere = Rule { queue: 6, ..rule }.insertion();
            assert!(!rule.removal().is_of_another(&elsewhere), "the queue may be encoded in another form");
            elsewhere = Rule { port: 0xf002, ..rule }.insertion();
            assert!(rule.removal().is_of_another(&elsewhere) && rule.insertion().asks_before().is_none());
            assert_eq!(rule.removal().asks_before().map(|request| (request.0[0], request.0[PLACE])), Some((0x2f, 300)));
        }
    }

    #[test]
    fn a_rule_takes_the_highest_free_location() {
        assert_eq!(highest_free(8, &[]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(highest_free(8, &[7, 5, 6]), [0, 1, 2, 3, 4]);
        assert!(highest_free(2, &[0, 1]).is_empty() && highest_free(0, &[]).is_empty());
        let many = highest_free(100_000, &[]);
        assert_eq!((many.len(), many.last()), (64, Some(&99_999)));
    }
}
