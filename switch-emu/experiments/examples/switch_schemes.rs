//! Runs all schemes of switches, alone and under balancers, and writes the comparison: `cargo xtask results`. With `adaptive-roce` behind the file's
//! name only that section.

use std::process::ExitCode;

use spray_experiments::switch_comparison::adaptive_roce::adaptive_roce;
use spray_experiments::switch_comparison::{
    Condition, FAILING, HEALTHY, PAIRINGS, Pairing, Run, UNDER_FAILURES, dragonfly, markdown, over_every_scheme,
};

/// Of the matrix of hosts and switches.
const MATRIX_SEEDS: u64 = 3;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: switch_schemes FILE.md");
        return ExitCode::from(2);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let text = match std::env::args().nth(2).as_deref() {
        Some("adaptive-roce") => adaptive_roce(MATRIX_SEEDS, threads),
        _ => document(threads),
    };
    match text {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
        Ok(text) => match std::fs::write(&file, text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{file}: {error}");
                ExitCode::from(2)
            }
        },
    }
}

fn document(threads: usize) -> Result<String, String> {
    let all = |conditions: &[Condition], pairings: &[Pairing]| {
        conditions.iter().map(|condition| run(condition, pairings, threads)).collect::<Result<Vec<_>, _>>()
    };
    let healthy = all(&HEALTHY, &PAIRINGS)?;
    let failing = all(&FAILING, &UNDER_FAILURES)?;
    let matrix = over_every_scheme(MATRIX_SEEDS, threads)?;
    let lossless = adaptive_roce(MATRIX_SEEDS, threads)?;
    Ok(markdown(&healthy, &failing, &matrix) + &dragonfly(MATRIX_SEEDS, threads)? + "\n" + &lossless)
}

fn run(condition: &Condition, pairings: &[Pairing], threads: usize) -> Result<Vec<Vec<Run>>, String> {
    let runs = condition.run(pairings, threads)?;
    for (pairing, runs) in pairings.iter().zip(&runs) {
        let (balancer, scheme) = (pairing.balancer, pairing.switches());
        let above = runs.iter().map(|run| run.above_percent).sum::<f64>() / runs.len() as f64;
        eprintln!("{:30} {balancer:10} {scheme:14} {above:8.1} % above the bound", condition.name);
    }
    Ok(runs)
}
