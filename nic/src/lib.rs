//! Userspace NIC dataplane on AF_XDP: devices, poll loop, endpoints and connections.

/// Devices: AF_XDP sockets, and networks in memory.
pub mod device;
/// Tokio's way to endpoints: a driver thread, and handles to await.
pub mod aio;
/// Clocks for driver threads.
pub mod clock;
/// The poll loop: many endpoints on one thread.
pub mod driver;
/// Endpoints: connections and messages over a device.
pub mod endpoint;
/// Calls of the operating system for driver threads.
pub mod sys;
/// The release wheel of emulated hosts.
pub mod wheel;

pub use endpoint::{ConnectionId, Endpoint, EndpointConfig, EndpointEvent, MessageId, Mode, Peer};
