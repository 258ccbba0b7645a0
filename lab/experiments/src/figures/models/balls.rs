//! Balls into bins: random throws, and REPS's repeated good ones (REPS §5.1, appendices C, D.1).

use std::collections::VecDeque;

use spray_core::rng::{Rng, below, stream};

use super::parameters::Parameters;
use crate::figures::measures::{Measures, named};

/// Throws `load` times `bins` balls in each of `rounds` rounds; each non-empty bin loses one.
///
/// With `threshold` above 0, balls take `colours_per_bin` times `bins` colours in turn. One of
/// `recycle_every` leaving balls lets its colour remember the bin, if that has at most `threshold`
/// balls. With `at_once`, as in REPS's artifact, there are no colours: each bin names the next
/// throw, itself if it is neither empty nor at `threshold`, else a random bin. In the first two
/// rounds, and in all but one of `recycle_every`, all are random.
///
/// Returns `most`, the fullest bin of the last round; `largest`, of any round; `settled`, of the
/// last quarter; `mean`, over all bins and rounds.
pub(super) fn balls(parameters: &Parameters<'_>, seed: u64) -> Result<Measures, String> {
    let (bins, rounds, load) = (parameters.count("bins")?, parameters.count("rounds")?, parameters.number("load")?);
    let threshold = parameters.count("threshold")?;
    let colours = if threshold > 0 { bins * parameters.count("colours_per_bin")? } else { 1 };
    let every = if threshold > 0 { parameters.count("recycle_every")? } else { 1 };
    let at_once = parameters.0.get("at_once").and_then(toml::Value::as_bool).unwrap_or(false);
    let mut model = Model::new([bins, colours, threshold, every], seed);
    let (mut largest, mut settled, mut sum, mut due) = (0, 0, 0, 0.0);
    for round in 0..rounds {
        if at_once {
            model.throw_at_once(round);
        } else {
            due += load * bins as f64;
            model.remove();
            while due >= 1.0 {
                model.throw();
                due -= 1.0;
            }
        }
        largest = largest.max(model.most());
        sum += model.bins.iter().map(VecDeque::len).sum::<usize>();
        if 4 * round >= 3 * rounds {
            settled = settled.max(model.most());
        }
    }
    let mean = sum as f64 / (rounds * bins).max(1) as f64;
    let (most, largest, settled) = (model.most() as f64, largest as f64, settled as f64);
    Ok(named([("most", most), ("largest", largest), ("settled", settled), ("mean", mean)]))
}

struct Model {
    /// Colours of the balls in each bin, first to leave first.
    bins: Vec<VecDeque<usize>>,
    remembered: Vec<Option<usize>>,
    next_colour: usize,
    threshold: usize,
    /// One of `every` leaving balls updates its colour's bin.
    every: usize,
    left: usize,
    /// Balls thrown in this round, by bin.
    thrown: Vec<usize>,
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
            thrown: vec![0; bins.max(1)],
            rng: stream(seed, STREAM),
        }
    }

    fn remove(&mut self) {
        for bin in 0..self.bins.len() {
            let balls = self.bins[bin].len();
            let Some(colour) = self.bins[bin].pop_front() else { continue };
            self.left += 1;
            let has_feedback = self.left.is_multiple_of(self.every);
            self.remembered[colour] = match self.remembered[colour] {
                _ if balls > self.threshold || !has_feedback => None,
                None => Some(bin),
                kept => kept,
            };
        }
    }

    /// Throws a ball of the next colour into its remembered bin, or a random one.
    fn throw(&mut self) {
        let colour = self.next_colour;
        self.next_colour = (colour + 1) % self.remembered.len();
        let anywhere = below(self.bins.len(), &mut self.rng);
        let bin = self.remembered[colour].unwrap_or(anywhere);
        self.bins[bin].push_back(colour);
    }

    /// Removes a ball from every bin, and lets each bin throw another.
    fn throw_at_once(&mut self, round: usize) {
        let has_feedback = round >= INITIAL_ROUNDS && round.is_multiple_of(self.every);
        for bin in 0..self.bins.len() {
            let is_kept = has_feedback && (1..self.threshold).contains(&self.bins[bin].len());
            let to = if is_kept { bin } else { below(self.bins.len(), &mut self.rng) };
            self.thrown[to] += 1;
        }
        for (bin, thrown) in self.bins.iter_mut().zip(&mut self.thrown) {
            bin.pop_front();
            bin.extend(std::iter::repeat_n(0, std::mem::take(thrown)));
        }
    }

    fn most(&self) -> usize {
        self.bins.iter().map(VecDeque::len).max().unwrap_or(0)
    }
}

/// Initial rounds without feedback.
const INITIAL_ROUNDS: usize = 2;
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
    fn balls_that_are_thrown_again_immediately_stay_below_the_threshold() {
        let of = |every, key| {
            let text = format!(
                "bins = 8\nrounds = 2000\nload = 1.0\nat_once = true\ncolours_per_bin = 1\nthreshold = 10\nrecycle_every = {every}"
            );
            of(&text, key, 1)
        };
        assert!(of(1, "settled") < 10.0 && of(4, "settled") > 10.0);
        assert!(of(1, "mean") < of(4, "mean") && of(4, "mean") < 13.0);
    }

    #[test]
    fn below_full_load_random_throws_are_stable() {
        let at = |load: &str| of(&format!("bins = 8\nrounds = 4000\nload = {load}\nthreshold = 0"), "settled", 1);
        assert!(at("0.5") < 12.0 && at("0.5") < at("0.99"));
    }

    #[test]
    fn balls_are_kept_or_leave() {
        // One bin loses one ball per round: with two balls added per round it holds as many as
        // there were rounds.
        assert_eq!(of("bins = 1\nrounds = 100\nload = 2.0\nthreshold = 0", "most", 1), 101.0);
        assert!(run("balls", &toml::Table::new(), 1).unwrap_err().contains("bins"));
    }
}
