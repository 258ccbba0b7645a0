//! The kernel's side of the network: interfaces and what their drivers can do, where frames to a peer go, and TUN devices.

pub mod declared;
pub mod drivers;
pub mod ethtool;
mod fitness;
mod interface;
mod link;
mod neighbours;
mod next_hop;
mod prod;
mod refusals;
mod revival;
mod tun;
mod verdict;

use std::io;
use std::net::IpAddr;

use rtnetlink::Handle;
use thiserror::Error;

use crate::xdp::Occupant;

pub use fitness::Fitness;
pub use interface::Interface;
pub use link::Mtu;
pub use neighbours::PermanentNeighbours;
pub use next_hop::Resolver;
pub(crate) use next_hop::{NextHops, Source};
pub use refusals::{Refusal, Refusals};
pub use tun::Tun;
pub use verdict::Verdict;

/// Why the kernel's answer is none to go by.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// No interface of that name in the calling thread's network namespace.
    #[error("there is no interface {0}; `ip link` lists them")]
    NoInterface(String),
    /// The interface is down.
    #[error("interface {0} is down: `ip link set {0} up`")]
    Down(String),
    /// The interface has no address, or none of the right IP version.
    #[error("{interface} has no {version} address: `ip address add ... dev {interface}`")]
    NoAddress {
        /// The interface.
        interface: String,
        /// What kind of address: `IP` or `IPv6`.
        version: &'static str,
    },
    /// An XDP program sits on the interface already.
    #[error("interface {interface} is busy: on it is {occupant}; {}", occupant.remedy(interface))]
    Busy {
        /// The interface.
        interface: String,
        /// The program, and whose it is.
        occupant: Occupant,
    },
    /// The interface is none that can be taken over.
    #[error("{interface} is {}, which cannot be taken over: {}; {}, or use UDP sockets", verdict.is, verdict.why, verdict.instead)]
    Unfit {
        /// The interface.
        interface: String,
        /// What it is, and what to do instead.
        verdict: Verdict,
    },
    /// The address is one of an interface on top of this one, whose frames are not plain ones.
    #[error(
        "{address} is the address of {owner} ({kind}) on {interface}, and peers would not take frames that leave by {interface} for its: \
         use {owner}"
    )]
    Above {
        /// The interface.
        interface: String,
        /// The address.
        address: IpAddr,
        /// What it belongs to.
        owner: String,
        /// What that is.
        kind: String,
    },
    /// Packets are too short to be of use.
    #[error("the MTU of {interface} is {mtu}, too small: needed is {needed} (`ip link set {interface} mtu {needed}`)")]
    Mtu {
        /// The interface.
        interface: String,
        /// What it has.
        mtu: u32,
        /// What it must have.
        needed: u32,
    },
    /// The kernel's routes do not lead there over the interface.
    #[error(
        "no route from {from} to {to} over {interface}: {why}; `ip route get` tells the kernel's choice; use another interface, or \
         give the next hop's Ethernet address"
    )]
    NoRoute {
        /// The interface.
        interface: String,
        /// Our address.
        from: IpAddr,
        /// The peer's.
        to: IpAddr,
        /// What the kernel said.
        why: String,
    },
    /// The next hop does not say its Ethernet address.
    #[error(
        "{hop}, {what}, does not answer on {interface}: are the addresses right? `ip neighbour` tells whom the \
         kernel knows; the next hop's Ethernet address may also be given by hand"
    )]
    Silent {
        /// The next hop.
        hop: IpAddr,
        /// Who that is.
        what: String,
        /// The interface.
        interface: String,
    },
    /// The interface is up, but has no link.
    #[error("{0} has no link: is the cable in? `ip link show {0}` says NO-CARRIER as long as there is none")]
    NoLink(String),
    /// The kernel does not answer.
    #[error("asking the kernel about its network: {0}")]
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

/// Runs one exchange with the kernel; for a task of a runtime, in which no other may run, on another thread.
fn ask<T: Send>(exchange: impl AsyncFnOnce(Handle) -> Result<T, NetError> + Send) -> Result<T, NetError> {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            exchange(handle).await
        })
    };
    if tokio::runtime::Handle::try_current().is_err() {
        return ask();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, ask)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
