//! The thread of an arriving file, which writes, hashes, syncs and renames it.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::format::{HEADER, PIECE_BYTES, Sum, hex};
use super::out::Goal;
use super::partial::Partial;
use super::refusal::Refusal;
use crate::session::Wake;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub sum: Sum,
}

pub type Ending = Result<Kept, Refusal>;

/// Writes of all pieces below `Hash::until` precede it. `Sum` is from the sender.
#[derive(Debug)]
pub enum Order {
    Write { index: u64, piece: Lent },
    Hash { until: u64 },
    Sum { sum: Sum, bytes: u64 },
}

/// A received message, returned to its owner on drop, on any thread.
#[derive(Debug)]
pub struct Lent {
    pub message: Bytes,
    owner: Sender<Bytes>,
}

impl Lent {
    pub fn new(message: Bytes, owner: &Sender<Bytes>) -> Self {
        Self { message, owner: owner.clone() }
    }

    pub fn piece(&self) -> &[u8] {
        self.message.get(HEADER..).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.owner.send(std::mem::take(&mut self.message));
    }
}

/// The handle of the thread. Dropping it stops the thread, which removes an incomplete file.
#[derive(Debug)]
pub struct Keeper {
    orders: Option<Sender<Order>>,
    ending: Receiver<Ending>,
    stopped: Arc<AtomicBool>,
    /// `None` if it may block on standard output forever; it leaves no file behind then.
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub fn start(partial: Partial, goal: Goal, waker: Wake) -> std::io::Result<Self> {
        let ((orders, orders_in), (ended, ending)) = (channel(), channel());
        let stopped = Arc::new(AtomicBool::new(false));
        let (flag, waits) = (Arc::clone(&stopped), matches!(goal, Goal::Stdout(_)));
        let work = Work { partial, goal, hasher: Sha256::new(), hashed: 0 };
        let run = move || {
            if let Some(ending) = work.run(&orders_in, &flag) {
                // The handle is gone if the file was given up.
                let _ = ended.send(ending);
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new().name("spray-file".into()).spawn(run)?;
        Ok(Self { orders: Some(orders), ending, stopped, thread: (!waits).then_some(thread) })
    }

    pub fn order(&self, order: Order) {
        // A thread that has ended has sent its result.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    pub fn ending(&self) -> Option<Ending> {
        match self.ending.try_recv() {
            Ok(ending) => Some(ending),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Refusal::new("the file's thread has ended"))),
        }
    }

    pub fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Debug)]
struct Work {
    partial: Partial,
    goal: Goal,
    hasher: Sha256,
    hashed: u64,
}

impl Work {
    /// Returns `None` if it was stopped.
    fn run(mut self, orders: &Receiver<Order>, stopped: &AtomicBool) -> Option<Ending> {
        match self.take(orders, stopped) {
            Ok(theirs) => Some(self.finish(theirs?)),
            Err(error) => Some(Err(Refusal(format!("cannot take what has arrived: {error}")))),
        }
    }

    /// Returns the sender's SHA-256 when everything is hashed; `None` if stopped.
    fn take(&mut self, orders: &Receiver<Order>, stopped: &AtomicBool) -> std::io::Result<Option<Sum>> {
        let mut theirs = None;
        loop {
            if stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match theirs {
                Some((sum, bytes)) if self.hashed >= bytes => return Ok(Some(sum)),
                _ => {}
            }
            match orders.recv() {
                Ok(Order::Write { index, piece }) => self.write(index * PIECE_BYTES, piece.piece())?,
                Ok(Order::Hash { until }) => self.hash(until, stopped)?,
                Ok(Order::Sum { sum, bytes }) => theirs = Some((sum, bytes)),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Writes a piece, and hashes it if it is the next in order.
    fn write(&mut self, at: u64, data: &[u8]) -> std::io::Result<()> {
        self.partial.file.write_all_at(data, at)?;
        if at == self.hashed { self.take_next(data) } else { Ok(()) }
    }

    /// Reads back and hashes the bytes up to `until`, unless stopped.
    fn hash(&mut self, until: u64, stopped: &AtomicBool) -> std::io::Result<()> {
        // Small enough to stop quickly, and to fit the core's cache.
        const CHUNK: u64 = 256 << 10;
        let mut buffer = vec![0; CHUNK.min(until.saturating_sub(self.hashed)) as usize];
        while self.hashed < until && !stopped.load(Ordering::Relaxed) {
            let chunk = &mut buffer[..CHUNK.min(until - self.hashed) as usize];
            self.partial.file.read_exact_at(chunk, self.hashed)?;
            self.take_next(chunk)?;
        }
        Ok(())
    }

    fn take_next(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.hasher.update(data);
        self.goal.take(data)?;
        self.hashed += data.len() as u64;
        Ok(())
    }

    fn finish(self, theirs: Sum) -> Ending {
        let sum: Sum = self.hasher.finalize().into();
        if sum != theirs {
            return Err(Refusal(format!("what arrived has SHA-256 {}, not the sender's; it was removed", hex(&sum))));
        }
        Ok(Kept { path: self.goal.finish(self.partial)?, sum })
    }
}
