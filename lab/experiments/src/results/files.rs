//! Folders of runs, and the overview of several.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use spray_fabric::Switching;
use spray_settings::Axis;

use super::tables::{self, Table};
use super::{FinishedRun, Record, RunResult, columns};
use crate::report;

/// A file or folder that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// Its path.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

/// Optional output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// Time series as CSV in addition.
    pub csv: bool,
    /// `report.html`.
    pub report: bool,
}

impl Default for Extras {
    fn default() -> Self {
        Self { csv: false, report: true }
    }
}

/// Writes all files of a run into the new folder `dir`, with the text `scenario` as
/// `scenario.toml`. The folder is renamed from `.part` when it is complete.
///
/// # Errors
/// When the folder exists, or a file cannot be written.
pub fn write_run(
    dir: &Path,
    run: &RunResult,
    scenario: &str,
    record: &Record,
    extras: Extras,
) -> Result<(), WriteError> {
    let mut part = dir.as_os_str().to_owned();
    part.push(PART);
    let part = PathBuf::from(part);
    let failed = |source| WriteError { path: part.clone(), source };
    if part.exists() {
        fs::remove_dir_all(&part).map_err(failed)?;
    }
    let summary = run.summary();
    write(&part, "scenario.toml", scenario)?;
    write(&part, "summary.json", &json(&summary))?;
    for table in tables::of_run(run, &summary) {
        write_parquet(&part, &table)?;
        if extras.csv || !tables::SERIES.contains(&table.0) {
            write_csv(&part, &table)?;
        }
    }
    if extras.report {
        write(&part, "report.html", &report::run_page(run))?;
    }
    write(&part, "run.json", &json(record))?;
    fs::rename(&part, dir).map_err(|source| WriteError { path: dir.to_path_buf(), source })
}

/// Suffix of a folder while its run is being written.
pub const PART: &str = ".part";

pub(super) fn write_table(dir: &Path, table: &Table) -> Result<(), WriteError> {
    write_csv(dir, table)?;
    write_parquet(dir, table)
}

fn write_csv(dir: &Path, (name, columns): &Table) -> Result<(), WriteError> {
    write(dir, &format!("{name}.csv"), &columns::csv(columns))
}

fn write_parquet(dir: &Path, (name, columns): &Table) -> Result<(), WriteError> {
    let bytes = columns::parquet(columns)
        .map_err(|error| WriteError { path: dir.join(format!("{name}.parquet")), source: io::Error::other(error) })?;
    write(dir, &format!("{name}.parquet"), &bytes)
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain numbers and strings always serialise") + "\n"
}

/// Writes `report.html`, which compares `runs` and links to their own pages, into `dir`.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write_overview(dir: &Path, runs: &[FinishedRun]) -> Result<(), WriteError> {
    write(dir, "report.html", &report::overview_page(runs))
}

/// Returns the folder name of a run; it has the switch scheme if that is not the default.
pub fn folder_name(condition: &str, axes: &[Axis], switching: &Switching, balancer: &str, seed: u64) -> String {
    /// Maximum bytes of a part; file systems allow names of 255.
    const MOST: usize = 100;
    let axis = |Axis { path, value }: &Axis| {
        let value = value.to_string().replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "_");
        format!("{}={value}", path.rsplit('.').next().unwrap_or(path))
    };
    let name = switching.to_string();
    let is_shown =
        name != Switching::default().to_string() && !axes.iter().any(|axis| axis.path.starts_with("switch."));
    let switch = if is_shown { slug(&name) } else { String::new() };
    let axes: Vec<String> = axes.iter().map(axis).collect();
    let seed = format!("seed{seed}");
    let parts = [slug(condition), axes.join("-"), switch, slug(balancer), seed];
    let parts =
        parts.into_iter().filter(|part| !part.is_empty()).map(|part| part.chars().take(MOST).collect::<String>());
    parts.collect::<Vec<_>>().join("-")
}

fn slug(text: &str) -> String {
    let plain = text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), " ");
    plain.split_whitespace().collect::<Vec<_>>().join("-")
}

pub(super) fn write(dir: &Path, name: &str, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), WriteError> {
    let path = dir.join(name);
    let done = fs::create_dir_all(dir).and_then(|()| fs::write(&path, content));
    done.map_err(|source| WriteError { path, source })
}
