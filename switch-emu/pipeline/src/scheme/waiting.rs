//! The queue of a port, as schemes read it.

use crate::units::{PS_FRACTION_BITS, UNIT_BITS};

/// The queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Queued bytes of both classes.
    pub bytes: u64,
    /// Limit of queued data in bytes.
    pub limit: u32,
    /// Picoseconds per unit, 2^-7 bytes, at the present rate, in units of 2^-19.
    pub ps_per_unit: u64,
}

impl Waiting {
    /// Picoseconds per 1,024 bytes at the present rate.
    #[inline(always)]
    pub(super) fn kib_ps(&self) -> u64 {
        self.ps_per_unit >> (PS_FRACTION_BITS - UNIT_BITS - 10)
    }

    /// Bytes sent in this time at the present rate.
    #[inline(always)]
    pub(super) fn bytes_in(&self, time_ps: u64) -> u64 {
        (time_ps << (PS_FRACTION_BITS - UNIT_BITS)) / self.ps_per_unit.max(1)
    }
}
