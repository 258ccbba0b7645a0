//! Uses `spray-nic` as a dependency: from its package, in a separate project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use self::pair::Pair;
use crate::demo::target;
use crate::sh::{self, Failure, Outcome};

#[path = "../../tests/support/src/pair.rs"]
mod pair;

/// `spray-nic` and its dependencies in the workspace.
const PACKAGES: [&str; 3] = ["spray-wire", "spray-core", "spray-nic"];

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left: {error}", self.0.display());
        }
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the example of the README and `echo` from packages, in a new project outside the tree: in
/// memory, and as root between two network namespaces.
pub fn check() -> Outcome {
    let mut package = sh::cargo();
    // Verification would build each package alone; the project below builds them all.
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    sh::run(package.args(PACKAGES.iter().flat_map(|name| ["--package", name])))?;

    let project = Folder(std::env::temp_dir().join(format!("spray-outside-{}", std::process::id())));
    make(&project.0)?;
    sh::write(&project.0.join("src/main.rs"), readme_example()?)?;
    cargo(&project.0, &["run"])?;
    cargo(&project.0, &["run", "--example", "echo", "--", "--memory"])?;
    if !sh::is_root() {
        println!("skipped: the packaged `echo` between two network namespaces needs root");
        return Ok(());
    }
    over_veth(&target().join("outside/debug/examples/echo"))
}

fn over_veth(echo: &Path) -> Outcome {
    let pair = Pair::new("outside").map_err(Failure::failed)?;
    let server = pair.command(1, echo).args(["server", "eth0"]).spawn();
    let _server = Server(server.map_err(|error| Failure::of_file(echo, &error))?);
    sh::run(pair.command(0, echo).args(["client", "eth0", "10.78.0.2"]))
}

/// Creates a project with `spray-nic` from its package, and the workspace's `Cargo.lock`.
fn make(project: &Path) -> Outcome {
    fs::create_dir_all(project.join("src")).map_err(|error| Failure::of_file(project, &error))?;
    for name in PACKAGES {
        let file = target().join("package").join(format!("{}.crate", versioned(name)));
        // `-m`, because with the old timestamps in packages cargo would consider earlier builds
        // fresh.
        sh::run(Command::new("tar").arg("-xmzf").arg(file).arg("-C").arg(project))?;
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
    sh::write(&project.join("Cargo.toml"), manifest)?;
    sh::write(&project.join("Cargo.lock"), sh::read(&sh::root().join("Cargo.lock"))?)?;
    let examples = project.join(versioned("spray-nic")).join("examples");
    fs::rename(&examples, project.join("examples")).map_err(|error| Failure::of_file(&examples, &error))
}

fn versioned(name: &str) -> String {
    format!("{name}-{}", env!("CARGO_PKG_VERSION"))
}

fn readme_example() -> Outcome<String> {
    let file = sh::root().join("README.md");
    let text = sh::read_text(&file)?;
    let block = text.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.ok_or_else(|| Failure::failed(format!("{} has no block of Rust", file.display())))?;
    Ok(block.to_string())
}

fn cargo(project: &Path, arguments: &[&str]) -> Outcome {
    let mut cargo = sh::cargo();
    sh::run(cargo.current_dir(project).env("CARGO_TARGET_DIR", target().join("outside")).args(arguments))
}
