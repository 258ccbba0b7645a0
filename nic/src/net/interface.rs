//! Interfaces of the kernel (netlink).

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use rtnetlink::packet_core::DefaultNla;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{
    LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage, LinkXdp, Prop, XdpAttached,
};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::ethtool::link_bps;
use super::{NetError, netlink};
use crate::xdp::{AttachMode, AttachedProgram};

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Primary name.
    pub name: String,
    /// Alternative names.
    pub altnames: Vec<String>,
    /// Interface index.
    pub index: u32,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it has carrier.
    pub carrier: bool,
    /// Number of carrier changes.
    pub carrier_changes: u32,
    /// Kind, if not a NIC, as in `ip -d link`: `bond`, `bridge`, `vlan`, `veth`, ...
    pub kind: Option<String>,
    /// Whether its link layer is Ethernet.
    pub is_ethernet: bool,
    /// Index of the bond, bridge or other interface of which it is a member.
    pub master: Option<u32>,
    /// Bridge of which it is a member: its addresses and routes apply.
    pub bridge: Option<Box<Interface>>,
    /// Index of the interface below, as of a VLAN, or of a veth's peer in any namespace.
    pub lower: Option<u32>,
    /// Link rate in bits per second, if reported.
    pub link_bps: Option<u64>,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// ID of the attached XDP program.
    pub xdp_program: Option<u32>,
    /// Mode of that program, if reported.
    pub xdp_mode: Option<AttachMode>,
}

impl Interface {
    /// Finds an interface of the calling thread's network namespace by primary or alternative name.
    ///
    /// # Errors
    /// There is no interface of that name, or the kernel does not answer.
    pub fn find(name: &str) -> Result<Self, NetError> {
        netlink(async |handle| {
            // Index 0 is a wildcard: the attribute selects the interface.
            let mut request = handle.link().get().match_index(0);
            request.message_mut().attributes.push(name_attribute(name));
            let mut links = request.execute();
            let link = links.try_next().await.ok().flatten();
            let mut found = Self::from(&link.ok_or_else(|| NetError::NoInterface(name.into()))?);
            found.link_bps = link_bps(&found.name);
            found.addresses = found.query_addresses(&handle).await?;
            found.bridge = found.query_bridge(&handle).await?.map(Box::new);
            Ok(found)
        })
    }

