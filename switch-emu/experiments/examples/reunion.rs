//! Runs Reunion over each base on the rings of its paper, and prints their completion times.

use std::process::ExitCode;

use spray_experiments::switch_comparison::reunion::{Rings, markdown};
use spray_fabric::Scheme;

const USAGE: &str =
    "usage: reunion MB SEEDS LOAD,LOAD... INTERVAL_US SLICES SCHEME[:GAP_US]... (schemes as in --switch)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(rings) = rings(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match rings.run(1, |line| eprintln!("{line}")) {
        Ok(rows) => {
            print!("{}", markdown(&rings, &rows));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

fn rings(words: &[String]) -> Option<Rings> {
    let [megabytes, seeds, loads, interval_us, slices, schemes @ ..] = words else { return None };
    Some(Rings {
        bytes: megabytes.parse::<u64>().ok().filter(|megabytes| *megabytes > 0)? * 1_000_000,
        seeds: seeds.parse().ok().filter(|seeds| *seeds > 0)?,
        loads: loads.split(',').map(|load| load.parse().ok()).collect::<Option<_>>()?,
        interval_us: interval_us.parse().ok()?,
        slices: slices.parse().ok().filter(|slices| *slices > 0)?,
        schemes: schemes.iter().map(|word| scheme(word)).collect::<Option<_>>()?,
    })
}

fn scheme(word: &str) -> Option<(Scheme, f64)> {
    let (name, gap_us) = word.split_once(':').unwrap_or((word, "100"));
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)?;
    Some((scheme, gap_us.parse().ok()?))
}
