//! Configuration of a device over UDP sockets, and what it derives from the network.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use spray_wire::{Ev, Ports};
use thiserror::Error;

use super::options;

/// Entropy values, each with a socket. With this number, flows of equal size seldom share one of a
/// few paths, and a batch of 64 frames has several for each socket, which GSO combines.
const SOCKETS: u16 = 32;
/// Maximum: a process may have 1,024 open files.
const MOST_SOCKETS: u16 = 256;
/// Minimum, where another program has one of the ports.
const LEAST_SOCKETS: u16 = 4;
/// The MTU where no route has one.
const USUAL_MTU: u32 = 1500;
/// Addresses outside all networks (RFC 5737, RFC 3849) for route lookups; nothing is sent there.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// The sockets that a [`UdpDevice`](super::UdpDevice) opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The local address, to send from and to receive at.
    pub address: IpAddr,
    /// The ports; frames are received at the first.
    pub ports: Ports,
    /// The number of entropy values, 4 to 256, each with a socket.
    pub evs: u16,
    /// The longest IP packet in bytes.
    pub mtu: u32,
}

/// Why sockets could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UdpError {
    /// The kernel has no route.
    #[error("no route to {to}: {source}")]
    Route {
        /// The destination.
        to: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// This machine has no default route, so that the address must be given.
    #[error("no default route tells which address to use: say one")]
    NoAddress,
    /// The receiving port cannot be bound.
    #[error(
        "cannot receive at UDP port {port} of {address}: {source}. If it is in use, another endpoint is on that address: use other ports, \
         on all hosts"
    )]
    Receive {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// The kernel's error.
        source: io::Error,
    },
    /// Too few ports of entropy values can be bound.
    #[error(
        "cannot send from UDP port {port} of {address}, which stands for an entropy value: {source}. If it is in use, stop the program that \
         has it (`ss -ulpn`)"
    )]
    Send {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// The kernel's error.
        source: io::Error,
    },
    /// Socket options cannot be set.
    #[error("cannot prepare UDP sockets: {0}")]
    Setup(#[source] io::Error),
    /// The endpoint's configuration is out of range, or its frames do not fit the path.
    #[error(transparent)]
    Config(#[from] crate::endpoint::ConfigError),
}

pub(super) struct Sockets {
    pub(super) receiving: UdpSocket,
    /// By entropy value.
    pub(super) sending: Vec<UdpSocket>,
}

impl UdpConfig {
    /// The largest MTU that is taken from a route: that of loopback is longer.
    pub const MAX_MTU: u32 = 9000;

    /// Configures sockets of a local address. The MTU is that of the default route.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        await_address(Some(address));
        let mtu = elsewhere(address.is_ipv6()).and_then(|to| probe(Some(address), to)).map_or(USUAL_MTU, |way| way.mtu);
        Self::over(Way { from: address, mtu })
    }

    /// Configures sockets of the address from which packets to `peer` leave, with the MTU of that
    /// route.
    ///
    /// # Errors
    /// When there is no route.
    pub fn for_peer(peer: IpAddr) -> Result<Self, UdpError> {
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

    /// Configures sockets of a local address, with the MTU of the route from it to `peer`, by rules
    /// of source addresses too.
    ///
    /// # Errors
    /// When there is no route.
    pub fn for_path(own: IpAddr, peer: IpAddr) -> Result<Self, UdpError> {
        await_address(Some(own));
        match probe(Some(own), peer) {
            // An address of another machine: binding the sockets returns the error, with its port.
            Err(source) if source.kind() == io::ErrorKind::AddrNotAvailable => {
                Ok(Self::over(Way { from: own, mtu: USUAL_MTU }))
            }
            way => way.map(Self::over).map_err(|source| UdpError::Route { to: peer, source }),
        }
    }

    /// Configures sockets of the address of the default route, preferably IPv4.
    ///
    /// # Errors
    /// When there is no default route.
    pub fn for_default_route() -> Result<Self, UdpError> {
        let way = ELSEWHERE.into_iter().find_map(|to| probe(None, to).ok());
        way.map(Self::over).ok_or(UdpError::NoAddress)
    }

    fn over(way: Way) -> Self {
        Self { address: way.from, ports: Ports::DEFAULT, evs: SOCKETS, mtu: way.mtu.min(Self::MAX_MTU) }
    }

    /// Opens the sockets. If another program has one of the ports of entropy values, only those
    /// before it are used.
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

struct Way {
    from: IpAddr,
    mtu: u32,
}

/// Waits while `address`, or any address, is tentative: the kernel does not use an IPv6 address
/// before duplicate address detection. Gives up after a few seconds, since that does not end
/// without a link.
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

/// Returns whether a line of `if_inet6` is of this address (of any address but link-local ones if
/// `None`) and tentative.
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

/// Looks up the route to `to`, from a local address or any.
fn probe(from: Option<IpAddr>, to: IpAddr) -> io::Result<Way> {
    let any = if to.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((from.unwrap_or(any), 0))?;
    // Connecting a UDP socket only looks up the route; nothing is sent.
    socket.connect((to, Ports::DEFAULT.first()))?;
    Ok(Way { from: socket.local_addr()?.ip(), mtu: options::mtu(&socket, to.is_ipv6())? })
}

fn elsewhere(v6: bool) -> io::Result<IpAddr> {
    ELSEWHERE.into_iter().find(|to| to.is_ipv6() == v6).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Binds a socket. Several `shared` sockets may send from one port; nothing is received there.
fn bind(at: SocketAddr, shared: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(shared)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&at.into())?;
    Ok(socket.into())
}
