//! Userspace NIC dataplane on AF_XDP: devices, poll loop, endpoints and connections.

/// Devices: AF_XDP sockets, and networks in memory.
pub mod device;
/// Endpoints: connections and messages over a device.
pub mod endpoint;
/// The release wheel of emulated hosts.
pub mod wheel;

pub use endpoint::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, MessageId, Mode, Peer};
