//! `--pcap`: what commands see of frames, in files for Wireshark.

use std::fs;
use std::path::{Path, PathBuf};

use spray_experiments::scenario::Scenario;
use spray_experiments::watch::{self, Shared, Written};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::say::{info, note};

/// The name of a capture.
pub const FILE: &str = "frames.pcapng";

/// A capture that is being written.
pub struct Watching {
    file: PathBuf,
    pub watch: Shared,
}

impl args::Captures {
    /// The file of a run with this folder; `None` where nobody asked for one.
    pub fn file(&self, run: &str) -> Option<PathBuf> {
        self.pcap.as_ref().map(|folder| folder.join(run).join(FILE))
    }

    /// Makes the folder for a file, which must not be there yet.
    ///
    /// # Errors
    /// 2 when it is, or its folder cannot be made.
    pub fn prepare(file: &Path) -> Outcome {
        if file.exists() {
            let rule = "allowed: another folder with --pcap, or remove this file";
            return Err(Failure::refused(format!("{} is there already; {rule}", file.display())));
        }
        let Some(folder) = file.parent() else { return Ok(()) };
        fs::create_dir_all(folder)
            .map_err(|error| Failure::refused(format!("--pcap: cannot make the folder {}: {error}", folder.display())))
    }

    /// Begins the capture of a run of `scenario`, if one was asked for.
    ///
    /// # Errors
    /// 1 when the file cannot be made.
    pub fn begin(&self, run: &str, scenario: &Scenario) -> Outcome<Option<Watching>> {
        let Some(file) = self.file(run) else { return Ok(None) };
        let watch = watch::capture(&file, scenario, self.pcap_frames)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
        Ok(Some(Watching { file, watch }))
    }
}

impl Watching {
    /// Watches for a file that others have begun.
    #[cfg(feature = "xdp")]
    pub fn new(file: PathBuf, watch: Shared) -> Self {
        Self { file, watch }
    }

    /// Ends the capture. Returns a line about it: how many frames it has, and whether there were more.
    ///
    /// # Errors
    /// 1 when it could not be written.
    pub fn end(self) -> Outcome<String> {
        let file = self.file.display();
        let (written, _) = self
            .watch
            .lock()
            .finish()
            .map_err(|error| Failure::failed(format!("the capture {file} is not whole: {error}")))?;
        let Written { frames, left_out } = written.unwrap_or_default();
        Ok(match left_out {
            0 => format!("{file}: {frames} frames"),
            _ => {
                format!("{file}: the first {frames} frames; {left_out} more did not fit, allow more with --pcap-frames")
            }
        })
    }

    /// Ends the capture of something that goes on or has failed, and tells of it.
    pub fn close(self) {
        match self.end() {
            Ok(line) => info!("spray: capture {line}"),
            Err(failure) => note!("spray: {failure}"),
        }
    }
}
