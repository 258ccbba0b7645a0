//! Tells the program from which commit it is built.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]).unwrap_or_default();
    println!("cargo::rustc-env=SPRAY_COMMIT={commit}");
    // A commit and a checkout change these; without a repository there is nothing to look at.
    println!("cargo::rerun-if-changed=build.rs");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git prints; `None` where there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().into())
}
