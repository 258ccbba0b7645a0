//! Units in which ports and their queues count.

/// Infinity, with a free sign bit for [`Globals::epoch`](crate::config::Globals::epoch).
pub const NEVER: u64 = i64::MAX as u64;
/// Queues count in 1/128 byte, which bounds the rounding of a slot's drain.
pub const UNIT_BITS: u32 = 7;
/// Fraction bits of [`PortState::ps_per_unit`](crate::link::PortState::ps_per_unit).
pub const PS_FRACTION_BITS: u32 = 19;
/// Picoseconds per byte at 1 b/s.
pub const PS_PER_BYTE_AT_1_BPS: u128 = 8_000_000_000_000;
