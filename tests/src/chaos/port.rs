//! The interfaces of the hosts of a run.

use crate::routers::Routers;

/// An interface of a host, and the corresponding one of its router.
#[derive(Debug)]
pub struct Port {
    /// The host: 0 sends, 1 receives.
    pub side: usize,
    /// The name of the host's interface.
    pub interface: &'static str,
    pub gateway: &'static str,
    /// The interface's address with the prefix length.
    pub address: &'static str,
    pub router: &'static str,
    /// The prefix length of both, and further arguments of the host's default route.
    pub bits: u8,
    pub metric: &'static str,
}

/// The two interfaces of the sender, and the one of the receiver.
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
