//! Admission of clients: the handshake, and proofs of address and key before the costly key exchange.

pub(crate) mod connect_tag;
pub(crate) mod handshake;
pub(crate) mod hops;
pub(crate) mod limit;
pub(crate) mod peer_tags;
pub(crate) mod repeat;
pub(crate) mod token;
pub(crate) mod waiting;