    /// Lists the interfaces of the calling thread's network namespace, without addresses and rates.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn all() -> Result<Vec<Self>, NetError> {
        netlink(async |handle| {
            let links = handle.link().get().execute();
            links.map_ok(|link| Self::from(&link)).try_collect().await.map_err(NetError::netlink)
        })
    }

    /// Returns those of `all` that are members of it, such as the NICs of a bond.
    pub fn members<'a>(&self, all: &'a [Self]) -> impl Iterator<Item = &'a Self> {
        let index = self.index;
        all.iter().filter(move |other| other.master == Some(index))
    }

    /// Returns the interface with its addresses and routes: itself or its bridge.
    pub fn l3_interface(&self) -> &Self {
        self.bridge.as_deref().unwrap_or(self)
    }

    /// Checks that its kind can be taken over, that it is up, and that it has no XDP program.
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    pub fn check_available(&self) -> Result<(), NetError> {
        self.check_kind()?;
        if !self.up {
            return Err(NetError::Down(self.name.clone()));
        }
        let busy = |id| NetError::Busy { interface: self.name.clone(), program: AttachedProgram::from_id(id) };
        self.xdp_program.map_or(Ok(()), |program| Err(busy(program)))
    }

    /// Checks that no interface on top, such as a VLAN, has an address: frames would lack the tag.
    ///
    /// # Errors
    /// Names that interface.
    pub fn check_address(&self, address: IpAddr) -> Result<(), NetError> {
        if self.l3_interface().addresses.contains(&address) {
            return Ok(());
        }
        let above: Vec<Self> = Self::all()?.into_iter().filter(|other| other.is_on(self)).collect();
        netlink(async |handle| {
            for other in &above {
                if other.query_addresses(&handle).await?.contains(&address) {
                    let (interface, owner) = (self.name.clone(), other.name.clone());
                    return Err(NetError::UpperAddress {
                        interface,
                        address,
                        owner,
                        kind: other.kind.clone().unwrap_or_default(),
                    });
                }
            }
            Ok(())
        })
    }

    /// Returns the source address for a peer: preferred by routes, else the first of its family.
    ///
    /// # Errors
    /// It has no address of that IP version.
    pub fn own_address(&self, peer: Option<IpAddr>) -> Result<IpAddr, NetError> {
        let (station, is_v6) = (self.l3_interface(), peer.is_some_and(|peer| peer.is_ipv6()));
        let preferred = peer.and_then(|peer| station.preferred(peer)).filter(|own| station.addresses.contains(own));
        let version = if is_v6 { "IPv6" } else { "IP" };
        preferred
            .or_else(|| station.address_like(peer))
            .ok_or_else(|| NetError::NoAddress { interface: station.name.clone(), version })
    }

    /// Returns the kernel's source address for a peer on this interface.
    fn preferred(&self, peer: IpAddr) -> Option<IpAddr> {
        let request = self.route_request(peer, None)?;
        let route =
            netlink(async |handle| handle.route().get(request).execute().try_next().await.map_err(NetError::netlink));
        route.ok()??.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::PrefSource(RouteAddress::Inet(own)) => Some(IpAddr::V4(*own)),
            RouteAttribute::PrefSource(RouteAddress::Inet6(own)) => Some(IpAddr::V6(*own)),
            _ => None,
        })
    }

    /// Returns the request for the route to a peer over this interface, from `own` if given; `None`
    /// if their IP versions differ.
    pub(super) fn route_request(&self, peer: IpAddr, own: Option<IpAddr>) -> Option<RouteMessage> {
        let bits = if peer.is_ipv4() { 32 } else { 128 };
        let mut request = RouteMessageBuilder::<IpAddr>::new().destination_prefix(peer, bits).ok()?;
        if let Some(own) = own {
            request = request.source_prefix(own, bits).ok()?;
        }
        Some(request.output_interface(self.index).build())
    }

    async fn query_addresses(&self, handle: &Handle) -> Result<Vec<IpAddr>, NetError> {
        let messages = handle.address().get().set_link_index_filter(self.index).execute();
        let addresses = messages.map_ok(|message| message.attributes.iter().find_map(own_address));
        let addresses: Vec<_> = addresses.try_collect().await.map_err(NetError::netlink)?;
        Ok(addresses.into_iter().flatten().collect())
    }

    async fn query_bridge(&self, handle: &Handle) -> Result<Option<Self>, NetError> {
        let Some(master) = self.master else { return Ok(None) };
        let link = handle.link().get().match_index(master).execute().try_next().await.map_err(NetError::netlink)?;
        let Some(mut bridge) = link.as_ref().map(Self::from).filter(|above| above.kind.as_deref() == Some("bridge"))
        else {
            return Ok(None);
        };
        bridge.addresses = bridge.query_addresses(handle).await?;
        Ok(Some(bridge))
    }

    /// Returns its folder in /sys, or `None` if /sys belongs to another network namespace.
    pub fn sysfs_dir(&self) -> Option<PathBuf> {
        let folder = Path::new("/sys/class/net").join(&self.name);
        let is_so =
            |file, expected: String| fs::read_to_string(folder.join(file)).is_ok_and(|found| found.trim() == expected);
        let mac = self.mac.map(|byte| format!("{byte:02x}")).join(":");
        (is_so("ifindex", self.index.to_string()) && is_so("address", mac)).then_some(folder)
    }

    fn set(&mut self, attribute: &LinkAttribute) {
        match attribute {
            LinkAttribute::Address(bytes) => self.mac = bytes.as_slice().try_into().unwrap_or_default(),
            LinkAttribute::IfName(name) => self.name.clone_from(name),
            LinkAttribute::PropList(names) => self.altnames.extend(names.iter().filter_map(altname)),
            LinkAttribute::Mtu(mtu) => self.mtu = *mtu,
            LinkAttribute::Carrier(carrier) => self.carrier = *carrier != 0,
            LinkAttribute::CarrierChanges(changes) => self.carrier_changes = *changes,
            LinkAttribute::LinkInfo(parts) => self.kind = parts.iter().find_map(kind),
            LinkAttribute::Controller(index) => self.master = Some(*index),
            LinkAttribute::Link(index) => self.lower = Some(*index),
            LinkAttribute::Xdp(parts) => {
                self.xdp_program = parts.iter().find_map(program);
                self.xdp_mode = parts.iter().find_map(mode);
            }
            _ => {}
        }
    }

    /// Returns the first address of `like`'s family; link-local ones last, but first towards such.
    fn address_like(&self, like: Option<IpAddr>) -> Option<IpAddr> {
        let fits = |address: &&IpAddr| like.is_none_or(|like| like.is_ipv4() == address.is_ipv4());
        let is_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let mut fitting = self.addresses.iter().filter(fits);
        let to_local = like.as_ref().is_some_and(is_local);
        fitting.clone().find(|address| is_local(address) == to_local).or_else(|| fitting.next()).copied()
    }
}

