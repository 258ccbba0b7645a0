//! What an endpoint was bound to.

use std::net::IpAddr;
use std::sync::Arc;

use super::remote::Regions;
use crate::abi::fi_addr_t;
use crate::peers::Peers;
use crate::side::Side;

/// What an endpoint was bound to before it was enabled.
#[derive(Clone, Debug)]
pub struct Bindings {
    /// The address vector.
    pub peers: Arc<Peers>,
    /// For what it sends.
    pub sends: Side,
    /// For what it receives.
    pub receives: Side,
    /// For its reads and writes of peers' memory.
    pub remotes: Side,
    /// The memory that peers may read and write.
    pub regions: Arc<Regions>,
    /// Whether completions tell who sent the message.
    pub tells_source: bool,
    /// Whether receives may be for one peer alone.
    pub is_directed: bool,
    /// The endpoint's context, for failures of operations that have none.
    pub context: usize,
}

/// The peer that a receive is for.
#[must_use]
pub fn source(bindings: &Bindings, from: fi_addr_t) -> Option<IpAddr> {
    if bindings.is_directed { bindings.peers.get(from).map(|peer| peer.ip()) } else { None }
}
