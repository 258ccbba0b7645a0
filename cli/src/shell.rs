//! `spray completions` and `spray man`.

use clap::CommandFactory;
use serde_json::json;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::args::{self, Cli};
use crate::folder;

pub fn completions(arguments: &args::Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "spray", &mut script);
    say::print(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

/// Writes `spray.1`, `spray-run.1` and so on.
pub fn man(arguments: &args::Man) -> Outcome {
    let dir = &arguments.dir;
    folder::make(dir)?;
    clap_mangen::generate_to(Cli::command(), dir)
        .map_err(|error| Failure::failed(format!("cannot write manual pages to {}: {error}", dir.display())))?;
    say!("wrote the manual pages; read one with\n  man {}", dir.join("spray.1").display());
    say::object(&json!({ "folder": dir }))
}