impl From<&LinkMessage> for Interface {
    fn from(link: &LinkMessage) -> Self {
        let up = link.header.flags.contains(LinkFlags::Up);
        let is_ethernet = link.header.link_layer_type == LinkLayerType::Ether;
        let mut found = Self { index: link.header.index, up, is_ethernet, ..Self::default() };
        link.attributes.iter().for_each(|attribute| found.set(attribute));
        // In L3 modes it passes packets to the kernel's routes, without their Ethernet addresses.
        let is_of_layer_3 = found.kind.as_deref() == Some("ipvlan") && link.header.flags.contains(LinkFlags::Noarp);
        found.is_ethernet &= !is_of_layer_3;
        found
    }
}

/// Returns the attribute that selects an interface by name. Only alternative names exceed 15 bytes.
fn name_attribute(name: &str) -> LinkAttribute {
    const ALTNAME: u16 = 53;
    if name.len() < libc::IFNAMSIZ {
        return LinkAttribute::IfName(name.into());
    }
    LinkAttribute::Other(DefaultNla::new(ALTNAME, [name.as_bytes(), b"\0"].concat()))
}

fn altname(property: &Prop) -> Option<String> {
    if let Prop::AltIfName(name) = property { Some(name.clone()) } else { None }
}

fn kind(part: &LinkInfo) -> Option<String> {
    if let LinkInfo::Kind(kind) = part { Some(kind.to_string()) } else { None }
}

fn mode(part: &LinkXdp) -> Option<AttachMode> {
    match part {
        LinkXdp::Attached(XdpAttached::Driver) => Some(AttachMode::Native),
        LinkXdp::Attached(XdpAttached::SocketBuffer) => Some(AttachMode::Generic),
        _ => None,
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
    if let AddressAttribute::Address(address) = attribute { Some(*address) } else { None }
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
    fn all_have_names_and_members_name_their_master() {
        assert!(Interface::all().unwrap().iter().any(|found| found.name == "lo" && found.index == 1));
        let part = |name: &str, master| Interface { name: name.into(), master, ..Interface::default() };
        let all = [part("eth0", Some(7)), part("eth1", None), part("eth2", Some(7))];
        let bond = Interface { index: 7, ..Interface::default() };
        let names: Vec<_> = bond.members(&all).map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["eth0", "eth2"]);
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
        assert_eq!(found.address_like(Some("fe80::2".parse().unwrap())), Some(local));
        found.addresses.pop();
        assert_eq!(found.address_like(None), Some(local));
        assert_eq!(found.address_like(Some("10.0.0.1".parse().unwrap())), None);
    }
}
