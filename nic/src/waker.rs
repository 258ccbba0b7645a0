//! Wakes a thread that sleeps on file descriptors.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
#[cfg(any(feature = "tokio", feature = "xdp"))]
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes a thread that sleeps on file descriptors, as in [`Host::run`](crate::Host::run).
#[derive(Debug)]
pub struct Waker {
    reader: PipeReader,
    writer: PipeWriter,
    woken: AtomicBool,
}

impl Waker {
    /// Readable when somebody wakes.
    #[cfg(any(feature = "tokio", feature = "xdp"))]
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// One that nobody has woken.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, woken: AtomicBool::new(false) })
    }

    /// Ends the sleep, or the next one.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            // The pipe holds one byte at most and its reader exists, so this neither blocks nor fails.
            let _ = (&self.writer).write(&[1]);
        }
    }

    /// Whether somebody has woken since the last [`rearm`](Self::rearm).
    #[cfg(test)]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Clears a wake-up, before looking for its reason.
    pub fn rearm(&self) {
        if self.woken.load(Ordering::Acquire) {
            let _ = (&self.reader).read(&mut [0]);
            // It swaps, so that the thread sees all commands queued before the last wake-up.
            self.woken.swap(false, Ordering::AcqRel);
        }
    }
}
