//! Entropy values of connections and how they were chosen, over time.

use std::sync::{Arc, Mutex, PoisonError};

use spray_core::Time;
use spray_core::event::{Choice, ChoiceTap};
use spray_core::feedback::Ev;

/// Number of time bins. When the last one is full, pairs are merged and bins get twice as long.
pub const BINS: usize = 96;
/// Number of bands of equal width of the range of entropy values.
pub const BANDS: usize = 64;
/// Number of connections observed in a sampled run.
pub const WATCHED: usize = 8;
/// Initial length of a bin.
const FIRST_BIN_PS: u64 = 1_000_000;

/// The entropy values of one connection: data packets by bin of time, band and [`Choice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvLife {
    /// Start of the first bin.
    pub begin_ps: u64,
    /// Length of a bin.
    pub bin_ps: u64,
    counts: Vec<Counts>,
}

/// Packets of a band in a bin, by [`Choice`].
type Counts = [u32; Choice::ALL.len()];

impl EvLife {
    fn new(begin_ps: u64) -> Self {
        Self { begin_ps, bin_ps: FIRST_BIN_PS, counts: vec![Counts::default(); BINS * BANDS] }
    }

    /// Returns the packets of a bin by band.
    ///
    /// # Panics
    /// If there is no such bin.
    #[must_use]
    pub fn bin(&self, bin: usize) -> &[Counts] {
        &self.counts[bin * BANDS..(bin + 1) * BANDS]
    }

    fn count(&mut self, now_ps: u64, ev: Ev, evs: u32, choice: Choice) {
        let since_ps = now_ps.saturating_sub(self.begin_ps);
        while since_ps / self.bin_ps >= BINS as u64 {
            self.halve();
        }
        let bin = (since_ps / self.bin_ps) as usize;
        let band = (u64::from(ev.index()) * BANDS as u64 / u64::from(evs.max(1))) as usize;
        let count = &mut self.counts[bin * BANDS + band.min(BANDS - 1)][choice as usize];
        *count = count.saturating_add(1);
    }

    /// Merges pairs of bins.
    #[cold]
    fn halve(&mut self) {
        for place in 0..self.counts.len() {
            let (bin, band) = (place / BANDS, place % BANDS);
            let of = |bin: usize| self.counts.get(bin * BANDS + band).copied().unwrap_or_default();
            let (a, b) = (of(2 * bin), of(2 * bin + 1));
            self.counts[place] = std::array::from_fn(|choice| a[choice].saturating_add(b[choice]));
        }
        self.bin_ps *= 2;
    }
}

/// Counts the entropy values of a connection; clones share the counts.
#[derive(Clone, Debug)]
pub struct EvRecorder(Arc<Mutex<EvLife>>);

impl EvRecorder {
    /// Starts the first bin, which also counts earlier packets. Allocates all memory in advance.
    #[must_use]
    pub fn new(begin_ps: u64) -> Self {
        Self(Arc::new(Mutex::new(EvLife::new(begin_ps))))
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn life(&self) -> EvLife {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ChoiceTap for EvRecorder {
    fn on_choice(&mut self, now: Time, ev: Ev, evs: u32, choice: Choice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count(now.ps(), ev, evs, choice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a list of all packets.
    #[test]
    fn bins_hold_every_packet_once_whatever_their_length() {
        let (mut life, mut all) = (EvLife::new(5_000_000), Vec::new());
        for i in 0..5_000_u64 {
            let (now_ps, ev) = (i * i * 100, (i * 7919 % 1000) as u16);
            let choice = Choice::ALL[(i % 4) as usize];
            life.count(now_ps, Ev::new(ev), 1000, choice);
            all.push((now_ps, usize::from(ev) * BANDS / 1000, choice));
        }
        assert!(life.bin_ps > FIRST_BIN_PS && life.bin_ps.is_multiple_of(FIRST_BIN_PS));
        for bin in 0..BINS {
            for band in 0..BANDS {
                let mut expected = Counts::default();
                let is_here = |(now_ps, of, _): &&(u64, usize, Choice)| {
                    now_ps.saturating_sub(5_000_000) / life.bin_ps == bin as u64 && *of == band
                };
                all.iter().filter(is_here).for_each(|(.., choice)| expected[*choice as usize] += 1);
                assert_eq!(life.bin(bin)[band], expected, "bin {bin}, band {band}");
            }
        }
    }
}
