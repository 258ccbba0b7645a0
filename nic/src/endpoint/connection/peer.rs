use std::net::IpAddr;

/// The other host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its IP address, of the same family as the endpoint's own.
    pub address: IpAddr,
    /// The Ethernet address of the peer or of the next hop.
    pub mac: [u8; 6],
}

impl Peer {
    /// Returns the address as a number that identifies the host.
    pub(crate) fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn addresses_with_equal_xor_have_different_hashes() {
        let number = |upper: u128, lower: u128| {
            let address = Ipv6Addr::from_bits((0xfd00 << 112) + (upper << 64) + lower).into();
            Peer { address, mac: [0; 6] }.number()
        };
        assert_ne!(number(1, 5), number(5, 1));
        assert_ne!(number(1, 1), number(2, 2));
    }
}
