//! `--pcap`: captures of frames in files for Wireshark.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use spray_capture::{CaptureStats, Observer};

use crate::failure::{Failure, Outcome};
use crate::{info, note};

const FILE: &str = "frames.pcapng";

/// A capture in progress.
pub struct Watching {
    file: PathBuf,
    /// Records the frames.
    pub watch: Observer,
}

/// The arguments for captures.
#[derive(Clone, Debug, Args)]
pub struct Captures {
    /// Capture all frames for Wireshark into this folder (see docs/captures.md)
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Limit of captured frames, of some 200 bytes each
    #[arg(long, value_name = "N", requires = "pcap", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub pcap_frames: u64,
}

impl Captures {
    /// Returns the file of a run with this folder; `None` without `--pcap`.
    pub fn file(&self, run: &str) -> Option<PathBuf> {
        self.pcap.as_ref().map(|folder| folder.join(run).join(FILE))
    }

    /// Creates the folder of a file.
    ///
    /// # Errors
    /// 2 if the file exists, or the folder cannot be created.
    pub fn prepare(file: &Path) -> Outcome {
        if file.exists() {
            let rule = "allowed: another folder with --pcap, or remove this file";
            return Err(Failure::refused(format!("{} is there already; {rule}", file.display())));
        }
        let Some(folder) = file.parent() else { return Ok(()) };
        fs::create_dir_all(folder)
            .map_err(|error| Failure::refused(format!("--pcap: cannot make the folder {}: {error}", folder.display())))
    }
}

impl Watching {
    /// Continues a capture that was begun elsewhere.
    pub fn new(file: PathBuf, watch: Observer) -> Self {
        Self { file, watch }
    }

    /// Ends the capture, and returns a line with the number of frames.
    ///
    /// # Errors
    /// 1 if it could not be written.
    pub fn end(self) -> Outcome<String> {
        let file = self.file.display();
        let (written, _) = self
            .watch
            .lock()
            .finish()
            .map_err(|error| Failure::failed(format!("the capture {file} is not whole: {error}")))?;
        let CaptureStats { frames, left_out } = written.unwrap_or_default();
        Ok(match left_out {
            0 => format!("{file}: {frames} frames"),
            _ => {
                format!("{file}: the first {frames} frames; {left_out} more did not fit, allow more with --pcap-frames")
            }
        })
    }

    /// Ends the capture, and prints the result or error.
    pub fn close(self) {
        match self.end() {
            Ok(line) => info!("spray: capture {line}"),
            Err(failure) => note!("spray: {failure}"),
        }
    }
}
