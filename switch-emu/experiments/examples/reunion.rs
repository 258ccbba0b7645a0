//! Runs Reunion over each base on the rings of its paper, or on messages in sizes of a published distribution, and prints their completion times.

use std::process::ExitCode;

use spray_experiments::reunion::{Messages, Rings, markdown};
use spray_experiments::workload::Sizes;
use spray_fabric::Scheme;

const USAGE: &str = "usage: reunion MB SEEDS LOAD,LOAD... INTERVAL_US SLICES SCHEME[:GAP_US]... (schemes as in --switch)\n       \
     reunion sizes NAME MESSAGES SEEDS INTERVAL_US SCHEME[:GAP_US]...";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "sizes") {
        return match messages(&words[1..]).map(|messages| messages.run(1)) {
            None => usage(),
            Some(Ok(text)) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Some(Err(error)) => failed(&error),
        };
    }
    let Some(rings) = rings(&words) else { return usage() };
    match rings.run(1, |line| eprintln!("{line}")) {
        Ok(rows) => {
            print!("{}", markdown(&rings, &rows));
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn failed(error: &str) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(1)
}

fn messages(words: &[String]) -> Option<Messages> {
    let [name, messages, seeds, interval_us, schemes @ ..] = words else { return None };
    let own = ["1", seeds.as_str(), "100", interval_us.as_str(), "1"].map(String::from);
    Some(Messages {
        rings: rings(&[&own[..], schemes].concat())?,
        sizes: Sizes::ALL.into_iter().find(|sizes| sizes.name() == name)?,
        messages: messages.parse().ok().filter(|messages| *messages > 0)?,
    })
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
