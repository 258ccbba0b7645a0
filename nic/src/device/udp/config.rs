//! What a device over UDP sockets opens, and what it finds out of the network by itself.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use spray_wire::{Ev, Ports};
use thiserror::Error;

use super::options;

/// A socket for each entropy value. With as many, flows of equal size seldom share a path of a few that are equal, and a batch of 64 frames
/// still has some for each socket, which the kernel takes together.
const SOCKETS: u16 = 32;
/// The most: a process may have 1,024 files open.
const MOST_SOCKETS: u16 = 256;
/// The fewest that are worth it, where another program has one of the ports.
const LEAST_SOCKETS: u16 = 4;
/// The MTU where no route tells one.
const USUAL_MTU: u32 = 1500;
/// Anywhere outside of all networks (RFC 5737, RFC 3849): nothing is sent there, the kernel is only asked for the way.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// What a [`UdpDevice`](super::UdpDevice) opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The address to send from and to receive at; one of this machine's.
    pub address: IpAddr,
    /// The ports; frames come to the first one.
    pub ports: Ports,
    /// Entropy values, 4 to 256: a socket for each.
    pub evs: u16,
    /// The longest IP packet to send.
    pub mtu: u32,
}

/// Why sockets could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UdpError {
    /// The kernel knows no way from this machine.
    #[error("no route to {to}: {source}")]
    Route {
        /// Where to.
        to: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// This machine has no default route, so that no address of its own is the one to use.
    #[error("no default route tells which address to use: say one")]
    NoAddress,
    /// The port that frames come to cannot be had.
    #[error(
        "cannot receive at UDP port {port} of {address}: {source}. If it is in use, another endpoint is on that address: use other ports, \
         on all hosts"
    )]
    Receive {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// What the kernel said.
        source: io::Error,
    },
    /// Too few of the ports that stand for entropy values can be had.
    #[error(
        "cannot send from UDP port {port} of {address}, which stands for an entropy value: {source}. If it is in use, stop the program that \
         has it (`ss -ulpn`)"
    )]
    Send {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// What the kernel said.
        source: io::Error,
    },
    /// The sockets could not be prepared.
    #[error("cannot prepare UDP sockets: {0}")]
    Setup(#[source] io::Error),
    /// The endpoint's configuration is out of range, or its frames do not fit the path.
    #[error(transparent)]
    Config(#[from] crate::endpoint::ConfigError),
}

/// The sockets of a device.
pub(super) struct Sockets {
    pub(super) receiving: UdpSocket,
    /// For each entropy value, from the first on.
    pub(super) sending: Vec<UdpSocket>,
}

impl UdpConfig {
    /// The largest MTU that is taken from a route: loopback's is longer than what the device's memory is for.
    pub const LARGEST_MTU: u32 = 9000;

    /// Sockets of an address of this machine. The MTU is that of the default route.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        await_address(Some(address));
        let mtu = elsewhere(address.is_ipv6()).and_then(|to| probe(Some(address), to)).map_or(USUAL_MTU, |way| way.mtu);
        Self::over(Way { from: address, mtu })
    }

    /// Sockets of the address from which packets to `peer` go, with the MTU of the way there.
    ///
    /// # Errors
    /// When there is no way.
    pub fn towards(peer: IpAddr) -> Result<Self, UdpError> {
        let is_fit = |way: &Way| !matches!(way.from, IpAddr::V6(own) if own.is_unicast_link_local());
        let way = probe(None, peer).ok().filter(is_fit);
        let way = way.map_or_else(
            || {
                if peer.is_ipv6() {
                    await_address(None);
                }
                probe(None, peer)
            },
            Ok,
        );
        way.map(Self::over).map_err(|source| UdpError::Route { to: peer, source })
    }

    /// Sockets of an address of this machine, with the MTU of the way from there to `peer`, for which rules by source count.
    ///
    /// # Errors
    /// When there is no way.
    pub fn between(own: IpAddr, peer: IpAddr) -> Result<Self, UdpError> {
        await_address(Some(own));
        match probe(Some(own), peer) {
            // An address of another machine: binding the sockets returns that, with their port.
            Err(source) if source.kind() == io::ErrorKind::AddrNotAvailable => {
                Ok(Self::over(Way { from: own, mtu: USUAL_MTU }))
            }
            way => way.map(Self::over).map_err(|source| UdpError::Route { to: peer, source }),
        }
    }

    /// Sockets of the address that the default route sends from: that of IPv4, if there is one.
    ///
    /// # Errors
    /// When there is no default route.
    pub fn of_default_route() -> Result<Self, UdpError> {
        let way = ELSEWHERE.into_iter().find_map(|to| probe(None, to).ok());
        way.map(Self::over).ok_or(UdpError::NoAddress)
    }

    fn over(way: Way) -> Self {
        Self { address: way.from, ports: Ports::DEFAULT, evs: SOCKETS, mtu: way.mtu.min(Self::LARGEST_MTU) }
    }

    /// Opens the sockets. Where another program has one of the ports that stand for entropy values, those before it are used.
    pub(super) fn sockets(&self) -> Result<Sockets, UdpError> {
        let (address, port) = (self.address, self.ports.first());
        await_address(Some(address));
        let receiving = bind(SocketAddr::new(address, port), false)
            .and_then(|socket| options::make_room(&socket).map(|()| socket))
            .map_err(|source| UdpError::Receive { address, port, source })?;
        let evs = self.evs.clamp(LEAST_SOCKETS, MOST_SOCKETS);
        let mut sending = Vec::with_capacity(evs.into());
        for ev in 0..evs {
            let port = Ev::new(ev).port(evs.into()).number();
            match bind(SocketAddr::new(address, port), true) {
                Ok(socket) => sending.push(socket),
                Err(_) if ev >= LEAST_SOCKETS => break,
                Err(source) => return Err(UdpError::Send { address, port, source }),
            }
        }
        Ok(Sockets { receiving, sending })
    }
}

