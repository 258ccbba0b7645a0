//! Interfaces, as the kernel knows them (netlink).

use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkXdp};

use super::{NetError, ask};
use crate::device::xsk::link_bps;

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// Whether it is set up.
    pub up: bool,
    /// The rate of its link in bits per second, where the driver tells.
    pub link_bps: Option<u64>,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// The XDP program that is attached to it.
    pub xdp_program: Option<u32>,
}

impl Interface {
    /// Looks an interface of the calling thread's network namespace up.
    ///
    /// # Errors
    /// When there is none of that name, or the kernel does not answer.
    pub fn find(name: &str) -> Result<Self, NetError> {
        ask(async |handle| {
            let mut links = handle.link().get().match_name(name).execute();
            let link = links.try_next().await.ok().flatten();
            let link = link.ok_or_else(|| NetError::NoInterface(name.into()))?;
            let mut found = Self {
                name: name.into(),
                index: link.header.index,
                up: link.header.flags.contains(LinkFlags::Up),
                link_bps: link_bps(name),
                ..Self::default()
            };
            link.attributes.iter().for_each(|attribute| found.take(attribute));
            let mut addresses = handle.address().get().set_link_index_filter(found.index).execute();
            while let Some(message) = addresses.try_next().await.map_err(NetError::netlink)? {
                found.addresses.extend(message.attributes.iter().find_map(own_address));
            }
            Ok(found)
        })
    }

    /// Checks that it is up, and that no XDP program sits on it.
    ///
    /// # Errors
    /// Says what to do about it.
    pub fn check_free(&self) -> Result<(), NetError> {
        if !self.up {
            return Err(NetError::Down(self.name.clone()));
        }
        let busy = |program| NetError::Busy { interface: self.name.clone(), program };
        self.xdp_program.map_or(Ok(()), |program| Err(busy(program)))
    }

    /// The address to send from to a peer like this one.
    ///
    /// # Errors
    /// When it has none of that IP version.
    pub fn own_address(&self, like: Option<IpAddr>) -> Result<IpAddr, NetError> {
        let version = if like.is_some_and(|peer| peer.is_ipv6()) { "IPv6" } else { "IP" };
        self.address_like(like).ok_or_else(|| NetError::NoAddress { interface: self.name.clone(), version })
    }

    fn take(&mut self, attribute: &LinkAttribute) {
        match attribute {
            LinkAttribute::Address(bytes) => self.mac = bytes.as_slice().try_into().unwrap_or_default(),
            LinkAttribute::Mtu(mtu) => self.mtu = *mtu,
            LinkAttribute::Xdp(parts) => self.xdp_program = parts.iter().find_map(program),
            _ => {}
        }
    }

    /// The address to send from: the first one of the family of `like`; link-local ones come last.
    fn address_like(&self, like: Option<IpAddr>) -> Option<IpAddr> {
        let fits = |address: &&IpAddr| like.is_none_or(|like| like.is_ipv4() == address.is_ipv4());
        let is_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let mut fitting = self.addresses.iter().filter(fits);
        fitting.clone().find(|address| !is_local(address)).or_else(|| fitting.next()).copied()
    }
}

fn program(part: &LinkXdp) -> Option<u32> {
    match part {
        LinkXdp::ProgId(id) | LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::HwProgId(id) if *id != 0 => {
            Some(*id)
        }
        _ => None,
    }
}

fn own_address(attribute: &AddressAttribute) -> Option<IpAddr> {
    match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_with_its_address() {
        let lo = Interface::find("lo").unwrap();
        assert_eq!(lo.index, 1);
        assert_eq!(lo.address_like(Some("127.0.0.2".parse().unwrap())), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(lo.xdp_program, None);
    }

    #[test]
    fn unknown_interface_is_named() {
        assert!(Interface::find("spray-nope").unwrap_err().to_string().contains("spray-nope"));
    }

    #[test]
    fn link_local_addresses_come_last() {
        let (local, global) = ("fe80::1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let mut found = Interface { addresses: vec![local, global], ..Interface::default() };
        assert_eq!(found.address_like(Some("::1".parse().unwrap())), Some(global));
        found.addresses.pop();
        assert_eq!(found.address_like(None), Some(local));
        assert_eq!(found.address_like(Some("10.0.0.1".parse().unwrap())), None);
    }
}
