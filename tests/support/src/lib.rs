//! Helpers for tests of several crates.
#![deny(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod memory;
mod native;
mod pair;
mod programs;
mod root;
mod seal;
mod skip;
mod wireshark;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use memory::make_executable;
pub use native::NativeSwitch;
pub use pair::Pair;
pub use programs::detach_programs;
pub use seal::AnySeal;
pub use skip::{has_root, skip};
pub use wireshark::{WRONG, tshark};

/// Returns the root of the repository; panics outside of it.
#[must_use]
pub fn root() -> PathBuf {
    root::find().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the path of the program `name` that cargo builds along with the calling test's package.
/// Panics when the path of the test does not have cargo's layout.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    // Test programs are in `deps`, others in its parent. A compiled-in path would refer to the
    // original of a copied tree.
    let own = std::env::current_exe().expect("a program has a path");
    own.parent().and_then(Path::parent).expect("cargo's layout").join(name)
}

/// Returns the path of the program `name` that `cargo build` makes with these arguments. Builds it
/// unless `cargo xtask test` did so. Panics when it does not build.
#[must_use]
pub fn built(name: &str, arguments: &[&str]) -> PathBuf {
    let program = program(name);
    if std::env::var_os("SPRAY_ALL_BUILT").is_none() {
        let folder = program.parent().and_then(Path::file_name).expect("cargo's layout");
        let profile = if folder == "debug" { "dev".as_ref() } else { folder };
        let mut cargo = Command::new(env!("CARGO"));
        let status = cargo.args(["build", "--quiet", "--profile"]).arg(profile).args(arguments).status();
        assert!(status.is_ok_and(|status| status.success()), "{name} does not build");
    }
    program
}

/// Converts the output of a process.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A temporary folder, removed when dropped.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates the folder.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it creates a folder, which no default should")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("the system has a place for temporary files"))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of `name` in the folder, existing or not.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> String {
        self.path().join(name).display().to_string()
    }

    /// Creates a file with this content, and returns its path.
    #[must_use]
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.join(name);
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{path}: {error}"));
        path
    }

    /// Returns the content of a file.
    #[must_use]
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
