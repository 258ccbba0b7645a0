//! Rules by which a NIC brings packets to a queue (`ethtool -N IF flow-type udp4 dst-ip ... dst-port ... action QUEUE`, *ntuple*).

use std::io;
use std::net::IpAddr;

use super::features::word;
use super::{Ethtool, Feature, Request, UdpFlow};

/// UDP packets to a port of an address come by a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) queue: u32,
}

/// A NIC's rules.
pub(crate) trait RuleTable {
    /// Whether the driver heeds rules; `None` where it has none.
    fn heeds(&self) -> io::Result<Option<bool>>;

    /// Has the driver heed rules, or not.
    fn heed(&self, on: bool) -> io::Result<()>;

    /// What undoes that.
    fn heed_request(&self, on: bool) -> io::Result<Request>;

    /// Adds a rule at a free place. Returns the place.
    fn add(&self, rule: Rule) -> io::Result<u32>;

    /// What removes the rule of a place.
    fn removal(&self, place: u32) -> Request {
        const DELETE: u32 = 0x31;
        let mut request = Request::NONE;
        (request.0[0], request.0[PLACE]) = (DELETE, place);
        request
    }
}

/// Words of `struct ethtool_rxnfc`: the command, `data`, and the specification of a rule, `fs`. That holds the kind of flow, the fields to compare
/// and, laid out alike, the bits of them that count, then the queue and the rule's place. After it come how many places, and these.
const DATA: usize = 2;
const FLOW: usize = 4;
const FIELDS: usize = 5;
const MASK: usize = 23;
const QUEUE: usize = 42;
const PLACE: usize = 44;
const COUNT: usize = 46;
const PLACES: usize = 47;
/// The driver chooses the place of a rule, and wants to.
const CHOOSES: u32 = 1 << 31;
/// Any place.
const ANY: u32 = u32::MAX;

impl RuleTable for Ethtool {
    fn heeds(&self) -> io::Result<Option<bool>> {
        self.feature(Feature::NTUPLE)
    }

    fn heed(&self, on: bool) -> io::Result<()> {
        self.set_feature(Feature::NTUPLE, on)
    }

    fn heed_request(&self, on: bool) -> io::Result<Request> {
        self.feature_request(Feature::NTUPLE, on)
    }

    fn add(&self, rule: Rule) -> io::Result<u32> {
        const INSERT: u32 = 0x32;
        let mut request = insertion(rule);
        request.0[PLACE] = self.free_place()?;
        self.ask(INSERT, &mut request.0)?;
        Ok(request.0[PLACE])
    }
}

impl Ethtool {
    /// Where a rule may go.
    fn free_place(&self) -> io::Result<u32> {
        const GET_COUNT: u32 = 0x2e;
        const GET_PLACES: u32 = 0x30;
        let count = self.get(GET_COUNT)?;
        if count[DATA] & CHOOSES != 0 {
            return Ok(ANY);
        }
        let used = count[COUNT] as usize;
        let mut places = vec![0; PLACES + used];
        places[COUNT] = used as u32;
        self.ask(GET_PLACES, &mut places)?;
        highest_free(places[DATA], &places[PLACES..])
            .ok_or_else(|| io::Error::other("the NIC has no room for more rules"))
    }
}

/// The highest place of so many that is not among the used ones: `ethtool` takes them in this order as well.
fn highest_free(size: u32, used: &[u32]) -> Option<u32> {
    (0..size).rev().find(|place| !used.contains(place))
}

/// The request that adds a rule, but for its place.
fn insertion(Rule { address, port, queue }: Rule) -> Request {
    let mut words = [0; Request::WORDS];
    // Both kinds of addresses have the source first, and the ports, again the source's first, come after them.
    let (flow, address): (_, Vec<u8>) = match address {
        IpAddr::V4(address) => (UdpFlow::V4, address.octets().into()),
        IpAddr::V6(address) => (UdpFlow::V6, address.octets().into()),
    };
    words[FLOW] = flow.number();
    let length = address.len() / 4;
    for (at, part) in address.chunks_exact(4).enumerate() {
        words[FIELDS + length + at] = word(part);
        words[MASK + length + at] = u32::MAX;
    }
    let [high, low] = port.to_be_bytes();
    words[FIELDS + 2 * length] = u32::from_ne_bytes([0, 0, high, low]);
    words[MASK + 2 * length] = u32::from_ne_bytes([0, 0, 0xff, 0xff]);
    let queue = u64::from(queue).to_ne_bytes();
    for (at, half) in queue.chunks_exact(4).enumerate() {
        words[QUEUE + at] = word(half);
    }
    Request(words)
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// `struct ethtool_rxnfc` of `linux/ethtool.h`, written out.
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
    fn the_words_are_where_the_kernel_has_them() {
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

    /// `struct ethtool_tcpip4_spec` is two addresses, two ports, and a byte; that of IPv6 the same with longer addresses.
    #[test]
    fn a_rule_compares_the_destination_alone() {
        let v4 = bytes(&insertion(Rule { address: [10, 1, 2, 3].into(), port: 0xf001, queue: 5 }));
        assert_eq!(v4[16..20], 2_u32.to_ne_bytes(), "UDP_V4_FLOW");
        assert_eq!(v4[20..34], [0, 0, 0, 0, 10, 1, 2, 3, 0, 0, 0xf0, 1, 0, 0]);
        assert_eq!(v4[92..106], [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 255, 255, 0, 0]);
        assert_eq!(v4[168..176], 5_u64.to_ne_bytes());
        assert!(v4[34..92].iter().chain(&v4[106..168]).all(|&byte| byte == 0));
        let own = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let v6 = bytes(&insertion(Rule { address: own.into(), port: 0xf03f, queue: 63 }));
        assert_eq!(v6[16..20], 6_u32.to_ne_bytes(), "UDP_V6_FLOW");
        assert_eq!((&v6[20..36], &v6[36..52], &v6[52..56]), (&[0; 16][..], &own[..], &[0, 0, 0xf0, 0x3f][..]));
        assert_eq!((&v6[92..108], &v6[108..124], &v6[124..128]), (&[0; 16][..], &[255; 16][..], &[0, 0, 255, 255][..]));
    }

    #[test]
    fn a_rule_goes_to_the_highest_place_that_is_free() {
        assert_eq!(highest_free(8, &[]), Some(7));
        assert_eq!(highest_free(8, &[7, 5, 6]), Some(4));
        assert_eq!(highest_free(2, &[0, 1]), None);
        assert_eq!(highest_free(0, &[]), None);
    }
}
