//! A host that uses another one's address: the other is asked, and keeps it if it answers. No I/O.

use std::net::{IpAddr, Ipv6Addr};

/// The use of an address by a host that does not have it.
#[derive(Debug)]
pub(super) struct Claim {
    pub by: usize,
    begun_ns: u64,
    /// Questions that were sent.
    asked: u64,
    /// When the box of the host that has the address last said that it has.
    told_ns: Option<u64>,
    /// The frame that claims the address.
    pub frame: Vec<u8>,
}

/// How a claim ended, or that one of a bound address was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dispute {
    pub address: IpAddr,
    /// The host that had it, and the one that claimed it.
    pub of: usize,
    pub by: usize,
    pub has_moved: bool,
}

/// What a claim has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    /// The host that has the address is asked once more.
    Ask,
    /// It keeps the address.
    Keep,
    Move,
}

/// Between two questions.
const ASK_NS: u64 = 300_000_000;
/// Questions, after which an answer has as long to come.
//= docs/specs/switch.md#SW-26 three ARP or neighbour discovery requests
const QUESTIONS: u64 = 3;
/// How long another box has to ask a host of its own, which it says it has until then.
const ELSEWHERE_NS: u64 = 2_000_000_000;
/// A box that has not said so for this long says it no more.
const TOLD_NS: u64 = 500_000_000;
/// The longest frame that is kept: of ARP and neighbour discovery.
const LONGEST: usize = 128;
/// The Ethernet address that asks: of no interface, so that answers come to the bridge.
const ASKER: [u8; 6] = *b"\x02spray";

impl Claim {
    pub fn new(by: usize, now_ns: u64) -> Self {
        Self { by, begun_ns: now_ns, asked: 0, told_ns: None, frame: Vec::new() }
    }

    /// Keeps a frame that claims the address, for when it has moved.
    pub fn keep(&mut self, from: usize, frame: &[u8]) {
        if from == self.by && frame.len() <= LONGEST {
            self.frame = frame.to_vec();
        }
    }

    /// The box of the host that has the address says so.
    pub fn on_told(&mut self, now_ns: u64) {
        self.told_ns = Some(now_ns);
    }

    /// What is to be done; the host that has the address is that of another box, or there is none any more.
    pub fn look(&mut self, is_elsewhere: bool, is_free: bool, now_ns: u64) -> Verdict {
        let since_ns = now_ns.saturating_sub(self.begun_ns);
        match () {
            () if is_free => Verdict::Move,
            () if is_elsewhere && since_ns < ELSEWHERE_NS => Verdict::Wait,
            () if is_elsewhere => {
                let is_told = self.told_ns.is_some_and(|told_ns| now_ns.saturating_sub(told_ns) < TOLD_NS);
                if is_told { Verdict::Keep } else { Verdict::Move }
            }
            () if since_ns < self.asked * ASK_NS => Verdict::Wait,
            () if self.asked == QUESTIONS => Verdict::Move,
            () => {
                self.asked += 1;
                Verdict::Ask
            }
        }
    }

    /// The question for an address: an ARP probe (RFC 5227), or a neighbour solicitation from no address (RFC 4862).
    pub fn question(&self, address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => {
                let head = [&[0xff; 6][..], &ASKER, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &ASKER, &[0; 10]].concat();
                [&head[..], &address.octets(), &[0; 18]].concat()
            }
            IpAddr::V6(address) => solicitation(address),
        }
    }
}

fn solicitation(address: Ipv6Addr) -> Vec<u8> {
    const ICMP_BYTES: u8 = 24;
    let own = address.octets();
    let mut group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
    group[13..].copy_from_slice(&own[13..]);
    let mut message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &own].concat();
    let pseudo = [&[0; 16][..], &group, &[0, 0, 0, ICMP_BYTES, 0, 0, 0, 58], &message].concat();
    let words = pseudo.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let ethernet = [&[0x33, 0x33, group[12], group[13], group[14], group[15]][..], &ASKER, &[0x86, 0xdd]].concat();
    [&ethernet[..], &[0x60, 0, 0, 0, 0, ICMP_BYTES, 58, 255], &[0; 16], &group, &message].concat()
}
