//! The hosts of a deployed fabric.

use std::net::IpAddr;

use super::interface::PortSpec;

/// A host of a deployed fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployedHost {
    /// The name in the fabric.
    pub name: String,
    /// The addresses; behind an external interface those that were learned.
    pub addresses: Vec<IpAddr>,
    /// The namespace or the interface.
    pub place: HostLocation,
}

/// The location of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLocation {
    /// In a namespace of this name, as for `ip netns`, or at this path.
    Namespace(String),
    /// Behind an external interface.
    External(PortSpec),
}
