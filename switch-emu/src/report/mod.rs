//! Self-contained HTML pages about runs.

use crate::results::RunResult;

/// The page about one run.
#[must_use]
pub fn run_page(run: &RunResult) -> String {
    format!("<!doctype html><title>{}</title>", run.balancer)
}

/// The page that compares runs.
#[must_use]
pub fn overview_page(runs: &[RunResult]) -> String {
    format!("<!doctype html><title>{} runs</title>", runs.len())
}
