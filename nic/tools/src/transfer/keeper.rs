//! The thread of a file that is arriving: it writes what comes, hashes it, and at the end waits for the disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::compared::Compared;
use super::format::{PIECE_BYTES, Sum, hex};
use super::out::Goal;
use super::partial::Partial;
use super::refusal::Refusal;
use crate::session::Wake;

/// A file that has its name, and the SHA-256 of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub sum: Sum,
}

/// What the thread says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Whether the file's first bytes, which were there before, have the SHA-256 that the sender stated.
    Compared { bytes: u64, agree: bool },
    /// How the file ended.
    End(Result<Kept, Refusal>),
}

/// What the thread is told.
#[derive(Debug)]
pub enum Order {
    /// Asks whether this is the SHA-256 of the first bytes, which were there before.
    Compare { bytes: u64, sum: Sum },
    /// This is piece `index` of the file.
    Write { index: u64, piece: Lent },
    /// All pieces before these bytes were told.
    Hash { until: u64 },
    /// This is the sender's SHA-256, and how long the file is.
    Sum { sum: Sum, bytes: u64 },
}

/// A message that was taken. It goes back to its owner when it is dropped, wherever that is.
#[derive(Debug)]
pub struct Lent {
    message: Bytes,
    /// Where the piece of a file begins in it, which is the rest of it.
    start: usize,
    owner: Sender<Bytes>,
}

impl Lent {
    pub fn new(message: Bytes, owner: &Sender<Bytes>) -> Self {
        Self { message, start: 0, owner: owner.clone() }
    }

    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Its last `bytes` bytes are a piece.
    #[must_use]
    pub fn with_piece(mut self, bytes: usize) -> Self {
        self.start = self.message.len().saturating_sub(bytes);
        self
    }

    pub fn piece(&self) -> &[u8] {
        self.message.get(self.start..).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The owner may have ended.
        let _ = self.owner.send(std::mem::take(&mut self.message));
    }
}

/// The thread of a file, as its owner sees it. Dropping it stops the thread, which removes what has no name.
#[derive(Debug)]
pub struct Keeper {
    orders: Option<Sender<Order>>,
    news: Receiver<News>,
    stopped: Arc<AtomicBool>,
    /// Unless it may wait for standard output for ever; it leaves nothing behind then.
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts with what is there, of which the first `bytes` bytes may be right.
    pub fn start(
        content: Content,
        goal: Goal,
        bytes: u64,
        waker: Wake,
        compared: Arc<Compared>,
    ) -> std::io::Result<Self> {
        let ((orders, orders_in), (news_out, news)) = (channel(), channel());
        let stopped = Arc::new(AtomicBool::new(false));
        let (flag, waits) = (Arc::clone(&stopped), goal.may_block());
        let (hasher, hashed) = compared.get(content.file(), bytes).unwrap_or_default();
        let work = Work { content, goal, hasher, hashed, news: news_out, waker, compared };
        let thread =
            std::thread::Builder::new().name("spray-file".into()).spawn(move || work.run(&orders_in, &flag))?;
        Ok(Self { orders: Some(orders), news, stopped, thread: (!waits).then_some(thread) })
    }

