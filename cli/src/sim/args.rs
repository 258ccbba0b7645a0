//! The command line of the simulator.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;

use crate::settings::Overrides;

#[derive(Debug, Args)]
pub struct Sim {
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    /// Folder for the results; by default in ./results/, named after the matrix and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The seeds of the runs, and on how many threads.
#[derive(Debug, Args)]
pub struct Seeds {
    /// Root of all random choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Makes a run for each seed from A to B, B included
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_parser = seeds)]
    pub seeds: Option<SeedRange>,
    /// Number of threads, for runs at the same time and within a run; by default one per core. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
}

impl Seeds {
    /// The seeds that were asked for; none if the scenario's own seed is to be used.
    pub fn list(&self) -> Vec<u64> {
        match (&self.seeds, self.seed) {
            (Some(range), _) => range.0.clone().collect(),
            (None, seed) => seed.into_iter().collect(),
        }
    }

    /// The seeds that were asked for; only `own` if none were.
    pub fn list_or(&self, own: u64) -> Vec<u64> {
        let list = self.list();
        if list.is_empty() { vec![own] } else { list }
    }

    /// Threads for all runs together.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}

/// Seeds from one to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedRange(pub RangeInclusive<u64>);

/// Most seeds of one sweep.
const MAX_SEEDS: u64 = 10_000;

fn seeds(text: &str) -> Result<SeedRange, String> {
    let range = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let fits = |(a, b): &(u64, u64)| a <= b && b - a < MAX_SEEDS;
    let (a, b) = range.filter(fits).ok_or(format!("expected A..B with A at most B, {MAX_SEEDS} seeds at most"))?;
    Ok(SeedRange(a..=b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_refused() {
        assert_eq!(seeds("3..5").unwrap().0.collect::<Vec<_>>(), [3, 4, 5]);
        assert!(["5..3", "1...", "1", "a..b", "0..10000", "-1..2"].iter().all(|text| seeds(text).is_err()));
    }
}
