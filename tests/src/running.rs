//! Processes of the command under test, and files for them.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use spray_test_support::Folder;

/// A file of `bytes` bytes, different at every place.
pub fn payload(folder: &Folder, bytes: usize) -> PathBuf {
    let content: Vec<u8> = (0..bytes as u32 / 4).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    folder.file("payload", content).into()
}

/// A new folder in `folder`, for what is received.
pub fn inbox(folder: &Folder) -> PathBuf {
    let path = folder.path().join("in");
    std::fs::create_dir(&path).unwrap();
    path
}

/// A process that does not outlive its test.
pub struct Running(pub Child);

impl Running {
    /// Waits until it ends; at most 30 s.
    pub fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it has not ended within 30 s");
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.end();
    }

    /// What it said on standard error, once it has ended.
    pub fn said(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut text).unwrap_or_default();
        }
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // In a test that passes it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
