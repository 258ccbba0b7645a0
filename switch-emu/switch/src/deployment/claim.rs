//! Address conflicts: the owner is probed, and keeps the address if it answers. No I/O.

use std::net::{IpAddr, Ipv6Addr};

use etherparse::PacketBuilder;

/// The use of an address by a host that does not own it.
#[derive(Debug)]
pub(super) struct Claim {
    pub by: usize,
    begun_ns: u64,
    /// The number of probes sent.
    probes: u64,
    /// When the owner's machine last advertised the address.
    pub announced_ns: Option<u64>,
    /// The frame that claimed the address.
    pub frame: Vec<u8>,
}

/// The end of a claim, or the refusal of a claim of a bound address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dispute {
    pub address: IpAddr,
    /// The owner, and the claimant.
    pub of: usize,
    pub by: usize,
    pub has_moved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Probe,
    /// The owner keeps the address.
    Keep,
    Move,
}

const PROBE_INTERVAL_NS: u64 = 300_000_000;
/// After the last probe an answer has one more interval to arrive.
//= docs/specs/switch.md#SW-26 three ARP or neighbour discovery requests
const PROBES: u64 = 3;
/// How long another machine has to probe its own host; it advertises the address meanwhile.
const REMOTE_TIMEOUT_NS: u64 = 2_000_000_000;
/// An advertisement older than this has been withdrawn.
const ANNOUNCED_NS: u64 = 500_000_000;
/// Of the stored frame: enough for ARP and neighbour discovery.
const MAX_FRAME_BYTES: usize = 128;
/// The source MAC of probes: of no interface, so that answers reach the bridge.
const PROBE_MAC: [u8; 6] = *b"\x02spray";

impl Claim {
    pub fn new(by: usize, now_ns: u64) -> Self {
        Self { by, begun_ns: now_ns, probes: 0, announced_ns: None, frame: Vec::new() }
    }

    /// Stores a frame that claims the address, to be forwarded when the address has moved.
    pub fn store(&mut self, from: usize, frame: &[u8]) {
        if from == self.by && frame.len() <= MAX_FRAME_BYTES {
            self.frame = frame.to_vec();
        }
    }

    /// Decides the next step. `is_remote`: another machine has the owner; `is_free`: there is none.
    pub fn decide(&mut self, is_remote: bool, is_free: bool, now_ns: u64) -> Verdict {
        let since_ns = now_ns.saturating_sub(self.begun_ns);
        match () {
            () if is_free => Verdict::Move,
            () if is_remote && since_ns < REMOTE_TIMEOUT_NS => Verdict::Wait,
            () if is_remote => {
                let is_announced =
                    self.announced_ns.is_some_and(|announced_ns| now_ns.saturating_sub(announced_ns) < ANNOUNCED_NS);
                if is_announced { Verdict::Keep } else { Verdict::Move }
            }
            () if since_ns < self.probes * PROBE_INTERVAL_NS => Verdict::Wait,
            () if self.probes == PROBES => Verdict::Move,
            () => {
                self.probes += 1;
                Verdict::Probe
            }
        }
    }

    /// An ARP probe (RFC 5227), or a neighbour solicitation from no address (RFC 4862).
    pub fn probe(&self, address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => {
                let head = [&[0xff; 6][..], &PROBE_MAC, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &PROBE_MAC, &[0; 10]].concat();
                [&head[..], &address.octets(), &[0; 18]].concat()
            }
            IpAddr::V6(address) => solicitation(address),
        }
    }
}

fn solicitation(address: Ipv6Addr) -> Vec<u8> {
    const NEIGHBOUR_SOLICITATION: u8 = 135;
    let own = address.octets();
    let mut group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
    group[13..].copy_from_slice(&own[13..]);
    let to = [0x33, 0x33, group[12], group[13], group[14], group[15]];
    let ipv6 = PacketBuilder::ethernet2(PROBE_MAC, to).ipv6([0; 16], group, 255);
    let mut frame = Vec::new();
    let written = ipv6.icmpv6_raw(NEIGHBOUR_SOLICITATION, 0, [0; 4]).write(&mut frame, &own);
    written.expect("a vector has room");
    frame
}
