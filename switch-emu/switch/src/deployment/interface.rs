//! External interfaces: NICs, veth ends and TAPs of the user, in any network namespace.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::str::FromStr;

use socket2::{Domain, Socket, Type};
use spray_fabric::{Link, Network, Node};
use spray_nic::net::Interface;
use spray_nic::net::ethtool::Ethtool;
use spray_nic::net::xdp_features::XdpFeatures;
use spray_wire::offsets::ETHERNET_BYTES;

use super::fdb::{Fdb, is_unicast};
use crate::RunError;
use crate::netns;
use crate::program::MAX_QUEUES;
use crate::registry;

/// An interface at the end of a cable: `HOST=IF`, `SWITCH=IF` where another machine runs that
/// switch, or `HOST=IF@NETNS`. Addresses bound to the host may follow, as in `h0=eth1,10.0.0.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The other end: the name of a host or a switch, or the whole name of the link.
    pub end: String,
    /// The name of the interface.
    pub interface: String,
    /// Its network namespace, as for `ip netns`; `None`: that of this process.
    pub namespace: Option<String>,
    /// Addresses bound to the host at the other end.
    pub addresses: Vec<IpAddr>,
}

impl FromStr for PortSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not HOST=INTERFACE or HOST=INTERFACE@NETNS, with or without ,ADDRESS, as in h0=eth1,10.0.0.1"
            )
        };
        let (end, place) = text.split_once('=').ok_or_else(wrong)?;
        let mut parts = place.split(',');
        let place = parts.next().unwrap_or_default();
        let address = |text: &str| text.parse().ok().filter(|address| is_unicast(*address)).ok_or_else(wrong);
        let addresses = parts.map(address).collect::<Result<Vec<_>, _>>()?;
        let (interface, namespace) =
            place.split_once('@').map_or((place, None), |(interface, namespace)| (interface, Some(namespace)));
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '@', '=']) && name != "." && name != "..";
        if !is_name(end) || !is_name(interface) || !namespace.is_none_or(is_name) {
            return Err(wrong());
        }
        Ok(Self { end: end.into(), interface: interface.into(), namespace: namespace.map(Into::into), addresses })
    }
}

impl std::fmt::Display for PortSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.interface)?;
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, "@{namespace}"))
    }
}

#[derive(Debug)]
pub(super) struct ExternalInterface {
    pub port: PortSpec,
    /// The number of the link that leaves by it.
    pub link: usize,
    /// The host at its other end; `None`: a switch of another machine.
    pub host: Option<usize>,
    pub mac: [u8; 6],
    pub index: u32,
    /// The longest frame, in bytes.
    pub longest: usize,
    /// The number of receive queues.
    pub queues: u32,
    /// Received frames may have partial checksums.
    pub is_software: bool,
    namespace: Option<File>,
    /// Keeps the interface promiscuous while open.
    _promiscuous: Socket,
}

/// The maximum share of an interface's rate: beyond it, its own queue would grow.
const SHARE: (u64, u64) = (95, 100);

