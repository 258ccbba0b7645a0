//! `--pcap` of runs.

use spray_experiments::scenario::Scenario;
use spray_experiments::watch;
use spray_tools::captures::{Captures, Watching};
use spray_tools::failure::{Failure, Outcome};

/// Begins the capture of a run of `scenario`, if one was asked for.
pub fn begin(captures: &Captures, run: &str, scenario: &Scenario) -> Outcome<Option<Watching>> {
    let Some(file) = captures.file(run) else { return Ok(None) };
    let watch = watch::capture(&file, scenario, captures.pcap_frames)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    Ok(Some(Watching::new(file, watch)))
}
