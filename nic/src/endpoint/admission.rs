//! Which clients an endpoint talks to: the handshake, addresses and keys that are proven before anything costs much.

pub(crate) mod connect_tag;
pub(crate) mod handshake;
pub(crate) mod hops;
pub(crate) mod limit;
pub(crate) mod peer_tags;
pub(crate) mod repeat;
pub(crate) mod token;
pub(crate) mod waiting;
