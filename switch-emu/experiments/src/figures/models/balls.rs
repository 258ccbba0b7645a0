//! Balls into bins: spraying as random throws, and REPS as throws that are repeated where they did well (REPS §5.1, appendices C and D.1).

use std::collections::VecDeque;

use spray_core::rng::{Rng, below, stream};

use super::Parameters;
use crate::figures::measures::Measures;

/// Throws `load` times `bins` balls a round for so many `rounds`; every bin that is not empty loses one.
///
/// With `threshold` above 0 balls have `colours_per_bin` times `bins` colours in turn, and a colour remembers the bin that its ball left with no
/// more than `threshold` balls, if it is one of `recycle_every` that tell. `most` is the fullest bin of the last round, `largest` that of any,
/// `settled` that of any in the last quarter.
pub(super) fn balls(parameters: &Parameters<'_>, seed: u64) -> Result<Measures, String> {
    let (bins, rounds, load) = (parameters.count("bins")?, parameters.count("rounds")?, parameters.number("load")?);
    let threshold = parameters.count("threshold")?;
    let colours = if threshold > 0 { bins * parameters.count("colours_per_bin")? } else { 1 };
    let every = if threshold > 0 { parameters.count("recycle_every")? } else { 1 };
    let mut model = Model::new([bins, colours, threshold, every], seed);
    let (mut largest, mut settled, mut due) = (0, 0, 0.0);
    for round in 0..rounds {
        due += load * bins as f64;
        model.remove();
        while due >= 1.0 {
            model.throw();
            due -= 1.0;
        }
        largest = largest.max(model.most());
        if 4 * round >= 3 * rounds {
            settled = settled.max(model.most());
        }
    }
    let named = [("most", model.most()), ("largest", largest), ("settled", settled)];
    Ok(named.into_iter().map(|(name, balls)| (name.to_string(), balls as f64)).collect())
}

struct Model {
    /// The colours of the balls in each bin, the first to leave first.
    bins: Vec<VecDeque<usize>>,
    /// The bin that each colour remembers.
    remembered: Vec<Option<usize>>,
    next_colour: usize,
    threshold: usize,
    /// One of so many balls that leave tells its colour how full the bin was.
    every: usize,
    left: usize,
    rng: Rng,
}

impl Model {
    fn new([bins, colours, threshold, every]: [usize; 4], seed: u64) -> Self {
        Self {
            bins: vec![VecDeque::new(); bins.max(1)],
            remembered: vec![None; colours.max(1)],
            next_colour: 0,
            threshold,
            every: every.max(1),
            left: 0,
            rng: stream(seed, STREAM),
        }
    }

    /// A ball leaves every bin that has one.
    fn remove(&mut self) {
        for bin in 0..self.bins.len() {
            let balls = self.bins[bin].len();
            let Some(colour) = self.bins[bin].pop_front() else { continue };
            self.left += 1;
            let tells = self.left.is_multiple_of(self.every);
            self.remembered[colour] = match self.remembered[colour] {
                _ if balls > self.threshold || !tells => None,
                None => Some(bin),
                kept => kept,
            };
        }
    }

    /// A ball of the next colour goes where that remembers, or anywhere.
    fn throw(&mut self) {
        let colour = self.next_colour;
        self.next_colour = (colour + 1) % self.remembered.len();
        let anywhere = below(self.bins.len(), &mut self.rng);
        let bin = self.remembered[colour].unwrap_or(anywhere);
        self.bins[bin].push_back(colour);
    }

    fn most(&self) -> usize {
        self.bins.iter().map(VecDeque::len).max().unwrap_or(0)
    }
}

const STREAM: u64 = 0x6261_6c6c_7300;

#[cfg(test)]
mod tests {
    use super::super::run;

    fn of(text: &str, key: &str, seed: u64) -> f64 {
        run("balls", &toml::from_str(text).unwrap(), seed).unwrap()[key]
    }

    #[test]
    fn recycled_queues_stay_near_the_threshold_and_random_ones_grow() {
        let common = "bins = 8\nrounds = 16000\nload = 1.0\ncolours_per_bin = 6\nrecycle_every = 1\n";
        for seed in 1..6 {
            let recycled = of(&format!("{common}threshold = 12"), "settled", seed);
            let random = of(&format!("{common}threshold = 0"), "settled", seed);
            assert!(recycled <= 24.0 && random > 48.0, "seed {seed}: {recycled}, {random}");
        }
    }

    #[test]
    fn below_full_load_random_throws_are_stable() {
        let at = |load: &str| of(&format!("bins = 8\nrounds = 4000\nload = {load}\nthreshold = 0"), "settled", 1);
        assert!(at("0.5") < 12.0 && at("0.5") < at("0.99"));
    }

    #[test]
    fn balls_are_kept_or_leave() {
        // One bin loses one ball a round: with two thrown in a round it has as many as rounds.
        assert_eq!(of("bins = 1\nrounds = 100\nload = 2.0\nthreshold = 0", "most", 1), 101.0);
        assert!(run("balls", &toml::Table::new(), 1).unwrap_err().contains("bins"));
    }
}
