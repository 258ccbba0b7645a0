//! `spray check`: what input files are, and whether they are read.

use serde_json::json;
use spray_experiments::check::{Contents, check};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::{note, say};

use crate::lab::args;

pub fn check_files(arguments: &args::Check) -> Outcome {
    let mut objects = Vec::new();
    let mut rejected = 0;
    for file in &arguments.files {
        let name = file.display().to_string();
        match check(file) {
            Ok((kind, contents)) => {
                let object = json!({ "file": name, "kind": kind, "contents": contents });
                let kind = object["kind"].as_str().unwrap_or_default();
                say!("{name}: {kind}{}", facts(&contents));
                contents.warnings.iter().for_each(|warning| note!("{name}: {warning}"));
                objects.push(object);
            }
            Err(mistake) => {
                rejected += 1;
                note!("{mistake}");
                objects.push(json!({ "file": name, "error": mistake.to_string() }));
            }
        }
    }
    say::object(&objects)?;
    match rejected {
        0 => Ok(()),
        _ => Err(Failure::refused(format!("{rejected} of {} files are not read", arguments.files.len()))),
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
