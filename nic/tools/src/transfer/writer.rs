//! The thread of an arriving file, which writes, hashes, syncs and renames it.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::format::{HEADER, PIECE_BYTES, Refusal, Sum, hex};
use super::out::Goal;
use super::partial::Partial;
use crate::session::Wake;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub path: PathBuf,
    pub sum: Sum,
}

pub type FileResult = Result<Completed, Refusal>;

/// Writes of all pieces below `Hash::until` precede it. `Sum` is from the sender.
#[derive(Debug)]
pub enum Command {
    Write { index: u64, piece: HeldMessage },
    Hash { until: u64 },
    Sum(Sum),
}

/// A received message, which is returned on drop, on any thread.
#[derive(Debug)]
pub struct HeldMessage {
    pub message: Bytes,
    return_to: Sender<Bytes>,
}

impl HeldMessage {
    pub fn new(message: Bytes, return_to: &Sender<Bytes>) -> Self {
        Self { message, return_to: return_to.clone() }
    }

    pub fn piece(&self) -> &[u8] {
        self.message.get(HEADER..).unwrap_or_default()
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        let _ = self.return_to.send(std::mem::take(&mut self.message));
    }
}

/// The handle of the thread. Dropping it stops the thread, which removes an incomplete file.
#[derive(Debug)]
pub struct Writer {
    commands: Option<Sender<Command>>,
    result: Receiver<FileResult>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(partial: Partial, goal: Goal, bytes: u64, waker: Wake) -> std::io::Result<Self> {
        let ((commands, commands_in), (ended, result)) = (channel(), channel());
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let work = Work { partial, goal, bytes, hasher: Sha256::new(), hashed: 0 };
        let run = move || {
            if let Some(result) = work.run(&commands_in, &flag) {
                // The handle is gone if the file was given up.
                let _ = ended.send(result);
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new().name("spray-file".into()).spawn(run)?;
        Ok(Self { commands: Some(commands), result, stopped, thread: Some(thread) })
    }

    pub fn command(&self, command: Command) {
        // A thread that has ended has sent its result.
        let _ = self.commands.as_ref().map(|commands| commands.send(command));
    }

    pub fn result(&self) -> Option<FileResult> {
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Refusal("the file's thread has ended".into()))),
        }
    }

    /// Makes the thread end after its current piece, and drop the pieces that wait.
    pub fn cancel(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.commands = None;
    }

    pub fn stop(&mut self) {
        self.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Debug)]
struct Work {
    partial: Partial,
    goal: Goal,
    bytes: u64,
    hasher: Sha256,
    hashed: u64,
}

impl Work {
    /// Returns `None` if it was stopped.
    fn run(mut self, commands: &Receiver<Command>, stopped: &AtomicBool) -> Option<FileResult> {
        match self.take(commands, stopped) {
            Ok(theirs) => Some(self.finish(theirs?)),
            Err(error) => Some(Err(Refusal(format!("cannot take what has arrived: {error}")))),
        }
    }

    /// Returns the sender's SHA-256 when everything is hashed; `None` if stopped.
    fn take(&mut self, commands: &Receiver<Command>, stopped: &AtomicBool) -> std::io::Result<Option<Sum>> {
        let mut theirs = None;
        loop {
            if stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if theirs.is_some() && self.hashed >= self.bytes {
                return Ok(theirs);
            }
            match commands.recv() {
                Ok(Command::Write { index, piece }) => self.write(index * PIECE_BYTES, piece.piece())?,
                Ok(Command::Hash { until }) => self.hash(until, stopped)?,
                Ok(Command::Sum(sum)) => theirs = Some(sum),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Writes a piece, and hashes it if it is the next in order.
    fn write(&mut self, at: u64, data: &[u8]) -> std::io::Result<()> {
        self.partial.file.write_all_at(data, at)?;
        if at == self.hashed {
            self.hash_next(data);
        }
        Ok(())
    }

    /// Reads back and hashes the bytes up to `until`, unless stopped.
    fn hash(&mut self, until: u64, stopped: &AtomicBool) -> std::io::Result<()> {
        // Small enough to stop quickly, and to fit the core's cache.
        const CHUNK: u64 = 256 << 10;
        let mut buffer = vec![0; CHUNK.min(until.saturating_sub(self.hashed)) as usize];
        while self.hashed < until && !stopped.load(Ordering::Relaxed) {
            let chunk = &mut buffer[..CHUNK.min(until - self.hashed) as usize];
            self.partial.file.read_exact_at(chunk, self.hashed)?;
            self.hash_next(chunk);
        }
        Ok(())
    }

    fn hash_next(&mut self, data: &[u8]) {
        self.hasher.update(data);
        self.hashed += data.len() as u64;
    }

    fn finish(self, theirs: Sum) -> FileResult {
        let sum: Sum = self.hasher.finalize().into();
        if sum != theirs {
            return Err(Refusal(format!("what arrived has SHA-256 {}, not the sender's; it was removed", hex(&sum))));
        }
        Ok(Completed { path: self.goal.finish(self.partial)?, sum })
    }
}
