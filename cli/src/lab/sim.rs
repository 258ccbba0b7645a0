//! `spray sim`.

pub mod args;

use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::preset;
use spray_tools::failure::{Failure, Outcome};

use self::args::Sim;
use crate::lab::args::Engine;
use crate::lab::campaign::Campaign;
use crate::lab::settings::Overrides;

pub fn sim(arguments: &Sim) -> Outcome {
    let scenarios = Scenario::read_all(&published_document(&arguments.overrides)?).map_err(Failure::refused)?;
    let campaign = Campaign::new(Engine::Sim, scenarios, &arguments.seeds);
    let captures = Some(arguments.captures.clone());
    Campaign { captures, extras: arguments.results.extras(), ..campaign }.run(arguments.results.out.as_deref())
}

/// `overrides` must set fabric and flows.
pub fn published(overrides: &Overrides) -> Outcome<Scenario> {
    Scenario::read(&published_document(overrides)?).map_err(Failure::refused)
}

fn published_document(overrides: &Overrides) -> Outcome<Document> {
    let mut document = preset();
    overrides.apply(&mut document)?;
    let needed = [("topology", "--topology"), ("workload", "--matrix")];
    let missing: Vec<&str> =
        needed.iter().filter(|(path, _)| !document.is_assigned(path)).map(|(_, flag)| *flag).collect();
    if !missing.is_empty() {
        return Err(Failure::refused(format!("`spray sim` needs {}, see `spray sim --help`", missing.join(" and "))));
    }
    Ok(document)
}
