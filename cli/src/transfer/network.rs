//! Interfaces, as the kernel knows them (netlink).

use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkXdp};
use rtnetlink::{Handle, new_connection};

use crate::failure::{Failure, Outcome};

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub index: u32,
    pub mac: [u8; 6],
    pub mtu: u32,
    pub up: bool,
    pub addresses: Vec<IpAddr>,
    /// The XDP program that is attached to it.
    pub xdp_program: Option<u32>,
}

/// Looks an interface up.
///
/// # Errors
/// When there is none of that name, or netlink fails.
pub fn interface(name: &str) -> Outcome<Interface> {
    ask(async |handle| {
        let mut links = handle.link().get().match_name(name).execute();
        let link = links.try_next().await.ok().flatten();
        let link =
            link.ok_or_else(|| Failure::refused(format!("there is no interface {name}; `ip link` lists them")))?;
        let mut found = Interface {
            index: link.header.index,
            up: link.header.flags.contains(LinkFlags::Up),
            ..Interface::default()
        };
        link.attributes.iter().for_each(|attribute| found.take(attribute));
        let mut addresses = handle.address().get().set_link_index_filter(found.index).execute();
        while let Some(message) = addresses.try_next().await.map_err(Failure::failed)? {
            found.addresses.extend(message.attributes.iter().find_map(own_address));
        }
        Ok(found)
    })
}

impl Interface {
    fn take(&mut self, attribute: &LinkAttribute) {
        match attribute {
            LinkAttribute::Address(bytes) => self.mac = bytes.as_slice().try_into().unwrap_or_default(),
            LinkAttribute::Mtu(mtu) => self.mtu = *mtu,
            LinkAttribute::Xdp(parts) => self.xdp_program = parts.iter().find_map(program),
            _ => {}
        }
    }

    /// The address to send from: the first one of the family of `like`; link-local ones come last.
    pub fn address_like(&self, like: Option<IpAddr>) -> Option<IpAddr> {
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

/// Runs one exchange with the kernel.
pub fn ask<T>(exchange: impl AsyncFnOnce(Handle) -> Outcome<T>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let (connection, handle, _) = new_connection().map_err(Failure::failed)?;
        tokio::spawn(connection);
        exchange(handle).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_with_its_address() {
        let lo = interface("lo").unwrap();
        assert_eq!(lo.index, 1);
        assert_eq!(lo.address_like(Some("127.0.0.2".parse().unwrap())), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(lo.xdp_program, None);
    }

    #[test]
    fn unknown_interface_is_named() {
        assert!(interface("spray-nope").unwrap_err().to_string().contains("spray-nope"));
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
