//! The command line of the simulator.

use std::path::PathBuf;

use clap::Args;
use spray_experiments::results::Extras;
use spray_experiments::scenario;
use spray_tools::captures::Captures;
use spray_tools::metrics::Publish;

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
    pub publish: Publish,
    #[command(flatten)]
    pub captures: Captures,
}

/// What is written, and where.
#[derive(Debug, Args)]
pub struct Results {
    /// Folder for the results; by default in ./results/, named after the scenario and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the series over time (`goodput`, `queues`, `evs`) as CSV too, not as Parquet alone
    #[arg(long)]
    pub csv: bool,
    /// Write no report.html, neither for each run nor over all: for thousands of small runs
    #[arg(long)]
    pub no_report: bool,
}

impl Results {
    /// What is written of each run besides its figures and tables.
    pub fn extras(&self) -> Extras {
        Extras { csv: self.csv, report: !self.no_report }
    }
}

/// The seeds of the runs, and on how many threads.
#[derive(Debug, Args)]
pub struct Seeds {
    /// Random seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Makes a run for each of these seeds, in place of the scenario's: numbers, and ranges with both ends, as in 1..20,42
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_delimiter = ',', value_parser = seeds)]
    pub seeds: Vec<scenario::Seeds>,
    /// Number of threads, for runs at the same time and within a run; by default one per core. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
}

impl Seeds {
    /// The seeds that were asked for; none if the scenario's own seed is to be used.
    pub fn list(&self) -> Vec<u64> {
        scenario::Seeds::all(&self.seeds).into_iter().chain(self.seed).collect()
    }

    /// The seeds that were asked for; `own` if none were.
    pub fn list_or(&self, own: &[u64]) -> Vec<u64> {
        let list = self.list();
        if list.is_empty() { own.to_vec() } else { list }
    }

    /// Threads for all runs together.
    pub fn threads(&self) -> usize {
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}

/// The cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn seeds(text: &str) -> Result<scenario::Seeds, String> {
    let allowed =
        || format!("expected N or A..B with the smaller end first, as in 1..20, {} seeds at most", scenario::MAX_SEEDS);
    scenario::Seeds::parse(text).ok_or_else(allowed)
}
