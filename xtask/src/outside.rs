//! `spray-nic` as others get it: from its packages, in a project of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::demo::target;
use crate::sh::{self, Failure, Outcome};

/// `spray-nic` and what it needs of ours.
const PACKAGES: [&str; 4] = ["spray-wire", "spray-flowcut", "spray-core", "spray-nic"];

/// A folder that is gone after the step, also after a failed one.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left: {error}", self.0.display());
        }
    }
}

/// Packages [`PACKAGES`], and runs README's example and the packaged example `echo` in a new project outside the tree.
pub fn check() -> Outcome {
    let mut package = sh::cargo();
    // Without a check of its own: that builds each of them alone, and the project below builds them all.
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    sh::run(package.args(PACKAGES.iter().flat_map(|name| ["--package", name])))?;

    let project = Folder(std::env::temp_dir().join(format!("spray-outside-{}", std::process::id())));
    make(&project.0)?;
    let example = project.0.join("src/main.rs");
    fs::write(&example, readme_example()?).map_err(|error| Failure::of_file(&example, &error))?;
    cargo(&project.0, &["run"])?;
    cargo(&project.0, &["run", "--example", "echo", "--", "--memory"])
}

/// A project that takes `spray-nic` from its package, and every other crate as `Cargo.lock` names it.
fn make(project: &Path) -> Outcome {
    fs::create_dir_all(project.join("src")).map_err(|error| Failure::of_file(project, &error))?;
    for name in PACKAGES {
        let file = target().join("package").join(format!("{}.crate", versioned(name)));
        sh::run(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(project))?;
    }
    let patches: String =
        PACKAGES.iter().map(|name| format!("{name} = {{ path = \"{}\" }}\n", versioned(name))).collect();
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n\n\
         [dependencies]\nspray-nic = \"{}\"\n\
         tokio = {{ version = \"1\", features = [\"rt\", \"macros\", \"time\", \"net\", \"fs\", \"io-util\"] }}\n\n\
         [patch.crates-io]\n{patches}\n[workspace]\n",
        env!("CARGO_PKG_VERSION")
    );
    let file = project.join("Cargo.toml");
    fs::write(&file, manifest).map_err(|error| Failure::of_file(&file, &error))?;
    let lock = sh::root().join("Cargo.lock");
    fs::copy(&lock, project.join("Cargo.lock")).map_err(|error| Failure::of_file(&lock, &error))?;
    let examples = project.join(versioned("spray-nic")).join("examples");
    fs::rename(&examples, project.join("examples")).map_err(|error| Failure::of_file(&examples, &error))
}

fn versioned(name: &str) -> String {
    format!("{name}-{}", env!("CARGO_PKG_VERSION"))
}

/// The one block of Rust in the README.
fn readme_example() -> Outcome<String> {
    let file = sh::root().join("README.md");
    let text = fs::read_to_string(&file).map_err(|error| Failure::of_file(&file, &error))?;
    let block = text.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.ok_or_else(|| Failure::failed(format!("{} has no block of Rust", file.display())))?;
    Ok(block.to_string())
}

fn cargo(project: &Path, arguments: &[&str]) -> Outcome {
    let mut cargo = sh::cargo();
    sh::run(cargo.current_dir(project).env("CARGO_TARGET_DIR", target().join("outside")).args(arguments))
}