impl ExternalInterface {
    /// Opens the interfaces: one per host, or per cable of the only switch of this machine.
    ///
    /// # Errors
    /// [`RunError::Port`] when an end has no interface, or an interface cannot be used.
    pub fn all(ports: &[PortSpec], network: &Network, own: Option<usize>) -> Result<Vec<Self>, RunError> {
        let links: Vec<usize> = match own {
            None => (0..network.hosts.len()).map(|host| network.downlink(host)).collect(),
            Some(own) => {
                (0..network.links.len()).filter(|link| network.links[*link].from == Node::Switch(own)).collect()
            }
        };
        let end = |link: usize| end(&network.links[link].name);
        let is_of = |port: &PortSpec, link: usize| port.end == end(link) || port.end == network.links[link].name;
        if let Some(strange) = ports.iter().find(|port| !links.iter().any(|link| is_of(port, *link))) {
            let ends = links.iter().map(|link| end(*link)).collect::<Vec<_>>().join(", ");
            let PortSpec { end: name, .. } = strange;
            return Err(RunError::Port(match own.map(|own| &network.switches[own].name) {
                None => format!("--port {name}={strange}: the scenario has no host `{name}`; its hosts: {ends}"),
                Some(own) => {
                    format!("--port {name}={strange}: {own} has no cable to `{name}`; its cables lead to: {ends}")
                }
            }));
        }
        check_addresses(ports, network)?;
        let mut all: Vec<Self> = Vec::with_capacity(links.len());
        for link in links {
            let name = end(link);
            let mut interface = ports.iter().filter(|port| is_of(port, link));
            let (Some(port), None) = (interface.next(), interface.next()) else {
                return Err(RunError::Port(format!("`{name}` needs one port: --port {name}=INTERFACE")));
            };
            let interface = Self::take(port, network, link)?;
            if let Some(other) = all.iter().find(|other| other.index == interface.index) {
                let other = &other.port;
                return Err(RunError::Port(if other.to_string() == interface.port.to_string() {
                    format!("{port} is given twice, for {} and {name}", other.end)
                } else {
                    format!(
                        "{other} and {port} have the same index ({}) in their network namespaces, so that one program cannot \
                         distinguish them: use interfaces of one namespace",
                        interface.index
                    )
                }));
            }
            all.push(interface);
        }
        Ok(all)
    }

    fn take(port: &PortSpec, network: &Network, link: usize) -> Result<Self, RunError> {
        let wrong = |why: String| RunError::Port(format!("--port {}={port}: {why}", port.end));
        let (rate_bps, host) = match network.links[link] {
            Link { rate_bps, to: Node::Host(host), .. } => (rate_bps, Some(host)),
            Link { rate_bps, .. } => (rate_bps, None),
        };
        let namespace = port.namespace.as_ref().map(|name| {
            let path = Path::new(registry::FOLDER).join(name);
            File::open(path).map_err(|_| wrong(format!("there is no network namespace {name}; `ip netns` lists them")))
        });
        let namespace = namespace.transpose()?;
        let look = || {
            let interface = Interface::find(&port.interface).map_err(|error| wrong(error.to_string()))?;
            interface.check_available().map_err(|error| wrong(error.to_string()))?;
            if let Some(most_bps) =
                interface.link_bps.map(|bps| bps / SHARE.1 * SHARE.0).filter(|most| *most < rate_bps)
            {
                let [link, most] = [rate_bps, most_bps].map(|bps| bps as f64 / 1e9);
                return Err(wrong(format!(
                    "the link has {link} Gb/s, and the interface carries {most} Gb/s at 95 %: `--set topology.host_gbps={most}` slows the fabric down"
                )));
            }
            let promiscuous = promiscuous(interface.index).map_err(|error| wrong(error.to_string()))?;
            let queues = Ethtool::open(&interface.name).and_then(|nic| nic.channels());
            Ok(Self {
                port: PortSpec { interface: interface.name.clone(), ..port.clone() },
                link,
                host,
                mac: interface.mac,
                index: interface.index,
                longest: interface.mtu as usize + ETHERNET_BYTES,
                queues: queues.map_or(1, |channels| channels.rx_queues()).clamp(1, MAX_QUEUES),
                is_software: interface.kind.as_deref() == Some("veth"),
                namespace: None,
                _promiscuous: promiscuous,
            })
        };
        let found = within(namespace.as_ref(), look)??;
        Ok(Self { namespace, ..found })
    }

    /// Checks that its driver forwards frames redirected from other interfaces; `refusal` is its
    /// reason not to run the program natively. Runs in its namespace, with the program attached.
    pub fn check_forwards(&self, refusal: Option<&str>) -> Result<(), RunError> {
        let wrong = |why: String| {
            let Self { port, .. } = self;
            Err(RunError::Port(format!(
                "--port {}={port}: the links carry more than one thread can delay, so that drivers must forward frames; {why}",
                port.end
            )))
        };
        match (refusal, XdpFeatures::query(self.index)) {
            (Some(why), _) => wrong(format!("its driver rejects the program: {why}")),
            (None, Ok(declared)) if !declared.sends() => wrong(if self.is_software {
                "a veth does if its other end has an XDP program or GRO (`ethtool -K OTHER_END gro on`)".into()
            } else {
                "its driver cannot (it does not declare ndo-xmit)".into()
            }),
            // Drivers do not report it before Linux 6.3.
            _ => Ok(()),
        }
    }

