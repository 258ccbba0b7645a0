//! Files that tests and examples transfer.

use std::path::{Path, PathBuf};

use spray_test_support::Folder;

/// A file of non-repeating bytes in its own folder, removed when dropped.
#[derive(Debug)]
pub struct Content {
    path: PathBuf,
    _folder: Folder,
}

impl Content {
    /// Creates a file of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let folder = Folder::new();
        let words = (0..bytes.div_ceil(8) as u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let content: Vec<u8> = words.flat_map(u64::to_ne_bytes).take(bytes).collect();
        Self { path: folder.file("payload", content).into(), _folder: folder }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
