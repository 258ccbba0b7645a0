//! The host at the other end.

use std::net::IpAddr;

/// The other host: where frames for it go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its IP address, of the same family as the endpoint's own.
    pub address: IpAddr,
    /// The Ethernet address to send to: the peer's, or that of the next hop.
    pub mac: [u8; 6],
}

impl Peer {
    /// A number that tells its host from others.
    pub(crate) fn number(&self) -> u64 {
        match self.address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => (address.to_bits() as u64) ^ (address.to_bits() >> 64) as u64,
        }
    }
}
