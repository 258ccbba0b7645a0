//! Wakes threads that sleep on file descriptors.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
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
    /// Returns a descriptor that is readable while a wake-up is pending.
    pub fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Creates a waker without a pending wake-up.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, woken: AtomicBool::new(false) })
    }

    /// Ends the sleep, or the next one.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            // The pipe holds at most one byte and its reader exists: this neither blocks nor fails.
            let _ = (&self.writer).write(&[1]);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Clears a pending wake-up. Call it before looking for its reason.
    pub fn rearm(&self) {
        if self.woken.load(Ordering::Acquire) {
            let _ = (&self.reader).read(&mut [0]);
            // A swap, so that the thread sees all commands queued before the last wake-up.
            self.woken.swap(false, Ordering::AcqRel);
        }
    }
}
