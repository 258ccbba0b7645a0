//! Random streams of workloads; other parts use other ones.

/// Payload, plus the flow's number.
pub(super) const PAYLOAD_STREAM: u64 = 1 << 32;
/// Permutations; partners and sizes add 1 and the host.
pub(super) const PATTERN_STREAM: u64 = 1 << 33;
/// Paths, plus the flow's number.
pub(super) const PATH_STREAM: u64 = 1 << 34;
/// Participating hosts.
pub(super) const MEMBER_STREAM: u64 = 1 << 35;
