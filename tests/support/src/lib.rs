//! Helpers for tests of several crates: to skip a test, a folder for its files, the repository's root, a switch in memory, a seal, Wireshark.
#![forbid(unsafe_code)]

mod native;
mod seal;
mod skip;
mod wireshark;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use native::NativeSwitch;
pub use seal::AnySeal;
pub use skip::{has_root, skip};
pub use wireshark::{WRONG, tshark};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program that cargo builds beside the calling test: `spray`, or `examples/echo`. Builds it by `build`, arguments of `cargo build`, unless
/// `cargo xtask test` calls, which has built all of them alike.
///
/// # Panics
/// When it does not build.
#[must_use]
pub fn program(name: &str, build: &[&str]) -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    // Test programs are in `deps` of the profile's folder.
    let folder = own.parent().and_then(Path::parent).expect("cargo's layout");
    if std::env::var_os("SPRAY_ALL_BUILT").is_none() {
        let profile: &[&str] = if folder.ends_with("release") { &["--release"] } else { &[] };
        let status = Command::new(env!("CARGO")).args(["build", "--quiet"]).args(profile).args(build).status();
        assert!(status.is_ok_and(|status| status.success()), "{name} does not build");
    }
    folder.join(name)
}

/// The output of a process.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A new folder for the calling test, removed when dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Makes the folder, among the system's temporary files.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a folder, which no default should")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("the system has a place for temporary files"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in the folder, whether it exists or not.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> String {
        self.path().join(name).display().to_string()
    }

    /// Writes a new file with this content, and returns its path.
    #[must_use]
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.join(name);
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{path}: {error}"));
        path
    }

    /// The content of a file.
    #[must_use]
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
