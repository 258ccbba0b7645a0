//! Units in which ports and their queues count.

/// A time that never comes. It leaves the sign bit free, by which [`Globals::epoch`](crate::config::Globals::epoch) compares times.
pub const NEVER: u64 = i64::MAX as u64;
/// Queues count in 1/128 byte, so that a slot's drain is rounded by less than 1/128 byte.
pub const UNIT_BITS: u32 = 7;
/// Fraction bits of [`PortState::ps_per_unit`](crate::link::PortState::ps_per_unit).
pub const PS_FRACTION_BITS: u32 = 19;
/// Picoseconds that a byte takes at 1 b/s.
pub const PS_PER_BYTE_AT_1_BPS: u128 = 8_000_000_000_000;
