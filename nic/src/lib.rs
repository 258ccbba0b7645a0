//! Userspace NIC dataplane on AF_XDP: devices, poll loop, endpoints and connections.
