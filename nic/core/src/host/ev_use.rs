//! Which entropy values some connections use, and how they were chosen, in bins of time.

use alloc::vec;
use alloc::vec::Vec;

use crate::Time;
use crate::event::Choice;
use crate::feedback::Ev;

/// Bins of time. Each is as long as all of them take that have passed: when the last is full, two become one.
pub const BINS: usize = 96;
/// Bands of equal width into which the range of entropy values is cut.
pub const BANDS: usize = 64;
/// How many connections an engine watches where a run is sampled.
pub const WATCHED: usize = 8;
/// How long bins are at first: short against any run.
const FIRST_BIN_PS: u64 = 1_000_000;

/// The entropy values of one connection: data packets by bin of time, band and [`Choice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvLife {
    /// The connection's number.
    pub connection: u32,
    /// When its first bin begins.
    pub begin: Time,
    /// How long each bin is.
    pub bin_ps: u64,
    counts: Vec<Counts>,
}

/// Packets of a band in a bin, by [`Choice`].
type Counts = [u32; Choice::ALL.len()];

impl EvLife {
    /// Watches the connection `number` from `begin` on; what it sends before counts as sent then. Allocates all that it ever needs.
    fn new(number: u32, begin: Time) -> Self {
        Self { connection: number, begin, bin_ps: FIRST_BIN_PS, counts: vec![Counts::default(); BINS * BANDS] }
    }

    /// Packets of a bin, by band.
    ///
    /// # Panics
    /// When there is no such bin.
    #[must_use]
    pub fn bin(&self, bin: usize) -> &[Counts] {
        &self.counts[bin * BANDS..(bin + 1) * BANDS]
    }

    fn count(&mut self, now: Time, ev: Ev, evs: u32, choice: Choice) {
        let since_ps = now.since(self.begin);
        while since_ps / self.bin_ps >= BINS as u64 {
            self.halve();
        }
        let bin = (since_ps / self.bin_ps) as usize;
        let band = (u64::from(ev.index()) * BANDS as u64 / u64::from(evs.max(1))) as usize;
        let count = &mut self.counts[bin * BANDS + band.min(BANDS - 1)][choice as usize];
        *count = count.saturating_add(1);
    }

    /// Makes one bin of every two.
    #[cold]
    fn halve(&mut self) {
        for place in 0..self.counts.len() {
            let (bin, band) = (place / BANDS, place % BANDS);
            let of = |bin: usize| self.counts.get(bin * BANDS + band).copied().unwrap_or_default();
            let (a, b) = (of(2 * bin), of(2 * bin + 1));
            self.counts[place] = core::array::from_fn(|choice| a[choice].saturating_add(b[choice]));
        }
        self.bin_ps *= 2;
    }
}

/// The connections that are watched.
#[derive(Debug)]
pub(super) struct EvUse(Vec<EvLife>);

impl EvUse {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn watch(&mut self, number: u32, begin: Time) {
        self.0.push(EvLife::new(number, begin));
    }

    #[inline]
    pub(super) fn watches(&self, number: u32) -> bool {
        self.0.iter().any(|life| life.connection == number)
    }

    pub(super) fn count(&mut self, number: u32, now: Time, ev: Ev, evs: u32, choice: Choice) {
        if let Some(life) = self.0.iter_mut().find(|life| life.connection == number) {
            life.count(now, ev, evs, choice);
        }
    }

    pub(super) fn lives(&self) -> &[EvLife] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    /// Against a list of all packets.
    #[test]
    fn bins_hold_every_packet_once_whatever_their_length() {
        let (mut life, mut all) = (EvLife::new(3, at(5_000_000)), Vec::new());
        for i in 0..5_000_u64 {
            let (now, ev) = (at(i * i * 125), (i * 7919 % 1000) as u16);
            let choice = Choice::ALL[(i % 4) as usize];
            life.count(now, Ev::new(ev), 1000, choice);
            all.push((now, usize::from(ev) * BANDS / 1000, choice));
        }
        assert!(life.bin_ps > FIRST_BIN_PS && life.bin_ps.is_multiple_of(FIRST_BIN_PS));
        for bin in 0..BINS {
            for band in 0..BANDS {
                let mut expected = Counts::default();
                let is_here = |(now, of, _): &&(Time, usize, Choice)| {
                    now.since(at(5_000_000)) / life.bin_ps == bin as u64 && *of == band
                };
                all.iter().filter(is_here).for_each(|(.., choice)| expected[*choice as usize] += 1);
                assert_eq!(life.bin(bin)[band], expected, "bin {bin}, band {band}");
            }
        }
    }
}
