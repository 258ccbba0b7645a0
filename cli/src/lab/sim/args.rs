//! The command line of `spray sim`, and arguments shared with other commands.

use std::path::PathBuf;

use clap::Args;
use spray_experiments::results::Extras;
use spray_experiments::scenario;
use spray_tools::captures::Captures;

use crate::lab::settings::Overrides;

#[derive(Debug, Args)]
pub struct Sim {
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub results: Results,
    #[command(flatten)]
    pub captures: Captures,
}

#[derive(Debug, Args)]
pub struct Results {
    /// Folder for the results; by default in ./results/, named after the scenario and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the time series (`goodput`, `queues`, `evs`) as CSV; by default only as Parquet
    #[arg(long)]
    pub csv: bool,
    /// Do not write report.html, for each run and over all: for thousands of small runs
    #[arg(long)]
    pub no_report: bool,
}

impl Results {
    pub fn extras(&self) -> Extras {
        Extras { csv: self.csv, report: !self.no_report }
    }
}

#[derive(Debug, Args)]
pub struct Seeds {
    /// Random seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Seeds, with one run each, instead of those of the scenario: numbers and inclusive ranges, as
    /// in 1..20,42
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_delimiter = ',', value_parser = seeds)]
    pub seeds: Vec<scenario::Seeds>,
    /// Number of threads, for concurrent runs and within a run; by default one per core. Does not
    /// affect results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
}

impl Seeds {
    /// Returns the seeds on the command line; empty if the scenario's are to be used.
    pub fn list(&self) -> Vec<u64> {
        scenario::Seeds::all(&self.seeds).into_iter().chain(self.seed).collect()
    }

    pub fn threads(&self) -> usize {
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn seeds(text: &str) -> Result<scenario::Seeds, String> {
    let allowed =
        || format!("expected N or A..B with the smaller end first, as in 1..20, at most {} seeds", scenario::MAX_SEEDS);
    scenario::Seeds::parse(text).ok_or_else(allowed)
}
