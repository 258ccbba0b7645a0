//! Interfaces that an endpoint can use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrLike;

use crate::error::Errno;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub address: IpAddr,
}

/// Requirements of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub name: Option<String>,
    /// The address; an unspecified one only selects the IP version.
    pub source: Option<IpAddr>,
    /// An address that must be reachable.
    pub destination: Option<IpAddr>,
    pub is_v6: Option<bool>,
}

/// Returns the matching interfaces, the best first. Fails when the kernel does not list interfaces.
pub fn find(filter: &Filter) -> Result<Vec<Candidate>, Errno> {
    let mut all = list()?;
    let leads = filter.destination.and_then(source_towards);
    all.retain(|candidate| filter.takes(candidate, leads));
    all.sort_by_key(|candidate| rank(candidate.address));
    Ok(all)
}

impl Filter {
    fn takes(&self, candidate: &Candidate, leads: Option<IpAddr>) -> bool {
        let address = candidate.address;
        let source = self.source.is_none_or(|source| match source.is_unspecified() {
            true => source.is_ipv4() == address.is_ipv4(),
            false => source == address,
        });
        // A named interface or address takes precedence over the kernel's routes.
        let is_named = self.name.is_some() || self.source.is_some_and(|source| !source.is_unspecified());
        let leads = match self.destination {
            Some(to) => to.is_ipv4() == address.is_ipv4() && (is_named || leads == Some(address)),
            None => true,
        };
        let version = self.is_v6.is_none_or(|is_v6| is_v6 == address.is_ipv6());
        source && leads && version && self.name.as_ref().is_none_or(|name| *name == candidate.name)
    }
}

/// Sorts link-local addresses last, as `Interface::own_address`.
fn rank(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(v6) if !v6.is_unicast_link_local() => 1,
        IpAddr::V6(_) => 2,
    }
}

fn list() -> Result<Vec<Candidate>, Errno> {
    let found = getifaddrs().map_err(|error| Errno(error as i32))?;
    let of = |interface: nix::ifaddrs::InterfaceAddress| {
        let fits = interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.intersects(InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT);
        let address = interface.address.filter(|_| fits)?;
        let address = match (address.as_sockaddr_in(), address.as_sockaddr_in6(), address.family()) {
            (Some(v4), _, _) => v4.ip().into(),
            (_, Some(v6), _) => v6.ip().into(),
            _ => return None,
        };
        Some(Candidate { name: interface.interface_name, address })
    };
    Ok(found.filter_map(of).collect())
}

/// Returns the source address that the kernel's routes select. Sends nothing.
fn source_towards(destination: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((destination, spray_nic::Ports::DEFAULT.first())).ok()?;
    socket.local_addr().ok().map(|address: SocketAddr| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_select_interfaces() {
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let candidate = |name: &str, text| Candidate { name: name.into(), address: address(text).unwrap() };
        let all = [candidate("a", "10.0.0.1"), candidate("a", "fd00::1"), candidate("b", "10.1.0.1")];
        let taken = |filter: Filter, leads: &str| -> String {
            all.iter().map(|candidate| if filter.takes(candidate, address(leads)) { '+' } else { '-' }).collect()
        };
        let filter = Filter::default;
        assert_eq!(taken(filter(), ""), "+++");
        assert_eq!(taken(Filter { name: Some("a".into()), ..filter() }, ""), "++-");
        assert_eq!(taken(Filter { is_v6: Some(true), ..filter() }, ""), "-+-");
        assert_eq!(taken(Filter { source: address("10.1.0.1"), ..filter() }, ""), "--+");
        assert_eq!(taken(Filter { source: address("0.0.0.0"), ..filter() }, ""), "+-+");
        let to = Filter { destination: address("10.9.0.1"), ..filter() };
        assert_eq!(taken(to.clone(), "10.1.0.1"), "--+");
        assert_eq!(taken(to.clone(), ""), "---");
        assert_eq!(taken(Filter { name: Some("a".into()), ..to }, "10.1.0.1"), "+--");
    }

    #[test]
    fn the_loopback_interface_is_not_offered() {
        assert!(find(&Filter { name: Some("lo".into()), ..Filter::default() }).unwrap().is_empty());
        assert_eq!(source_towards([127, 0, 0, 1].into()), Some([127, 0, 0, 1].into()));
    }
}
