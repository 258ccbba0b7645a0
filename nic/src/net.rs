//! The kernel's side of the network: interfaces, drivers, next hops and TUN devices.

mod attach_monitor;
pub mod drivers;
pub mod ethtool;
mod icmp;
mod interface;
mod limitation;
mod link;
mod neighbour_probe;
mod neighbours;
mod next_hop;
mod support;
mod tun;
pub mod xdp_features;

use std::io;
use std::net::IpAddr;

use rtnetlink::Handle;
use thiserror::Error;

use crate::xdp::AttachedProgram;

pub use icmp::{IcmpErrors, Unreachable};
pub use interface::Interface;
pub use limitation::Limitation;
pub use link::Mtu;
pub use neighbours::PermanentNeighbours;
pub use next_hop::Resolver;
pub(crate) use next_hop::{Egress, NextHops};
pub use support::Support;
pub use tun::Tun;

/// Why an interface, route or neighbour cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// There is no interface of that name in the calling thread's network namespace.
    #[error("there is no interface {0}; `ip link` lists them")]
    NoInterface(String),
    /// The interface is down.
    #[error("interface {0} is down: `ip link set {0} up`")]
    Down(String),
    /// The interface has no address of the required IP version.
    #[error("{interface} has no {version} address: `ip address add ... dev {interface}`")]
    NoAddress {
        /// The interface.
        interface: String,
        /// Kind of address: `IP` or `IPv6`.
        version: &'static str,
    },
    /// The interface already has an XDP program.
    #[error("interface {interface} is in use by {program}; {}", program.remedy(interface))]
    Busy {
        /// The interface.
        interface: String,
        /// The program, and its owner.
        program: AttachedProgram,
    },
    /// The interface cannot be taken over.
    #[error("{interface} is {}, which cannot be taken over: {}; {}, or use UDP sockets", limitation.is, limitation.why, limitation.instead)]
    Unsuitable {
        /// The interface.
        interface: String,
        /// What it is, and what to use instead.
        limitation: Limitation,
    },
    /// The address belongs to an interface on top of this one, with another frame format.
    #[error(
        "{address} belongs to {owner} ({kind}) on top of {interface}, and peers would not accept its frames from {interface}: use {owner}"
    )]
    UpperAddress {
        /// The interface.
        interface: String,
        /// The address.
        address: IpAddr,
        /// The interface that has it.
        owner: String,
        /// Kind of that interface.
        kind: String,
    },
    /// The MTU is too small.
    #[error("the MTU of {interface} is {mtu}, too small: needed is {needed} (`ip link set {interface} mtu {needed}`)")]
    Mtu {
        /// The interface.
        interface: String,
        /// MTU of the interface.
        mtu: u32,
        /// Smallest possible MTU.
        needed: u32,
    },
    /// The kernel has no route over the interface.
    #[error(
        "no route from {from} to {to} over {interface}: {why}; see `ip route get`; use another interface, or give the next hop's \
         Ethernet address"
    )]
    NoRoute {
        /// The interface.
        interface: String,
        /// Local address.
        from: IpAddr,
        /// Address of the peer.
        to: IpAddr,
        /// The kernel's answer.
        why: String,
    },
    /// The next hop cannot be resolved.
    #[error(
        "{hop}, {what}, does not answer on {interface}: check the addresses and `ip neighbour`, or give the next hop's Ethernet \
         address"
    )]
    NeighbourUnreachable {
        /// The next hop.
        hop: IpAddr,
        /// Whether it is the peer or a router.
        what: String,
        /// The interface.
        interface: String,
    },
    /// The interface is up without carrier.
    #[error("{0} has no link: check the cable (`ip link show {0}` shows NO-CARRIER)")]
    NoLink(String),
    /// A netlink request failed.
    #[error("netlink request failed: {0}")]
    Netlink(String),
}

impl NetError {
    fn netlink(error: impl ToString) -> Self {
        Self::Netlink(error.to_string())
    }
}

impl From<io::Error> for NetError {
    fn from(error: io::Error) -> Self {
        Self::netlink(error)
    }
}

/// Runs one netlink exchange; within a tokio runtime on another thread, as runtimes do not nest.
fn netlink<T: Send>(exchange: impl AsyncFnOnce(Handle) -> Result<T, NetError> + Send) -> Result<T, NetError> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            exchange(handle).await
        })
    };
    if tokio::runtime::Handle::try_current().is_err() {
        return run();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
