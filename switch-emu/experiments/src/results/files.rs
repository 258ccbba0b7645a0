//! The folder of a run and the overview over several.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{RunResult, csv};
use crate::report;

/// A result that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes `summary.json`, `flows.csv`, `ports.csv`, `events.csv` and `report.html` into `dir`, and makes it if needed.
///
/// # Errors
/// When the folder or one of the files cannot be written.
pub fn write_run(dir: &Path, run: &RunResult) -> Result<(), WriteError> {
    let summary = serde_json::to_string_pretty(&run.summary()).expect("plain numbers and strings always serialise");
    write(dir, "summary.json", &(summary + "\n"))?;
    write(dir, "flows.csv", &csv::flows(&run.flows))?;
    write(dir, "ports.csv", &csv::ports(&run.ports))?;
    write(dir, "events.csv", &csv::events(&run.events))?;
    write(dir, "report.html", &report::run_page(run))
}

/// Writes two files into `dir`, and makes it if needed: `report.html`, which compares `runs`, and `goodput.svg`, its plot of
/// goodput.
///
/// The report links each run's own as `NAME/report.html`, with [`RunResult::folder`] as the name.
///
/// # Errors
/// When the folder or one of the files cannot be written.
pub fn write_overview(dir: &Path, runs: &[RunResult]) -> Result<(), WriteError> {
    write(dir, "goodput.svg", &report::goodput_picture(runs))?;
    write(dir, "report.html", &report::overview_page(runs))
}

impl RunResult {
    /// A name for the run's folder: condition and balancer in lower-case letters, digits and dashes.
    #[must_use]
    pub fn folder(&self) -> String {
        let parts = [&self.condition, &self.balancer].map(|part| slug(part));
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

fn slug(text: &str) -> String {
    let plain = text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), " ");
    plain.split_whitespace().collect::<Vec<_>>().join("-")
}

pub(super) fn write(dir: &Path, name: &str, text: &str) -> Result<(), WriteError> {
    let path = dir.join(name);
    let done = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
    done.map_err(|source| WriteError { path, source })
}
