//! The interfaces of the hosts of a run.

use crate::routers::Routers;

/// An interface of a host, and its router's toward it.
#[derive(Debug)]
pub struct Port {
    /// 0 sends, 1 receives.
    pub side: usize,
    /// The host's interface.
    pub interface: &'static str,
    pub gateway: &'static str,
    /// Its address with the length of its network.
    pub address: &'static str,
    pub router: &'static str,
    /// The length of the network of both, and what the host's default route says besides.
    pub bits: u8,
    pub metric: &'static str,
}

/// The sender's two interfaces, and the receiver's.
pub const PORTS: [Port; 3] = [
    Port {
        side: 0,
        interface: Routers::INTERFACE,
        gateway: Routers::GATEWAY,
        address: "10.1.0.2",
        router: "10.1.0.1",
        bits: 24,
        metric: "",
    },
    Port {
        side: 0,
        interface: Routers::SECOND,
        gateway: "more",
        address: "10.1.0.200",
        router: "10.1.0.129",
        bits: 25,
        metric: "metric 9",
    },
    Port {
        side: 1,
        interface: Routers::INTERFACE,
        gateway: Routers::GATEWAY,
        address: "10.2.0.2",
        router: "10.2.0.1",
        bits: 24,
        metric: "",
    },
];
