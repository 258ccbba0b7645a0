//! `spray init`: writes a first scenario.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args;

const SCENARIO: &str = include_str!("init.toml");

/// Writes the scenario to a new file, or to standard output.
pub fn init(arguments: &args::Init) -> Outcome {
    let file = &arguments.file;
    if file == Path::new("-") {
        say::print(SCENARIO.trim_end());
        return Ok(());
    }
    let shown = file.display();
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let mut made = made.map_err(|error| {
        Failure::refused(format!("cannot create {shown}: {error}; allowed: the name of a new file"))
    })?;
    let written = made.write_all(SCENARIO.as_bytes());
    written.map_err(|error| Failure::failed(format!("cannot write {shown}: {error}")))?;
    say!(
        "wrote {shown}; run it with\n  spray run {shown} --engine sim\nor, as root and with real packets, without `--engine sim`"
    );
    say::object(&json!({ "file": file }))
}

#[cfg(test)]
mod tests {
    use spray_experiments::scenario::Scenario;

    use super::*;

    #[test]
    fn the_initial_scenario_is_valid() {
        let scenario = Scenario::parse(Path::new("init.toml"), SCENARIO).unwrap();
        assert_eq!((scenario.seeds.len(), scenario.transport.balancer.len()), (3, 3));
    }

    #[test]
    fn the_readme_shows_the_scenario() {
        let readme = std::fs::read_to_string(spray_test_support::root().join("README.md")).unwrap();
        let settings = SCENARIO.split_once("\nname = ").map(|(_, rest)| format!("```toml\nname = {rest}```")).unwrap();
        assert!(readme.contains(&settings), "README.md does not have\n{settings}");
    }
}