/// A way through the network.
struct Way {
    from: IpAddr,
    mtu: u32,
}

/// Waits while an IPv6 address, or any without one, is tentative: the kernel binds and chooses none before it has checked for duplicates.
/// Without a link that does not end, so that it waits for some seconds only.
fn await_address(address: Option<IpAddr>) {
    const LOOKS: u32 = 100;
    const LOOK: Duration = Duration::from_millis(50);
    let own = match address {
        Some(IpAddr::V4(_)) => return,
        Some(IpAddr::V6(own)) => Some(format!("{:032x}", own.to_bits())),
        None => None,
    };
    for _ in 0..LOOKS {
        let addresses = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
        if !addresses.lines().any(|line| is_tentative(line, own.as_deref())) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a line of `if_inet6` is of this address, or without one of any but a link-local one, and says that it is tentative.
fn is_tentative(line: &str, own: Option<&str>) -> bool {
    const TENTATIVE: u8 = 0x40;
    const FAILED: u8 = 0x08;
    const LINK_LOCAL: &str = "20";
    let mut words = line.split_whitespace();
    let (address, scope, flags) = (words.next(), words.nth(2), words.next());
    let is_meant = own.map_or(scope != Some(LINK_LOCAL), |own| address == Some(own));
    is_meant
        && flags
            .and_then(|flags| u8::from_str_radix(flags, 16).ok())
            .is_some_and(|it| it & (TENTATIVE | FAILED) == TENTATIVE)
}

/// Asks the kernel for the way to `to`, from an address of ours or any.
fn probe(from: Option<IpAddr>, to: IpAddr) -> io::Result<Way> {
    let any = if to.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((from.unwrap_or(any), 0))?;
    // Nothing is sent: a UDP socket only looks up the way.
    socket.connect((to, Ports::DEFAULT.first()))?;
    Ok(Way { from: socket.local_addr()?.ip(), mtu: options::mtu(&socket, to.is_ipv6())? })
}

fn elsewhere(v6: bool) -> io::Result<IpAddr> {
    ELSEWHERE.into_iter().find(|to| to.is_ipv6() == v6).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A socket at this address and port. `shared`: others that say so too may send from there; nothing is received there.
fn bind(at: SocketAddr, shared: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(shared)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&at.into())?;
    Ok(socket.into())
}
