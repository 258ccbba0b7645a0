//! Serialisation times and rates.

/// Returns the picoseconds that `bytes` of a frame take, rounded up: no link exceeds its rate.
#[inline]
pub const fn serialisation_ceil_ps(bytes: u64, link_bps: u64) -> u64 {
    (bytes * PS_PER_BYTE_AT_1_BPS).div_ceil(link_bps)
}

/// Returns the picoseconds that `bytes` take, rounded down: for base RTTs, queue drain times and
/// gaps. A rate of 0 counts as 1, and the result saturates at `u64::MAX`.
#[inline]
pub fn serialisation_floor_ps(bytes: u64, rate_bps: u64) -> u64 {
    let ps = u128::from(bytes) * u128::from(PS_PER_BYTE_AT_1_BPS) / u128::from(rate_bps.max(1));
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// Returns the bytes that a link carries in one base round-trip time (the BDP), rounded down.
pub const fn bdp_bytes(base_rtt_ps: u64, link_bps: u64) -> u64 {
    let bytes = base_rtt_ps as u128 * link_bps as u128 / (8 * PS_PER_S as u128);
    if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
}

/// Returns the rate in bits per second of `bytes` in `time_ps`, rounded down, at least 1.
pub const fn rate_bps(bytes: u64, time_ps: u64) -> u64 {
    let time_ps = if time_ps == 0 { 1 } else { time_ps };
    let bps = bytes as u128 * 8 * PS_PER_S as u128 / time_ps as u128;
    match bps {
        0 => 1,
        bps if bps > u64::MAX as u128 => u64::MAX,
        bps => bps as u64,
    }
}

/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;
const PS_PER_BYTE_AT_1_BPS: u64 = 8_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_never_carries_more_than_its_rate() {
        assert_eq!(serialisation_ceil_ps(1, 3_000_000_000_000), 3);
    }

    #[test]
    fn a_time_rounded_down_has_no_overflow() {
        assert_eq!(serialisation_floor_ps(1, 3_000_000_000_000), 2);
        assert_eq!(serialisation_floor_ps(4_150, 400_000_000_000), serialisation_ceil_ps(4_150, 400_000_000_000));
        assert_eq!(serialisation_floor_ps(u64::MAX, 0), u64::MAX);
    }
}
