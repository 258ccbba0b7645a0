//! What tests of several crates share: how a test skips, a folder for its files, the repository's root.
#![forbid(unsafe_code)]

mod skip;

use std::path::{Path, PathBuf};

pub use skip::{has_root, skip};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a process printed.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A new folder for the calling test, removed when dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Makes it, among the system's temporary files.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a folder, which no default should")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("the system has a place for temporary files"))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path in it of what is, or will be, called `name`.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> String {
        self.path().join(name).display().to_string()
    }

    /// The path of a new file with this content.
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
