//! Interfaces and their neighbours, as the kernel knows them (netlink).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkXdp};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteVia};
use rtnetlink::{Handle, RouteMessageBuilder, new_connection};

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

/// Where the kernel's routes send packets from `own` to `peer` over the interface: a router, or the peer itself.
///
/// # Errors
/// When no route over the interface leads there.
pub fn next_hop(interface: &Interface, name: &str, own: IpAddr, peer: IpAddr) -> Outcome<IpAddr> {
    let no_route = |why: &str| {
        let mend = "`ip route get` tells the kernel's choice; give another --interface, or the next hop's --peer-mac";
        Failure::refused(format!("no route from {own} to {peer} over {name}: {why}; {mend}"))
    };
    let question = match (own, peer) {
        (IpAddr::V4(own), IpAddr::V4(peer)) => RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(peer, 32)
            .source_prefix(own, 32)
            .output_interface(interface.index)
            .build(),
        (IpAddr::V6(own), IpAddr::V6(peer)) => RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(peer, 128)
            .source_prefix(own, 128)
            .output_interface(interface.index)
            .build(),
        _ => return Err(no_route("they are not of the same IP version")),
    };
    let found = ask(async |handle| {
        let mut routes = handle.route().get(question).execute();
        Ok(routes.try_next().await)
    })?;
    let route = found.map_err(|error| no_route(&error.to_string()))?.ok_or_else(|| no_route("there is none"))?;
    let gateway = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => Some(IpAddr::V4(*gateway)),
        RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some(IpAddr::V6(*gateway)),
        _ => None,
    });
    Ok(gateway.unwrap_or(peer))
}

/// The Ethernet address to which frames to `peer` go: its own, or the next router's. The kernel's neighbour table has it; where
/// it is missing, the kernel is made to ask.
///
/// # Errors
/// When there is no route, or the next hop does not answer within two seconds.
pub fn neighbour(interface: &Interface, name: &str, own: IpAddr, peer: IpAddr) -> Outcome<[u8; 6]> {
    let hop = next_hop(interface, name, own, peer)?;
    for attempt in 0..20 {
        if let Some(mac) = ask(async |handle| known(&handle, interface.index, hop).await)? {
            return Ok(mac);
        }
        if attempt % 5 == 0 {
            provoke(own, peer);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let what = if hop == peer { "the receiver".into() } else { format!("the router on the way to {peer}") };
    Err(Failure::refused(format!(
        "{hop}, {what}, does not answer on {name}: is the cable in, and are the addresses right? `ip neighbour` tells whom the \
         kernel knows; --peer-mac gives the Ethernet address by hand"
    )))
}

async fn known(handle: &Handle, index: u32, peer: IpAddr) -> Outcome<Option<[u8; 6]>> {
    let family = if peer.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let mut table = handle.neighbours().get().set_address_family(family).execute();
    let mut mac = None;
    while let Some(entry) = table.try_next().await.map_err(Failure::failed)? {
        if entry.header.ifindex == index && destination(&entry) == Some(peer) {
            mac = mac.or_else(|| link_address(&entry));
        }
    }
    Ok(mac)
}

fn destination(entry: &NeighbourMessage) -> Option<IpAddr> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some(IpAddr::V4(*v4)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some(IpAddr::V6(*v6)),
        _ => None,
    })
}

fn link_address(entry: &NeighbourMessage) -> Option<[u8; 6]> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    })
}

/// Any packet to the peer makes the kernel resolve it; this one goes to the discard port.
fn provoke(own: IpAddr, peer: IpAddr) {
    const DISCARD: u16 = 9;
    if let Ok(socket) = UdpSocket::bind(SocketAddr::new(own, 0)) {
        let _ = socket.send_to(&[0], SocketAddr::new(peer, DISCARD));
    }
}

/// Runs one exchange with the kernel.
fn ask<T>(exchange: impl AsyncFnOnce(Handle) -> Outcome<T>) -> Outcome<T> {
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
