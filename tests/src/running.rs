//! Processes of the tested command, and files for them.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rand_core::RngCore;
use spray_core::rng;
use spray_test_support::Folder;

/// Creates a file of `bytes` random bytes.
pub fn payload(folder: &Folder, bytes: usize) -> PathBuf {
    folder.file("payload", content(0, bytes)).into()
}

/// Creates a folder in `folder`, for received files.
pub fn inbox(folder: &Folder) -> PathBuf {
    let path = folder.path().join("in");
    std::fs::create_dir(&path).unwrap();
    path
}

/// A process that is killed when dropped.
pub struct Running(pub Child);

/// The maximum time to wait for an event on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `condition` returns true.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    /// Waits until this `spray recv`, with a pipe as standard error, can be reached.
    pub fn listening(self) -> Self {
        self.until("listening on ")
    }

    /// Waits until this process, with a pipe as standard error, has written a line that contains
    /// `text`.
    pub fn until(mut self, text: &str) -> Self {
        let stderr = self.0.stderr.as_mut().expect("a piped standard error");
        // Reads no further than that line.
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !(line.ends_with(b"\n") && String::from_utf8_lossy(&line).contains(text)) {
            let ended = stderr.read(&mut byte).unwrap() == 0;
            assert!(!ended, "it ended: {}", String::from_utf8_lossy(&line));
            line.extend(byte);
        }
        self
    }

    /// Returns a field of its `/proc/PID/status` in KiB, such as `VmHWM:`; 0 once it has ended.
    pub fn kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let value = status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB"));
        value.map_or(0, |kib| kib.parse().unwrap())
    }

    /// Returns whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Waits until it ends.
    pub fn end(&mut self) -> ExitStatus {
        wait_until("the end of a process", || !self.is_running());
        self.0.wait().unwrap()
    }

    /// Kills it, and waits until it has ended.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.end();
    }

    /// Returns its standard error after it has ended.
    pub fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut text).unwrap_or_default();
        }
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns random bytes that depend on the seed.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    rng::stream(seed, 0).fill_bytes(&mut content);
    content
}

/// Sends bytes in both directions of a connection at the same time, and compares what arrives.
pub fn both_ways(ends: [TcpStream; 2], bytes: usize) {
    let talk = |stream: &TcpStream, send: Vec<u8>, expected: Vec<u8>| {
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        stream.set_write_timeout(patience).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut to = stream;
                to.write_all(&send).unwrap();
                to.shutdown(Shutdown::Write).unwrap();
            });
            let (mut from, mut got) = (stream, Vec::new());
            from.read_to_end(&mut got).unwrap();
            assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
        });
    };
    let [near, far] = &ends;
    std::thread::scope(|scope| {
        scope.spawn(|| talk(near, content(1, bytes), content(2, bytes)));
        talk(far, content(2, bytes), content(1, bytes));
    });
}
