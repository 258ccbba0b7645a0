//! Runs every row of the references and writes the comparison: `cargo xtask fidelity`.

use std::process::ExitCode;

use spray_experiments::fidelity::{Comparison, REFERENCES, flowcut, markdown};

/// Seeds of each of Flowcut's rows.
const FLOWCUT_SEEDS: u64 = 10;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: fidelity FILE.md");
        return ExitCode::from(2);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut comparisons = Vec::new();
    for comparison in REFERENCES.iter().flat_map(|reference| Comparison::all(reference, |_| true, threads)) {
        let Comparison { row, chooser, .. } = &comparison;
        for difference in comparison.differences() {
            let (relative, figure) = (100.0 * difference.relative(), difference.figure);
            eprintln!("{:24} {chooser:13} {figure:8} {relative:+6.1} %", row.scenario);
        }
        comparisons.push(comparison);
    }
    let text = markdown(&comparisons) + &flowcut::section(FLOWCUT_SEEDS, threads);
    if let Err(error) = std::fs::write(&file, text) {
        eprintln!("{file}: {error}");
        return ExitCode::from(2);
    }
    let ok = comparisons.iter().all(Comparison::holds);
    if ok { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
