//! The backlog of a port, as schemes read it.

use crate::units::{PS_FRACTION_BITS, UNIT_BITS};

/// What waits at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Bytes of both classes.
    pub bytes: u64,
    /// Data bytes that may wait.
    pub limit: u32,
    /// Picoseconds that a unit, 2^-7 bytes, takes at the present rate, in units of 2^-19.
    pub ps_per_unit: u64,
}

impl Waiting {
    /// Picoseconds that 1,024 bytes take at its present rate.
    #[inline(always)]
    pub(super) fn kib_ps(&self) -> u64 {
        self.ps_per_unit >> (PS_FRACTION_BITS - UNIT_BITS - 10)
    }

    /// Bytes that the port sends in this time at its present rate.
    #[inline(always)]
    pub(super) fn bytes_in(&self, time_ps: u64) -> u64 {
        (time_ps << (PS_FRACTION_BITS - UNIT_BITS)) / self.ps_per_unit.max(1)
    }
}
