//! Congestion of a path by its round-trip times: the switches' rule or the artifact's.

use spray_wire::flowcut::{Congestion, HOPS, Sample, average, ticks};

use super::config::Settings;
use crate::now::Path;
use crate::path::AckInfo;

#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// Least round-trip time without serialisation, by number of switches; `simple` uses the first.
    least: [u32; HOPS],
    /// Under `simple` its average is of round-trip times in ticks.
    path: Congestion,
}

impl Delay {
    pub(super) fn new(settings: &Settings, path: &Path) -> Self {
        let mut delay = Self { least: [0; HOPS], path: Congestion::NONE };
        delay.reset(settings, path);
        delay
    }

    pub(super) fn reset(&mut self, settings: &Settings, path: &Path) {
        //= docs/specs/flowcut.md#FLC-50 the published artifact's rule
        self.path = Congestion::NONE;
        if settings.simple {
            self.path.average = self.simple_base(path);
        }
    }

    pub(super) fn on_ack(&mut self, settings: &Settings, path: &Path, ack: &AckInfo) {
        if settings.simple {
            self.on_simple(settings, path, ticks(ack.rtt_ps).max(1));
        } else {
            let normalised = self.normalise(settings, path, ack);
            self.path.on_sample(&settings.rule, normalised);
        }
    }

    pub(super) fn is_congested(&self, settings: &Settings, path: &Path) -> bool {
        if settings.simple {
            //= docs/specs/flowcut.md#FLC-50 the published artifact's rule
            let limit = u64::from(settings.rule.ratio) * u64::from(self.simple_base(path));
            return u64::from(self.path.average) << 16 > limit;
        }
        //= docs/specs/flowcut.md#FLC-16 unknown base RTT
        self.path.is_slow(&settings.rule) || (!path.learned && self.path.is_growing(&settings.rule))
    }

    //= docs/specs/flowcut.md#FLC-50 the published artifact's rule
    fn on_simple(&mut self, settings: &Settings, path: &Path, rtt: u32) {
        let least = self.simple_base(path);
        self.least[0] = if least == 0 { rtt } else { least.min(rtt) };
        let before = if self.path.average == 0 { rtt } else { self.path.average };
        self.path.average = average(settings.rule.weight, i64::from(rtt), i64::from(before)) as u32;
    }

    /// The least round-trip time; before any, that of the empty network.
    fn simple_base(&self, path: &Path) -> u32 {
        if self.least[0] == 0 { ticks(path.base_rtt_ps) } else { self.least[0] }
    }

    /// Updates the least time for this hop count. Returns the sample over the least possible.
    fn normalise(&mut self, settings: &Settings, path: &Path, ack: &AckInfo) -> u32 {
        let sample = Sample::new(ack.rtt_ps, ack.packet_bytes, settings.kib_ps, ack.hops);
        let (hops, queueless) = (sample.hops(), sample.queueless());
        //= docs/specs/flowcut.md#FLC-10 least round-trip time
        let least = &mut self.least[hops];
        *least = if *least == 0 { queueless } else { (*least).min(queueless) };
        let seen = sample.reference(*least);
        //= docs/specs/flowcut.md#FLC-16 unknown base RTT
        sample.over(if path.learned { seen } else { seen.min(self.expected(path, hops)) })
    }

    /// The empty network's RTT of a full packet, by hops in proportion to the shortest path.
    //= docs/specs/flowcut.md#FLC-15 A table for each connection
    fn expected(&self, path: &Path, hops: usize) -> u64 {
        let fewest = self.least.iter().position(|least| *least != 0).unwrap_or(hops);
        let base = u64::from(ticks(path.base_rtt_ps));
        if fewest == hops { base } else { base * (hops as u64 + 1) / (fewest as u64 + 1) }
    }
}
