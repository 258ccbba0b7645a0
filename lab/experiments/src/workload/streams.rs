//! The random streams of workloads. Hosts and switches use others.

/// Payload, from that of the first flow on.
pub(super) const PAYLOAD_STREAM: u64 = 1 << 32;
/// Permutations. Those after it, by host, draw partners and sizes.
pub(super) const PATTERN_STREAM: u64 = 1 << 33;
/// Paths of flows.
pub(super) const PATH_STREAM: u64 = 1 << 34;
/// Which hosts take part.
pub(super) const MEMBER_STREAM: u64 = 1 << 35;
