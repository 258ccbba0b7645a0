//! The congestion rule of Flowcut (Bonato et al., *Flowcut Switching*, §II-B), shared by hosts and
//! switches: the average of a path's RTTs relative to the minimum, and their trend.
//!
//! Times are ticks of 1,024 ps in 32 bits, up to 4.4 s; ratios are 16.16 fixed point. No panics and
//! no floats, as the kernel's verifier requires.

/// 1 as a ratio.
pub const ONE: u32 = 1 << 16;

/// The number of distinct hop counts: diameters are below ten (Flowcut §II-B); more count as nine.
pub const HOPS: usize = 10;

/// Converts picoseconds to ticks, at least 1 unless 0.
#[inline(always)]
pub fn ticks(ps: u64) -> u32 {
    let ticks = if ps >> 10 > 0xffff_ffff { 0xffff_ffff } else { ps >> 10 };
    if ps > 0 && ticks == 0 { 1 } else { ticks as u32 }
}

/// Thresholds and weights of the rule, in units of [`ONE`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Threshold of the average normalised RTT.
    pub ratio: u32,
    /// Weight of a new sample in that average.
    pub weight: u32,
    /// Threshold of the average growth from one sample to the next.
    pub trend: u32,
    /// Weight of a new difference in that average.
    pub trend_weight: u32,
}

impl Default for Rule {
    /// A ratio of 4 (§III-C2); weights of 0.12 and a trend of 0.05 (FLC-12, FLC-13).
    fn default() -> Self {
        Self { ratio: 4 * ONE, weight: 7_864, trend: 3_277, trend_weight: 7_864 }
    }
}

/// A sample of the round-trip time (RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    rtt: u32,
    serial: u32,
    hops: usize,
}

impl Sample {
    /// Creates the sample of a packet of `bytes` over `hops` ports of `kib_ps` per 1,024 bytes.
    //= docs/specs/flowcut.md#FLC-10 least round-trip time
    #[inline(always)]
    pub fn new(rtt_ps: u64, bytes: u32, kib_ps: u32, hops: u8) -> Self {
        let rtt = ticks(if rtt_ps == 0 { 1 } else { rtt_ps });
        let hops = if hops as usize >= HOPS { HOPS - 1 } else { hops as usize };
        let serial = ticks(u64::from(kib_ps) * u64::from(bytes) / 1024 * hops as u64);
        Self { rtt, serial: if serial < rtt { serial } else { rtt - 1 }, hops }
    }

    /// Returns the hop count, clamped below [`HOPS`].
    #[inline(always)]
    pub fn hops(&self) -> usize {
        self.hops
    }

    /// Returns the RTT without the packet's serialisation, in ticks, at least 1.
    #[inline(always)]
    pub fn queueless(&self) -> u32 {
        self.rtt - self.serial
    }

    /// Returns the minimum RTT of this packet, where `least` is that without serialisation.
    #[inline(always)]
    pub fn reference(&self, least: u32) -> u64 {
        u64::from(least) + u64::from(self.serial)
    }

    /// Returns the normalised RTT: its ratio to `reference`.
    //= docs/specs/flowcut.md#FLC-11 normalised RTT
    #[inline(always)]
    pub fn over(&self, reference: u64) -> u32 {
        let ratio = (u64::from(self.rtt) << 16) / if reference == 0 { 1 } else { reference };
        if ratio > 0xffff_ffff { u32::MAX } else { ratio as u32 }
    }
}

/// Congestion state of the path of one flowcut; 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The average normalised RTT.
    pub average: u32,
    /// The last normalised RTT; 0 before the first.
    pub previous: u32,
    /// The average difference between successive ones.
    pub trend: i32,
}

impl Congestion {
    /// The state of a new flowcut.
    pub const NONE: Self = Self { average: ONE, previous: 0, trend: 0 };

    /// Updates the state with a normalised RTT.
    #[inline(always)]
    pub fn on_sample(&mut self, rule: &Rule, rtt: u32) {
        //= docs/specs/flowcut.md#FLC-12 average against threshold
        self.average = average(rule.weight, i64::from(rtt), i64::from(self.average)) as u32;
        //= docs/specs/flowcut.md#FLC-13 trend against threshold
        if self.previous != 0 {
            let difference = i64::from(rtt) - i64::from(self.previous);
            let trend = average(rule.trend_weight, difference, i64::from(self.trend));
            self.trend = if trend > i64::from(i32::MAX) {
                i32::MAX
            } else if trend < i64::from(i32::MIN) {
                i32::MIN
            } else {
                trend as i32
            };
        }
        self.previous = rtt;
    }

    /// Returns whether the average exceeds its threshold.
    //= docs/specs/flowcut.md#FLC-12 average against threshold
    #[inline(always)]
    pub fn is_slow(&self, rule: &Rule) -> bool {
        self.average > rule.ratio
    }

    /// Returns whether the trend exceeds its threshold.
    //= docs/specs/flowcut.md#FLC-13 trend against threshold
    #[inline(always)]
    pub fn is_growing(&self, rule: &Rule) -> bool {
        i64::from(self.trend) > i64::from(rule.trend)
    }
}

/// Returns `weight * sample + (1 - weight) * before`, rounded.
#[inline(always)]
pub fn average(weight: u32, sample: i64, before: i64) -> i64 {
    let weight = i64::from(weight);
    (weight * sample + (i64::from(ONE) - weight) * before + i64::from(ONE / 2)) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ticks() {
        assert_eq!([0, 1, 1_023, 1_024, 10_240, u64::MAX].map(ticks), [0, 1, 1, 1, 10, u32::MAX]);
    }

    #[test]
    fn a_packet_without_queueing_has_a_ratio_of_one() {
        //= docs/specs/flowcut.md#FLC-11 normalised RTT
        // One hop of 4 KiB at 100 Gb/s takes 327,680 ps.
        let sample = Sample::new(10_240_000 + 3 * 327_680, 4_096, 81_920, 3);
        assert_eq!((sample.hops(), sample.queueless()), (3, 10_000));
        assert_eq!(sample.over(sample.reference(10_000)), ONE);
        // Twice the time on the same path.
        let late = Sample::new(2 * (10_240_000 + 3 * 327_680), 4_096, 81_920, 3);
        assert_eq!(late.over(late.reference(10_000)), 2 * ONE);
        assert_eq!(Sample::new(1, 9_000, u32::MAX, 200).queueless(), 1);
    }

    #[test]
    fn a_path_is_congested_above_the_thresholds() {
        //= docs/specs/flowcut.md#FLC-12 average against threshold
        //= docs/specs/flowcut.md#FLC-13 trend against threshold
        let rule = Rule { weight: ONE / 2, trend_weight: ONE, ..Rule::default() };
        let mut path = Congestion::NONE;
        path.on_sample(&rule, 7 * ONE);
        assert!((path.average, path.is_slow(&rule), path.is_growing(&rule)) == (4 * ONE, false, false));
        path.on_sample(&rule, 7 * ONE + rule.trend);
        assert!(path.is_slow(&rule) && !path.is_growing(&rule));
        path.on_sample(&rule, 7 * ONE + 2 * rule.trend + 1);
        assert!(path.is_growing(&rule));
    }
}
