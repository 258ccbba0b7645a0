//! Messages between machines that run one switch each, as Ethernet frames. No I/O.

use std::net::{IpAddr, Ipv6Addr};

use spray_nic::xdp::v6_mapped;
use spray_pipeline::deployment::{PEER_ETHERTYPE, PEER_GROUP_MAC};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// The number of the link that it arrives over.
    pub link: u16,
    /// The switch of the machine that has originated it.
    pub origin: u16,
    /// Increases with each message of an origin.
    pub sequence: u64,
    /// A digest of the network's description.
    pub network: u32,
    pub body: Body<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// The links at the origin that are down, visibly to routing.
    Down(Vec<u16>),
    Host(u16, Vec<IpAddr>),
    /// A frame of a host at the origin that no switch forwards, to a host or to [`ALL_HOSTS`].
    Frame(u16, &'a [u8]),
}

pub(super) const ALL_HOSTS: u16 = u16::MAX;

pub(super) const HEAD_BYTES: usize = 36;
/// The shortest Ethernet frame, without FCS.
const SHORTEST: usize = 60;
const VERSION: u8 = 1;

const DOWN: u8 = 0;
const HOST: u8 = 1;
const FRAME: u8 = 2;

impl Message<'_> {
    /// Encodes the message as a frame with this source MAC.
    pub fn frame(&self, from: [u8; 6]) -> Vec<u8> {
        let (kind, host, body) = match &self.body {
            Body::Down(links) => (DOWN, 0, links.iter().flat_map(|link| link.to_be_bytes()).collect()),
            Body::Host(host, addresses) => (HOST, *host, addresses.iter().flat_map(|a| v6_mapped(*a)).collect()),
            Body::Frame(to, frame) => (FRAME, *to, frame.to_vec()),
        };
        let mut bytes = [&PEER_GROUP_MAC[..], &from, &PEER_ETHERTYPE, &[VERSION, kind]].concat();
        for half in [self.link, self.origin, host] {
            bytes.extend(half.to_be_bytes());
        }
        bytes.extend(self.network.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().max(SHORTEST), 0);
        bytes
    }
}

impl<'a> Message<'a> {
    /// Decodes a frame; `None` for other protocols and versions.
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let (head, rest) = frame.split_at_checked(HEAD_BYTES)?;
        let [ethertype @ .., version, kind] = *head[12..].first_chunk::<4>()?;
        if ethertype != PEER_ETHERTYPE || version != VERSION {
            return None;
        }
        let half = |at: usize| head[at..].first_chunk().copied().map(u16::from_be_bytes);
        let body = rest.get(..usize::from(half(34)?))?;
        let host = half(20)?;
        let body = match kind {
            DOWN => Body::Down(body.chunks_exact(2).map(|link| u16::from_be_bytes([link[0], link[1]])).collect()),
            HOST => {
                Body::Host(host, body.as_chunks::<16>().0.iter().map(|a| Ipv6Addr::from(*a).to_canonical()).collect())
            }
            FRAME => Body::Frame(host, body),
            _ => return None,
        };
        let network = u32::from_be_bytes(*head[22..].first_chunk()?);
        let sequence = u64::from_be_bytes(*head[26..].first_chunk()?);
        Some(Self { link: half(16)?, origin: half(18)?, sequence, network, body })
    }
}

/// Copies a message for another link, with this source MAC.
pub(super) fn relay(frame: &[u8], link: u16, from: [u8; 6]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    if bytes.len() >= HEAD_BYTES {
        bytes[6..12].copy_from_slice(&from);
        bytes[16..18].copy_from_slice(&link.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn message(body: Body<'_>) -> Message<'_> {
        Message { link: 3, origin: 1, sequence: 1 << 60, network: 0x1234_5678, body }
    }

    #[test]
    fn messages_round_trip_and_are_forwarded() {
        let addresses = vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        for body in [
            Body::Down(vec![]),
            Body::Down(vec![7, 0x1234]),
            Body::Host(2, addresses),
            Body::Frame(ALL_HOSTS, &[9; 100]),
            Body::Frame(0, &[]),
        ] {
            let message = message(body);
            let frame = message.frame(MAC);
            assert!(frame.len() >= SHORTEST && frame[..6] == PEER_GROUP_MAC && frame[6..12] == MAC);
            assert_eq!(Message::read(&frame).as_ref(), Some(&message));
            let passed = relay(&frame, 9, [2; 6]);
            assert_eq!(passed[6..12], [2; 6]);
            assert_eq!(Message::read(&passed), Some(Message { link: 9, ..message }));
        }
    }

    #[test]
    fn other_frames_are_rejected() {
        let frame = message(Body::Down(vec![])).frame(MAC);
        for wrong in 12..16 {
            let mut frame = frame.clone();
            frame[wrong] ^= 0x40;
            assert_eq!(Message::read(&frame), None, "byte {wrong}");
        }
        assert_eq!(Message::read(&frame[..HEAD_BYTES - 1]), None);
        let long = Message { body: Body::Frame(0, &[9; 100]), ..message(Body::Down(vec![])) }.frame(MAC);
        assert_eq!(Message::read(&long[..long.len() - 1]), None, "shorter than its length field");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), ours in any::<bool>()) {
            if ours && bytes.len() > 15 {
                let kind = bytes[15] % 4;
                bytes[12..16].copy_from_slice(&[PEER_ETHERTYPE[0], PEER_ETHERTYPE[1], VERSION, kind]);
            }
            if let Some(message) = Message::read(&bytes) {
                prop_assert!(bytes.len() >= HEAD_BYTES);
                let again = message.frame(MAC);
                prop_assert_eq!(Message::read(&again).map(|message| message.sequence), Some(message.sequence));
            }
        }
    }
}