    /// Runs `work` in the interface's network namespace.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, RunError> {
        within(self.namespace.as_ref(), work)
    }

    /// Returns the entries of the kernel's neighbour table.
    pub fn neighbours(&self, now: &Interface) -> Vec<(IpAddr, [u8; 6])> {
        self.run(|| now.neighbours()).ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Reads the state of the interface; `None` where it is gone.
    pub fn now(&self) -> Option<Interface> {
        let found = self.run(|| Interface::find(&self.port.interface)).ok()?.ok()?;
        (found.index == self.index).then_some(found)
    }
}

fn check_addresses(ports: &[PortSpec], network: &Network) -> Result<(), RunError> {
    let wrong = |port: &PortSpec, why: String| Err(RunError::Port(format!("--port {}={port}: {why}", port.end)));
    let mut bound = HashSet::new();
    for port in ports {
        if !port.addresses.is_empty() && !network.hosts.contains(&port.end) {
            return wrong(port, "only hosts have addresses".into());
        }
        if port.addresses.len() > Fdb::MAX_ADDRESSES {
            return wrong(port, format!("at most {} addresses", Fdb::MAX_ADDRESSES));
        }
        if let Some(twice) = port.addresses.iter().find(|address| !bound.insert(**address)) {
            return wrong(port, format!("{twice} is bound twice"));
        }
    }
    Ok(())
}

/// The end in a link's name; parallel cables keep their numbers.
fn end(link: &str) -> &str {
    link.split_once("->").map_or(link, |(_, end)| end)
}

fn within<T>(namespace: Option<&File>, work: impl FnOnce() -> T) -> Result<T, RunError> {
    match namespace {
        None => Ok(work()),
        Some(file) => netns::run_in(file, work).map_err(|error| RunError::io("entering a network namespace", error)),
    }
}

/// Keeps an interface promiscuous while the socket lives, so that it ends with the process.
fn promiscuous(index: u32) -> io::Result<Socket> {
    // Without a protocol it receives nothing.
    let socket = Socket::new(Domain::from(libc::AF_PACKET), Type::from(libc::SOCK_RAW), None)?;
    let wanted = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the option reads one such structure, which is live, of the given size.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const wanted).cast(),
            size_of_val(&wanted) as libc::socklen_t,
        )
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_parsed() {
        let port: PortSpec = "h0=eth1".parse().unwrap();
        assert_eq!((port.end.as_str(), port.to_string().as_str()), ("h0", "eth1"));
        assert_eq!("leaf0->spine0#2=eth1".parse::<PortSpec>().unwrap().end, "leaf0->spine0#2");
        let port: PortSpec = "h1=veth0@blue".parse().unwrap();
        assert_eq!((port.namespace.as_deref(), port.to_string().as_str()), (Some("blue"), "veth0@blue"));
        let port: PortSpec = "h1=veth0@blue,10.0.0.1,fd00::1".parse().unwrap();
        assert_eq!((port.to_string(), port.addresses.len()), ("veth0@blue".into(), 2));
        for wrong in [
            "h0=eth0,",
            "h0=eth0,x",
            "h0=eth0,10.0.0.1,",
            "h0=eth0,224.0.0.1",
            "",
            "h0",
            "=eth0",
            "h0=",
            "h0=eth0@",
            "h0=eth0@../x",
            "h0=a/b",
            "h0=e@n@m",
        ] {
            assert!(wrong.parse::<PortSpec>().unwrap_err().contains("HOST=INTERFACE"), "{wrong}");
        }
    }
}
