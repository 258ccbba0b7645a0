//! The hosts of a deployed fabric, as programs see them.

use std::net::IpAddr;

use super::given::GivenPort;

/// A host, as programs in it and around it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployedHost {
    /// Its name in the fabric.
    pub name: String,
    /// Its addresses: those of a host behind a given interface as they are learned.
    pub addresses: Vec<IpAddr>,
    /// Where it is.
    pub place: HostLocation,
}

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLocation {
    /// In a namespace of this name, as for `ip netns`, or at this path.
    Namespace(String),
    /// Behind a given interface.
    Behind(GivenPort),
}
