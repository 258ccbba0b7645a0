//! What examples transfer.

use std::path::PathBuf;

/// A file of bytes that do not repeat; gone when dropped.
#[derive(Debug)]
pub struct Content(pub PathBuf);

impl Content {
    /// So many bytes, in the folder for temporary files.
    ///
    /// # Panics
    /// When that cannot be written.
    pub fn new(bytes: usize) -> Self {
        let path = std::env::temp_dir().join(format!("spray-real-network-{}.bin", std::process::id()));
        let words = (0..bytes.div_ceil(8) as u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let content: Vec<u8> = words.flat_map(u64::to_ne_bytes).take(bytes).collect();
        std::fs::write(&path, content).expect("a folder for temporary files that can be written");
        Self(path)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
