//! The simulator's results, bit by bit: every command of `tests/golden/flows.txt` must give the
//! recorded figures, and the same `flows.csv` up to the column `drained_us`.
//!
//! `UPDATE_GOLDEN=1 cargo test --profile quick -p spray --test golden` records them again. The
//! message of a commit that does so gives the reason.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use sha2::{Digest, Sha256};
use spray_test_support::{Folder, root};

/// The number of hexadecimal digits of a hash that are recorded.
const DIGITS: usize = 8;
/// The root seeds of each command's runs.
const SEEDS: [u64; 2] = [1, 2];
/// The figures of `summary.json`, and their columns in the record.
const COLUMNS: [(&str, &str); 16] = [
    ("seed", "seed"),
    ("flows_completed", "done"),
    ("fct_mean_us", "mean_us"),
    ("fct_p50_us", "p50_us"),
    ("fct_p99_us", "p99_us"),
    ("fct_max_us", "max_us"),
    ("packets_sent", "sent"),
    ("retransmits", "resent"),
    ("timeouts", "timeouts"),
    ("reordered_packets", "reordered"),
    ("drain_percent_of_fct", "drained_%"),
    ("ecn_marks", "marks"),
    ("trims", "trims"),
    ("drops_queue", "drop_queue"),
    ("drops_link", "drop_link"),
    ("drops_random", "drop_rand"),
];

#[test]
fn recorded_runs_give_byte_identical_flows() {
    let file = root().join("tests/golden/flows.txt");
    let recorded = std::fs::read_to_string(&file).unwrap();
    let commands: Vec<&str> = recorded.lines().filter_map(command_of).collect();
    assert!(commands.len() * SEEDS.len() >= 24, "only {} commands", commands.len());
    let tables = in_parallel(&commands);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(&file, with_tables(&recorded, &tables)).unwrap();
    }
    let found = commands.iter().zip(&tables);
    let changed: String = found.filter_map(|(command, table)| difference(&recorded, command, table)).collect();
    assert!(changed.is_empty(), "recorded (-) and found (+):\n{}\n{changed}", head());
}

/// Returns the arguments in a line `spray ARGUMENTS`.
fn command_of(line: &str) -> Option<&str> {
    line.strip_prefix("spray ")
}

/// Returns the recorded text with its tables and their header replaced.
fn with_tables(recorded: &str, tables: &[String]) -> String {
    let mut tables = tables.iter();
    let is_row = |line: &&str| line.starts_with(' ');
    recorded.lines().filter(|line| !is_row(line)).fold(String::new(), |text, line| match command_of(line) {
        Some(_) => text + line + "\n" + tables.next().unwrap(),
        None if line.starts_with("#  ") => text + &head() + "\n",
        None => text + line + "\n",
    })
}

/// Returns the rows of a command that differ from the record, beside the recorded ones.
fn difference(recorded: &str, command: &str, table: &str) -> Option<String> {
    let rows = recorded.lines().skip_while(|line| command_of(line) != Some(command)).skip(1);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with(' ')).collect();
    let found: Vec<&str> = table.lines().collect();
    let signed = |sign: char, rows: &[&str]| rows.iter().map(|row| format!("{sign}{row}\n")).collect::<String>();
    (rows != found).then(|| format!("spray {command}\n{}{}", signed('-', &rows), signed('+', &found)))
}

/// Returns the tables of all commands, run two at a time.
fn in_parallel(commands: &[&str]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(command) = commands.get(index) else { return done };
            done.push((index, table(command)));
        }
    };
    let mut all: Vec<(usize, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort();
    all.into_iter().map(|(_, table)| table).collect()
}

/// Runs a command with each seed; returns a line for each.
fn table(command: &str) -> String {
    let out = Folder::new();
    let [first, last] = SEEDS;
    let mut spray = Command::new(spray_test_support::program("spray"));
    spray.current_dir(root()).args(command.split_whitespace()).arg("--seeds").arg(format!("{first}..{last}"));
    let output = spray.arg("--out").arg(out.path()).output().unwrap();
    // Exit code 1 means that a flow did not complete, which is a valid result.
    let ran = matches!(output.status.code(), Some(0 | 1));
    assert!(ran, "spray {command}: {}", String::from_utf8_lossy(&output.stderr));
    SEEDS.map(|seed| row(&run_of(out.path(), seed))).concat()
}

/// Returns the names of the columns.
fn head() -> String {
    let names: String = COLUMNS.iter().map(|(_, name)| format!(" {name:>10}")).collect();
    format!("#{}  flows.csv", &names[1..])
}

/// Returns the figures of the run in `folder`, and the hash of its flows.
fn row(folder: &Path) -> String {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    let figure = |text: String, (name, _): &(&str, &str)| text + &format!(" {:>10}", summary[*name].to_string());
    let flows = read("flows.csv");
    assert!(flows.lines().count() > 1, "{}: no flows", folder.display());
    let recorded: String = flows.lines().map(|line| recorded_part(line) + "\n").collect();
    format!("{}  {}\n", COLUMNS.iter().fold(String::new(), figure), hex(&Sha256::digest(recorded.as_bytes())))
}

/// Returns a line of `flows.csv` without the first seven columns, which identify the run, and those
/// after `drained_us`. No scenario name or condition of the commands contains a comma.
fn recorded_part(line: &str) -> String {
    line.split(',').skip(7).take(10).collect::<Vec<_>>().join(",")
}

/// Returns the folder of the only run with this seed.
fn run_of(out: &Path, seed: u64) -> PathBuf {
    let suffix = format!("-seed{seed}");
    let mut runs = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.find(|path| path.to_string_lossy().ends_with(&suffix));
    run.unwrap_or_else(|| panic!("no run{suffix} in {}", out.display()))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    digits[..DIGITS].into()
}
