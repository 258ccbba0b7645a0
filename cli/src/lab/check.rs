//! `spray check`: what input files are, and whether they are read.

use serde::Serialize;
use spray_experiments::check::{Contents, InputKind, check};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::{note, say};

use crate::lab::args;

#[derive(Serialize)]
struct Checked {
    file: String,
    kind: Option<InputKind>,
    error: Option<String>,
    #[serde(flatten)]
    contents: Contents,
}

pub fn check_files(arguments: &args::Check) -> Outcome {
    let mut all = Vec::new();
    for path in &arguments.files {
        let file = path.display().to_string();
        all.push(match check(path) {
            Ok((kind, contents)) => {
                say!("{file}: {kind}{}", facts(&contents));
                contents.warnings.iter().for_each(|warning| note!("{file}: {warning}"));
                Checked { file, kind: Some(kind), error: None, contents }
            }
            Err(error) => {
                note!("{error}");
                Checked { file, kind: None, error: Some(error.message), contents: Contents::default() }
            }
        });
    }
    say::object(&all)?;
    match all.iter().filter(|checked| checked.error.is_some()).count() {
        0 => Ok(()),
        rejected => Err(Failure::refused(format!("{rejected} of {} files are not read", all.len()))),
    }
}

/// Formats the contents of a file.
fn facts(contents: &Contents) -> String {
    let Contents { hosts, switches, links, rate_bps, flows, bytes, runs, mean_bytes, warnings: _ } = contents;
    let counts = [("hosts", hosts), ("switches", switches), ("links", links), ("flows", flows), ("runs", runs)];
    let mut facts: Vec<String> = Vec::new();
    facts.extend(counts.into_iter().filter_map(|(name, count)| Some(format!("{} {name}", (*count)?))));
    facts.extend(rate_bps.map(|rate| format!("up to {} Gb/s", rate as f64 / 1e9)));
    facts.extend(bytes.map(|bytes| format!("{bytes} bytes")));
    facts.extend(mean_bytes.map(|mean| format!("mean {mean:.0} bytes")));
    facts.iter().map(|fact| format!(", {fact}")).collect()
}
