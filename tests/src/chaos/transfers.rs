//! The transferred files and folders, the processes that send them, and checks of their arrival.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rand_core::RngCore;
use spray_core::rng::{self, Rng};

use crate::running::{Running, content, wait_until};
use crate::spray;

/// A file or a folder to send.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub source: PathBuf,
    pub name: String,
    /// The options for its rate or balancer.
    rate: &'static [&'static str],
}

impl Transfer {
    /// Creates it in a folder: a file of up to 20 MiB, or a folder of up to 250 small files.
    pub fn new(folder: &Path, name: String, rng: &mut Rng) -> Self {
        let source = folder.join(&name);
        if rng.next_u32().is_multiple_of(3) {
            make_tree(&source, rng);
        } else {
            fs::write(&source, content(rng.next_u64(), 1 + rng::below(20 << 20, rng))).unwrap();
        }
        let rates: [&[&str]; 4] = [
            &[],
            &["--balancer", "ops"],
            &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.05"],
            &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.1"],
        ];
        Self { source, name, rate: rates[rng::below(rates.len(), rng)] }
    }

    /// Returns the command `spray send` without interface and destination.
    pub fn command(&self) -> Command {
        let mut command = spray();
        command.arg("send").arg(&self.source).args(self.rate);
        command
    }

    /// Returns whether it is complete and unchanged in a folder, under its name.
    pub fn is_in(&self, folder: &Path) -> bool {
        missing(&self.source, &folder.join(&self.name)) == Ok(0)
    }

    /// Checks that files with their final names in a folder are unchanged; some may be missing.
    pub fn assert_nothing_partial_in(&self, folder: &Path) {
        missing(&self.source, &folder.join(&self.name)).unwrap_or_else(|path| panic!("{path} is not what was sent"));
    }

    pub fn remove(&self, arrived: &Path) {
        remove(&self.source);
        remove(&arrived.join(&self.name));
    }

    /// Removes its received files, because a receiver does not overwrite files.
    pub fn remove_arrived(&self, arrived: &Path) {
        let path = arrived.join(&self.name);
        if path.exists() {
            remove(&path);
        }
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn make_tree(folder: &Path, rng: &mut Rng) {
    fs::create_dir_all(folder.join("deep/empty")).unwrap();
    for number in 0..50 + rng::below(200, rng) {
        let place = if number % 2 == 0 { "deep" } else { "" };
        fs::write(folder.join(place).join(format!("{number}")), content(rng.next_u64(), rng::below(20_000, rng)))
            .unwrap();
    }
}

/// Returns the number of files and folders of `sent` that are missing at `there`, or the name of
/// one that differs or was not sent.
fn missing(sent: &Path, there: &Path) -> Result<usize, String> {
    if !there.exists() {
        return Ok(1);
    }
    let differs = || Err(there.display().to_string());
    if sent.is_dir() != there.is_dir() {
        return differs();
    }
    if sent.is_file() {
        return if fs::read(sent).unwrap() == fs::read(there).unwrap() { Ok(0) } else { differs() };
    }
    let names = names(sent);
    if !self::names(there).is_subset(&names) {
        return differs();
    }
    names.iter().map(|name| missing(&sent.join(name), &there.join(name))).sum()
}

/// Returns the names in a folder.
pub fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// A process with a file as standard error, so that its output need not be read concurrently.
pub struct Logged {
    pub process: Running,
    log: PathBuf,
}

impl Logged {
    pub fn start(command: &mut Command, log: PathBuf, spawn: impl FnOnce(&mut Command) -> Running) -> Self {
        let file = fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        Self { process: spawn(command), log }
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits until the output contains `words`, or the process has ended.
    pub fn until(&mut self, words: &str) {
        wait_until(words, || self.stderr().contains(words) || !self.process.is_running());
    }

    /// Returns the number of its descriptors or threads.
    pub fn count(&self, of: &str) -> usize {
        fs::read_dir(format!("/proc/{}/{of}", self.pid())).map_or(0, Iterator::count)
    }
}
