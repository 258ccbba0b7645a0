//! Userspace NIC dataplane on AF_XDP: devices, poll loop, endpoints and connections.

/// Devices: AF_XDP sockets, and networks in memory.
pub mod device;
