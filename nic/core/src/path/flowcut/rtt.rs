//! How congested a path is: the average of its round-trip times against the least one, and their trend.
//!
//! Times are ticks of 1,024 ps in 32 bits, so up to 4.4 s; ratios are 16.16 fixed point.

use super::config::Settings;
use crate::path::AckInfo;
use crate::units::Ratio;

/// 1 as a ratio.
pub(super) const ONE: u32 = 1 << 16;

/// How many hop counts are told apart. Networks' diameters are below ten (Flowcut §II-B); more hops count as nine.
const HOPS: usize = 10;

/// What a connection knows of its delays.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// By the number of switches: the least round-trip time seen, without serialisation; 0 before any. `simple` keeps
    /// its one value in the first.
    least: [u32; HOPS],
    /// Under `paper` the average of normalised round-trip times, under `simple` the average of round-trip times in
    /// ticks.
    average: u32,
    /// The last normalised round-trip time; 0 before the first of a flowcut.
    previous: u32,
    /// The average of the differences between successive ones.
    trend: i32,
}

impl Delay {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut delay = Self { least: [0; HOPS], average: 0, previous: 0, trend: 0 };
        delay.reset(settings);
        delay
    }

    /// Forgets everything but the least round-trip times.
    pub(super) fn reset(&mut self, settings: &Settings) {
        //= docs/specs/flowcut.md#FLC-50 the published simulator's rule
        self.average = if settings.simple { self.simple_base(settings) } else { ONE };
        (self.previous, self.trend) = (0, 0);
    }

    #[inline]
    pub(super) fn on_ack(&mut self, settings: &Settings, ack: &AckInfo) {
        let rtt = ticks(ack.rtt_ps).max(1);
        if settings.simple {
            self.on_simple(settings, rtt);
        } else {
            let normalised = self.normalise(settings, rtt, ack);
            self.on_normalised(settings, normalised);
        }
    }

    #[inline]
    pub(super) fn is_congested(&self, settings: &Settings) -> bool {
        if settings.simple {
            //= docs/specs/flowcut.md#FLC-50 the published simulator's rule
            let limit = u64::from(settings.ratio) * u64::from(self.simple_base(settings));
            return u64::from(self.average) << 16 > limit;
        }
        //= docs/specs/flowcut.md#FLC-12 average against threshold
        //= docs/specs/flowcut.md#FLC-13 trend against threshold
        //= docs/specs/flowcut.md#FLC-16 A base that nobody told
        self.average > settings.ratio || (!settings.learned && i64::from(self.trend) > i64::from(settings.trend))
    }

    //= docs/specs/flowcut.md#FLC-50 the published simulator's rule
    #[inline]
    fn on_simple(&mut self, settings: &Settings, rtt: u32) {
        let least = self.simple_base(settings);
        self.least[0] = if least == 0 { rtt } else { least.min(rtt) };
        let before = if self.average == 0 { rtt } else { self.average };
        self.average = average(settings.weight, i64::from(rtt), i64::from(before)) as u32;
    }

    /// The least round-trip time seen; before any, that of the empty network.
    #[inline]
    fn simple_base(&self, settings: &Settings) -> u32 {
        if self.least[0] == 0 { settings.base } else { self.least[0] }
    }

    /// Keeps the least time for this hop count. Returns the normalised round-trip time: the sample over the least
    /// possible.
    #[inline]
    fn normalise(&mut self, settings: &Settings, rtt: u32, ack: &AckInfo) -> u32 {
        let hops = usize::from(ack.hops).min(HOPS - 1);
        //= docs/specs/flowcut.md#FLC-10 least round-trip time
        let serial_ps = u64::from(settings.kib_ps) * u64::from(ack.packet_bytes) / 1024 * hops as u64;
        let serial = ticks(serial_ps).min(rtt - 1);
        let queueless = rtt - serial;
        let least = &mut self.least[hops];
        *least = if *least == 0 { queueless } else { (*least).min(queueless) };
        //= docs/specs/flowcut.md#FLC-11 normalised RTT
        let seen = u64::from(*least) + u64::from(serial);
        //= docs/specs/flowcut.md#FLC-16 A base that nobody told
        let reference = if settings.learned { seen } else { seen.min(self.expected(settings, hops)) }.max(1);
        ((u64::from(rtt) << 16) / reference).min(u64::from(u32::MAX)) as u32
    }

    /// The round-trip time of a full packet over so many switches in the empty network. It is that of the shortest
    /// path seen, in proportion to the links.
    //= docs/specs/flowcut.md#FLC-15 A table for each connection
    #[inline]
    fn expected(&self, settings: &Settings, hops: usize) -> u64 {
        let fewest = self.least.iter().position(|least| *least != 0).unwrap_or(hops);
        match settings.base {
            0 => u64::MAX,
            base if fewest == hops => u64::from(base),
            base => u64::from(base) * (hops as u64 + 1) / (fewest as u64 + 1),
        }
    }

    #[inline]
    fn on_normalised(&mut self, settings: &Settings, rtt: u32) {
        //= docs/specs/flowcut.md#FLC-12 average against threshold
        self.average = average(settings.weight, i64::from(rtt), i64::from(self.average)) as u32;
        //= docs/specs/flowcut.md#FLC-13 trend against threshold
        if self.previous != 0 {
            let difference = i64::from(rtt) - i64::from(self.previous);
            let trend = average(settings.trend_weight, difference, i64::from(self.trend));
            self.trend = trend.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        }
        self.previous = rtt;
    }
}

/// `weight * sample + (1 - weight) * before`, rounded.
#[inline]
fn average(weight: u32, sample: i64, before: i64) -> i64 {
    let weight = i64::from(weight);
    (weight * sample + (i64::from(ONE) - weight) * before + i64::from(ONE / 2)) >> 16
}

/// Picoseconds in ticks, at least 1 unless 0.
#[inline]
pub(super) fn ticks(ps: u64) -> u32 {
    (ps >> 10).clamp(u64::from(ps > 0), u64::from(u32::MAX)) as u32
}

/// A ratio in units of [`ONE`], at most 65,535.
pub(super) fn fixed(ratio: Ratio) -> u32 {
    u32::try_from(ratio.of(ONE.into())).unwrap_or(u32::MAX)
}
