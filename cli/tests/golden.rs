//! The simulator's results, to the byte: every run of `tests/golden/flows.txt` must give the `flows.csv` that is recorded there, up to
//! the column `drained_us`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p spray --test golden` records anew. A commit that does so says why, in its message and in the file.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use spray_test_support::{Folder, root};

/// Hexadecimal digits of a hash that are recorded: 64 bits.
const DIGITS: usize = 16;
/// Root seeds of each command's runs.
const SEEDS: [u64; 2] = [1, 2];

#[test]
fn recorded_runs_give_the_same_flows_to_the_byte() {
    let file = root().join("tests/golden/flows.txt");
    let recorded = std::fs::read_to_string(&file).unwrap();
    let commands: Vec<&str> = recorded.lines().filter_map(command_of).collect();
    assert!(commands.len() * SEEDS.len() >= 24, "only {} commands", commands.len());
    let found = in_parallel(&commands);
    let mut found = found.iter();
    let fresh: String = recorded.lines().fold(String::new(), |mut text, line| {
        let _ = match command_of(line) {
            Some(command) => writeln!(text, "{} spray {command}", found.next().unwrap()),
            None => writeln!(text, "{line}"),
        };
        text
    });
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, fresh).unwrap();
        return;
    }
    let changed: Vec<_> = recorded.lines().zip(fresh.lines()).filter(|(old, new)| old != new).collect();
    assert!(changed.is_empty(), "recorded and found: {changed:#?}");
}

/// The arguments of a line `HASH HASH spray ARGUMENTS`.
fn command_of(line: &str) -> Option<&str> {
    line.split_once("spray ").filter(|_| !line.starts_with('#')).map(|(_, arguments)| arguments)
}

/// The hashes of every command, two commands at a time.
fn in_parallel(commands: &[&str]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(command) = commands.get(index) else { return done };
            done.push((index, hashes(command)));
        }
    };
    let mut all: Vec<(usize, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort();
    all.into_iter().map(|(_, hashes)| hashes).collect()
}

/// Runs a command with each seed; returns the hashes of what the flows did.
fn hashes(command: &str) -> String {
    let out = Folder::new();
    let [first, last] = SEEDS;
    let mut spray = Command::new(spray_test_support::program("spray"));
    spray.current_dir(root()).args(command.split_whitespace()).arg("--seeds").arg(format!("{first}..{last}"));
    let output = spray.arg("--out").arg(out.path()).output().unwrap();
    // 1: some flow did not complete, which is a result like any other.
    let ran = matches!(output.status.code(), Some(0 | 1));
    assert!(ran, "spray {command}: {}", String::from_utf8_lossy(&output.stderr));
    let hash = |seed: u64| {
        let flows = flows_of(out.path(), seed);
        assert!(flows.lines().count() > 1, "spray {command}: no flows");
        let recorded: String = flows.lines().map(|line| recorded_part(line) + "\n").collect();
        hex(&Sha256::digest(recorded.as_bytes()))
    };
    SEEDS.map(hash).join(" ")
}

/// A line of `flows.csv` without the columns that the recorded ones did not have: the six that say which run it is, and those after
/// `drained_us`. None of the commands has a comma in the scenario's name or condition.
fn recorded_part(line: &str) -> String {
    line.split(',').skip(6).take(10).collect::<Vec<_>>().join(",")
}

/// The `flows.csv` of the one run with this seed.
fn flows_of(out: &Path, seed: u64) -> String {
    let suffix = format!("-seed{seed}");
    let mut runs = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.find(|path| path.to_string_lossy().ends_with(&suffix));
    std::fs::read_to_string(run.unwrap_or_else(|| panic!("no run{suffix} in {}", out.display())).join("flows.csv"))
        .unwrap()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    digits[..DIGITS].into()
}