    pub fn order(&self, order: Order) {
        // A thread that has ended has told why.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    /// What the thread says, once each.
    pub fn news(&self) -> Option<News> {
        match self.news.try_recv() {
            Ok(news) => Some(news),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(News::End(Err(Refusal::new("the file's thread has ended")))),
        }
    }

    /// Stops the thread, and waits for its end.
    pub fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where the bytes are.
#[derive(Debug)]
pub enum Content {
    /// In a file that has no name yet.
    Partial(Partial),
    /// In a file that has its name, and is not written any more.
    There(File),
}

impl Content {
    pub fn file(&self) -> &File {
        match self {
            Self::Partial(partial) => partial.file(),
            Self::There(file) => file,
        }
    }

    /// Whether a later transfer may go on with it.
    fn is_kept(&self) -> bool {
        matches!(self, Self::Partial(partial) if partial.keeps().load(Ordering::Relaxed))
    }
}

/// What the thread owns.
#[derive(Debug)]
struct Work {
    content: Content,
    goal: Goal,
    hasher: Sha256,
    /// Bytes that were hashed.
    hashed: u64,
    news: Sender<News>,
    /// Of the thread that hears of it.
    waker: Wake,
    compared: Arc<Compared>,
}

impl Work {
    /// Hashes what is there when it is compared, then what comes as the file grows, and ends it when all of it and the sender's SHA-256 are there.
    fn run(mut self, orders: &Receiver<Order>, stopped: &AtomicBool) {
        let (news, waker) = (self.news.clone(), self.waker.clone());
        let taken = self.take(orders, stopped);
        if matches!(self.content, Content::There(_)) || self.content.is_kept() && matches!(taken, Ok(None)) {
            self.compared.put(self.content.file(), &self.hasher, self.hashed);
        }
        let ending = match taken {
            Ok(Some(theirs)) => self.finish(theirs),
            // The file was given up.
            Ok(None) => return,
            Err(error) => {
                self.discard();
                Err(Refusal(format!("cannot take what has arrived: {error}")))
            }
        };
        // Nobody waits for it if the file was given up.
        let _ = news.send(News::End(ending));
        waker.wake();
    }

    /// Returns the sender's SHA-256 when everything is hashed; `None` if the file was given up.
    fn take(&mut self, orders: &Receiver<Order>, stopped: &AtomicBool) -> std::io::Result<Option<Sum>> {
        let mut theirs = None;
        loop {
            match theirs {
                Some((sum, bytes)) if self.hashed >= bytes => {
                    return Ok((!stopped.load(Ordering::Relaxed)).then_some(sum));
                }
                _ => {}
            }
            let is_stopped = stopped.load(Ordering::Relaxed);
            match orders.recv() {
                // No later transfer goes on with it.
                Ok(Order::Write { .. }) if is_stopped && !self.content.is_kept() => return Ok(None),
                Ok(Order::Compare { bytes, sum }) => {
                    if !self.hash(bytes, stopped, true)? {
                        return Ok(None);
                    }
                    // An earlier transfer has had more hashed: then the last comparison decides.
                    let agree = bytes < self.hashed || Sum::from(self.hasher.clone().finalize()) == sum;
                    let _ = self.news.send(News::Compared { bytes, agree });
                    self.waker.wake();
                }
                Ok(Order::Write { index, piece }) => self.write(index * PIECE_BYTES, piece.piece(), is_stopped)?,
                Ok(Order::Sum { sum, bytes }) => theirs = Some((sum, bytes)),
                Ok(Order::Hash { until }) => drop(self.hash(until, stopped, false)?),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Writes a piece, and hashes it if nothing is missing before it.
    fn write(&mut self, at: u64, data: &[u8], is_stopped: bool) -> std::io::Result<()> {
        self.content.file().write_all_at(data, at)?;
        if at == self.hashed && !is_stopped {
            self.take_next(data)?;
        }
        Ok(())
    }

    /// Reads and hashes the bytes up to `until`, and writes them where they are to go at once; with `in_turn` only while no other thread reads
    /// what is there. Returns false if it was stopped.
    fn hash(&mut self, until: u64, stopped: &AtomicBool, in_turn: bool) -> std::io::Result<bool> {
        // Small enough that it stops at once, and that the core's cache holds it.
        const CHUNK: u64 = 256 << 10;
        let mut buffer = vec![0; CHUNK.min(until.saturating_sub(self.hashed)) as usize];
        while self.hashed < until && !stopped.load(Ordering::Relaxed) {
            //= docs/specs/endpoint.md#END-23 reads one file at a time
            let compared = Arc::clone(&self.compared);
            let _turn = in_turn.then(|| compared.turn());
            let chunk = &mut buffer[..CHUNK.min(until - self.hashed) as usize];
            self.content.file().read_exact_at(chunk, self.hashed)?;
            self.take_next(chunk)?;
        }
        Ok(self.hashed >= until)
    }

    fn take_next(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.hasher.update(data);
        self.goal.take(data)?;
        self.hashed += data.len() as u64;
        Ok(())
    }

    fn finish(self, theirs: Sum) -> Result<Kept, Refusal> {
        // It gets its name or is refused.
        self.discard();
        let sum: Sum = self.hasher.clone().finalize().into();
        if sum != theirs {
            return Err(Refusal(format!("what arrived has SHA-256 {}, not the sender's; it was removed", hex(&sum))));
        }
        let path = match self.content {
            Content::Partial(partial) => self.goal.finish(partial)?,
            Content::There(file) => self.goal.confirm(&file)?,
        };
        Ok(Kept { path, sum })
    }

    /// Has nothing left for a later transfer.
    fn discard(&self) {
        if let Content::Partial(partial) = &self.content {
            partial.keeps().store(false, Ordering::Relaxed);
        }
    }
}
