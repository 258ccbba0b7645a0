//! Triggers ARP and ND resolution.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A socket bound to an interface, regardless of routes.
#[derive(Debug)]
pub(super) struct NeighbourProbe(Option<Socket>);

impl NeighbourProbe {
    /// Opens the socket, once: the process may give up its privileges later. Binding accepts an
    /// IPv6 address that is tentative while there is no link.
    pub(super) fn open(interface: &str, address: IpAddr) -> Self {
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::for_address((address, 0).into()), Type::DGRAM, None)?;
            socket.bind_device(Some(interface.as_bytes()))?;
            if address.is_ipv6() {
                socket.set_freebind_v6(true)?;
            }
            socket.bind(&SocketAddr::new(address, 0).into())?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        // Without it, next hops time out, which is reported.
        Self(open().ok())
    }

    /// Makes the kernel resolve or verify the next hop to a peer, by a packet to the discard port.
    pub(super) fn send(&self, peer: IpAddr) {
        const DISCARD: u16 = 9;
        // On failure, next hops time out, which is reported.
        let _ = self.0.as_ref().map(|socket| socket.send_to(&[0], &SocketAddr::new(peer, DISCARD).into()));
    }
}
