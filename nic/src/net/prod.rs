//! What makes the kernel look for a neighbour.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A socket whose packets leave by an interface, whatever other routes there are.
#[derive(Debug)]
pub(super) struct Prod(Option<Socket>);

impl Prod {
    /// Opens it once, since a process that gives up its rights may open no other later. An IPv6 address may be tentative for as long as there is
    /// no link, and is taken nevertheless.
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
        // Without it, no next hop will be found, which is told.
        Self(open().ok())
    }

    /// Any packet to the peer makes the kernel look for the next hop, or check that it is still there. This one goes to the discard port.
    pub(super) fn provoke(&self, peer: IpAddr) {
        const DISCARD: u16 = 9;
        // Where it cannot be sent, no next hop will be found, which is told.
        let _ = self.0.as_ref().map(|socket| socket.send_to(&[0], &SocketAddr::new(peer, DISCARD).into()));
    }
}
