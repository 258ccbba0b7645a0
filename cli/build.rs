//! Sets `SPRAY_COMMIT` to the commit that the program is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]).unwrap_or_default();
    println!("cargo::rustc-env=SPRAY_COMMIT={commit}");
    // A commit or a checkout changes these files. Without a repository there are none.
    println!("cargo::rerun-if-changed=build.rs");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Returns the output of git, or `None` without git or outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().into())
}
