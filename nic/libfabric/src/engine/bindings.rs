use std::net::IpAddr;
use std::sync::Arc;

use super::rma::Regions;
use crate::abi::fi_addr_t;
use crate::direction::Direction;
use crate::peers::Peers;

/// The objects that were bound to an endpoint before it was enabled.
#[derive(Clone, Debug)]
pub struct Bindings {
    pub peers: Arc<Peers>,
    pub sends: Direction,
    pub receives: Direction,
    /// RMA operations of this endpoint.
    pub remotes: Direction,
    /// Memory that peers may access.
    pub regions: Arc<Regions>,
    /// Whether completions include the source of the message.
    pub reports_source: bool,
    /// Whether receives may be restricted to one peer.
    pub is_directed: bool,
    /// The context of the endpoint, for failures of operations without one.
    pub context: usize,
}

pub fn source(bindings: &Bindings, from: fi_addr_t) -> Option<IpAddr> {
    if bindings.is_directed { bindings.peers.get(from).map(|peer| peer.ip()) } else { None }
}
