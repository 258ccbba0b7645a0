//! Admission of clients: the handshake, and proofs of address and key before the costly key exchange.

pub(crate) mod client_next_hops;
pub(crate) mod connect_tag;
pub(crate) mod exchange_queue;
pub(crate) mod handshake;
pub(crate) mod limit;
pub(crate) mod peer_tags;
pub(crate) mod retransmit;
pub(crate) mod token;
