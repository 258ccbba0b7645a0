use std::net::IpAddr;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    pub address: IpAddr,
    pub bits: u8,
}

impl Subnet {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |all: u32| all.saturating_sub(self.bits.into());
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected an address and the bits of its network, such as 10.9.0.1/24, not {text:?}");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| expected())?;
        if bits > most { Err(expected()) } else { Ok(Self { address, bits }) }
    }
}

/// Its address is outside of the tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub address: IpAddr,
    /// Empty if all addresses are behind it.
    pub networks: Vec<Subnet>,
}

impl Remote {
    /// The prefix length of the longest network that contains `address`.
    pub fn fits(&self, address: IpAddr) -> Option<u8> {
        if self.networks.is_empty() {
            return Some(0);
        }
        self.networks.iter().filter(|network| network.contains(address)).map(|network| network.bits).max()
    }
}

impl FromStr for Remote {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, networks) = text.split_once('=').unwrap_or((text, ""));
        let address = address.parse().map_err(|_| {
            format!("expected an IP address, with the networks behind it or without: 10.0.0.2=10.9.0.2,10.8.0.0/16, not {text:?}")
        })?;
        let networks = networks.split(',').filter(|network| !network.is_empty()).map(str::parse);
        Ok(Self { address, networks: networks.collect::<Result<_, _>>()? })
    }
}

pub fn behind<'a>(remotes: impl Iterator<Item = &'a Remote>, address: IpAddr) -> Option<usize> {
    let fits = remotes.enumerate().filter_map(|(at, remote)| Some((remote.fits(address)?, at)));
    fits.max_by_key(|&(bits, at)| (bits, std::cmp::Reverse(at))).map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_selects_the_machine() {
        let remotes: Vec<Remote> =
            ["10.0.0.2=10.9.0.2,10.8.0.0/16,fd00::/8", "10.0.0.3=10.8.3.0/24", "10.0.0.4=0.0.0.0/0"]
                .map(|text| text.parse().unwrap())
                .into();
        let of = |text: &str| behind(remotes.iter(), text.parse().unwrap());
        assert_eq!((of("10.9.0.2"), of("10.9.0.3")), (Some(0), Some(2)));
        assert_eq!((of("10.8.1.1"), of("10.8.3.1")), (Some(0), Some(1)));
        assert_eq!((of("fd12::1"), of("2001:db8::1")), (Some(0), None));
        let alone: Remote = "10.0.0.2".parse().unwrap();
        assert_eq!(behind([&alone].into_iter(), [1, 2, 3, 4].into()), Some(0));
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in ["10.0.0.1/33", "10.0.0/8", "fd00::/129", "10.0.0.1/x", ""] {
            assert!(text.parse::<Subnet>().unwrap_err().contains("10.9.0.1/24"), "{text}");
        }
        assert!("host=10.0.0.1".parse::<Remote>().is_err() && "10.0.0.1=x".parse::<Remote>().is_err());
    }
}
