//! A file that is arriving. It is written beside its final name and gets it once its SHA-256 is right and it is on the disk.
//!
//! Pieces are written by the caller, which polls a network and must not wait. A thread of the file's own reads them back in their order,
//! hashes them, and at the end waits for the disk.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::format::{Description, PIECE_BYTES, Sum, decode_sum, hex};
use super::partial::{Partial, folder_of, is_partial};
use crate::progress::now;

/// Why a connection's file is refused, in words for the sender and for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A file that has its name, and the SHA-256 of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub sum: Sum,
}

/// A file on its way in.
#[derive(Debug)]
pub struct Incoming {
    pub description: Description,
    file: File,
    arrived: Vec<bool>,
    /// Pieces before the first that is missing.
    prefix: usize,
    pub arrived_bytes: u64,
    has_sum: bool,
    pub started: Instant,
    keeper: Keeper,
}

impl Incoming {
    /// Begins with the sender's first message. `unique` is a number that this process has not used before.
    pub fn begin(message: &[u8], out: &Path, unique: u32) -> Result<Self, Refusal> {
        // The message after the last piece must have a number too.
        const MOST_PIECES: u64 = u32::MAX as u64 - 1;
        let description =
            Description::decode(message).ok_or_else(|| Refusal::new("its first message describes no file"))?;
        if description.pieces() > MOST_PIECES {
            return Err(Refusal::new("the file is too long"));
        }
        let (target, replaces) = target(out, &description.name)?;
        let unwritable = |error| Refusal(format!("cannot write in {}: {error}", folder_of(&target).display()));
        let partial = Partial::create(folder_of(&target), unique, description.bytes).map_err(unwritable)?;
        let file = partial.file().try_clone().map_err(unwritable)?;
        let arrived = vec![false; description.pieces() as usize];
        let work = Work { partial, target: target.clone(), replaces, bytes: description.bytes };
        let keeper = Keeper::start(work).map_err(unwritable)?;
        let (prefix, arrived_bytes, has_sum, started) = (0, 0, false, now());
        Ok(Self { description, file, arrived, prefix, arrived_bytes, has_sum, started, keeper })
    }

    /// Takes message number `message`, one after the description: piece `message - 1`, or the SHA-256.
    pub fn place(&mut self, message: u32, data: &[u8]) -> Result<(), Refusal> {
        let wrong = || Refusal(format!("message {message} of {} bytes is no piece of the file", data.len()));
        let piece = u64::from(message).checked_sub(1).ok_or_else(wrong)?;
        if piece == self.description.pieces() && !self.has_sum {
            self.has_sum = true;
            self.keeper.order(Order::Sum(decode_sum(data).ok_or_else(wrong)?));
            return Ok(());
        }
        let expected = self.description.piece_bytes(piece);
        let fresh = self.arrived.get_mut(piece as usize).filter(|arrived| !**arrived);
        let arrived = fresh.filter(|_| data.len() as u64 == expected).ok_or_else(wrong)?;
        *arrived = true;
        self.arrived_bytes += expected;
        self.file.write_all_at(data, piece * PIECE_BYTES).map_err(|error| Refusal(format!("cannot write: {error}")))?;
        self.advance();
        Ok(())
    }

    /// Whether everything is here; the rest is between us and the disk.
    pub fn is_whole(&self) -> bool {
        self.has_sum && self.arrived_bytes == self.description.bytes
    }

    /// How the file ended, once it has.
    pub fn ending(&mut self) -> Option<Result<Kept, Refusal>> {
        self.keeper.ending()
    }

    /// Gives the file up, unless it gets its name at this moment.
    pub fn abandon(mut self) -> Option<Kept> {
        self.keeper.stop();
        self.ending().and_then(Result::ok)
    }

    /// Has what follows the hashed prefix without a gap hashed.
    fn advance(&mut self) {
        let before = self.prefix;
        self.prefix += self.arrived[before..].iter().take_while(|arrived| **arrived).count();
        if self.prefix > before {
            let until = self.description.bytes.min(self.prefix as u64 * PIECE_BYTES);
            self.keeper.order(Order::Hash { until });
        }
    }
}

/// Where the file goes, and whether it replaces one. If `out` is a folder, the sender's name is used and must not exist yet.
fn target(out: &Path, name: &OsStr) -> Result<(PathBuf, bool), Refusal> {
    if !out.is_dir() {
        return Ok((out.to_path_buf(), true));
    }
    if is_partial(name) {
        return Err(Refusal(format!("files named {} are those that are still arriving", name.display())));
    }
    let target = out.join(OsStr::from_bytes(name.as_bytes()));
    // It is asked again, without a gap, when the file gets its name.
    if target.symlink_metadata().is_ok() { Err(exists(&target)) } else { Ok((target, false)) }
}

fn exists(target: &Path) -> Refusal {
    Refusal(format!("{} exists already", target.file_name().unwrap_or_default().display()))
}

/// What the thread is told.
#[derive(Debug)]
enum Order {
    /// All bytes up to here are in the file.
    Hash { until: u64 },
    /// This is the sender's SHA-256.
    Sum(Sum),
}

/// The thread of a file, as its owner sees it. Dropping it stops the thread, which removes what has no name.
#[derive(Debug)]
struct Keeper {
    orders: Option<Sender<Order>>,
    endings: Receiver<Result<Kept, Refusal>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(work: Work) -> std::io::Result<Self> {
        let ((orders, orders_in), (endings_out, endings)) = (channel(), channel());
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let thread = std::thread::Builder::new().name("spray-file".into()).spawn(move || {
            if let Some(ending) = work.run(&orders_in, &flag) {
                // Nobody waits for it if the file was given up.
                let _ = endings_out.send(ending);
            }
        })?;
        Ok(Self { orders: Some(orders), endings, stopped, thread: Some(thread) })
    }

    fn order(&self, order: Order) {
        // A thread that has ended has told why.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    fn ending(&self) -> Option<Result<Kept, Refusal>> {
        match self.endings.try_recv() {
            Ok(ending) => Some(ending),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Refusal::new("the file's thread has ended"))),
        }
    }

    fn stop(&mut self) {
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

/// What the thread owns.
#[derive(Debug)]
struct Work {
    partial: Partial,
    target: PathBuf,
    replaces: bool,
    bytes: u64,
}

impl Work {
    /// Hashes as the file grows, and ends it when all of it and the sender's SHA-256 are there. `None` if the file was given up.
    fn run(self, orders: &Receiver<Order>, stopped: &AtomicBool) -> Option<Result<Kept, Refusal>> {
        let (mut hasher, mut hashed, mut theirs) = (Sha256::new(), 0, None);
        while hashed < self.bytes || theirs.is_none() {
            match orders.recv().ok()? {
                Order::Sum(sum) => theirs = Some(sum),
                Order::Hash { until } => match self.hash(&mut hasher, hashed, until, stopped) {
                    Ok(end) if end == until => hashed = end,
                    Ok(_) => return None,
                    Err(error) => return Some(Err(Refusal(format!("cannot read what was written: {error}")))),
                },
            }
        }
        let sum = hasher.finalize().into();
        (!stopped.load(Ordering::Relaxed)).then(|| self.finish(sum, theirs))
    }

    /// Hashes the bytes from `from` to `until`. Returns how far it came before it was stopped.
    fn hash(&self, hasher: &mut Sha256, from: u64, until: u64, stopped: &AtomicBool) -> std::io::Result<u64> {
        // Small enough that it stops at once, and that the core's cache holds it.
        const CHUNK: u64 = 256 << 10;
        let mut buffer = vec![0; CHUNK as usize];
        let mut at = from;
        while at < until && !stopped.load(Ordering::Relaxed) {
            let chunk = &mut buffer[..CHUNK.min(until - at) as usize];
            self.partial.file().read_exact_at(chunk, at)?;
            hasher.update(&*chunk);
            at += chunk.len() as u64;
        }
        Ok(at)
    }

    fn finish(self, sum: Sum, theirs: Option<Sum>) -> Result<Kept, Refusal> {
        if Some(sum) != theirs {
            return Err(Refusal(format!("what arrived has SHA-256 {}, not the sender's; it was removed", hex(&sum))));
        }
        match self.partial.give_name(&self.target, self.replaces) {
            Ok(()) => Ok(Kept { path: self.target, sum }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&self.target)),
            Err(error) => Err(Refusal(format!("cannot finish {}: {error}", self.target.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use spray_test_support::Folder;

    use super::super::format::encode_sum;
    use super::*;

    fn content() -> Vec<u8> {
        (0..PIECE_BYTES as u32 + 5_000).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    fn begin(content: &[u8], dir: &Folder, unique: u32) -> Result<Incoming, Refusal> {
        let description = Description { name: "x.bin".into(), bytes: content.len() as u64 };
        Incoming::begin(&description.encode(), dir.path(), unique)
    }

    fn sum(content: &[u8]) -> Vec<u8> {
        encode_sum(&Sha256::digest(content).into())
    }

    fn ending(incoming: &mut Incoming) -> Result<Kept, Refusal> {
        loop {
            match incoming.ending() {
                Some(ending) => return ending,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn messages_in_any_order_make_the_file() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [1, 3, 2]] {
            let (dir, content) = (Folder::new(), content());
            let mut incoming = begin(&content, &dir, 1).unwrap();
            let (first, second) = content.split_at(PIECE_BYTES as usize);
            let sum = sum(&content);
            for message in order {
                assert!(!incoming.is_whole());
                incoming.place(message, [first, second, &sum][message as usize - 1]).unwrap();
            }
            assert!(incoming.is_whole());
            let kept = ending(&mut incoming).unwrap();
            drop(incoming);
            assert_eq!(fs::read(kept.path).unwrap(), content);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn an_empty_file_is_whole_with_its_sum() {
        let dir = Folder::new();
        let mut incoming = begin(&[], &dir, 1).unwrap();
        assert!(!incoming.is_whole());
        incoming.place(1, &sum(&[])).unwrap();
        assert!(incoming.is_whole());
        assert_eq!(fs::read(ending(&mut incoming).unwrap().path).unwrap(), b"");
    }

    #[test]
    fn wrong_content_gets_no_name_and_leaves_nothing() {
        let (dir, mut content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir, 1).unwrap();
        incoming.place(3, &sum(&content)).unwrap();
        content[3] ^= 1;
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(1, first).unwrap();
        incoming.place(2, second).unwrap();
        assert!(ending(&mut incoming).unwrap_err().0.contains("not the sender's"));
        drop(incoming);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_two_files_of_one_name_one_is_kept_and_the_other_is_told_why() {
        let (dir, content) = (Folder::new(), content());
        let mut both = [1, 2].map(|unique| begin(&content, &dir, unique).unwrap());
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        for incoming in &mut both {
            incoming.place(1, first).unwrap();
            incoming.place(2, second).unwrap();
        }
        let outcomes = both.each_mut().map(|incoming| {
            incoming.place(3, &sum(&content)).unwrap();
            ending(incoming)
        });
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1], Err(Refusal("x.bin exists already".into())));
    }

    #[test]
    fn a_file_given_up_leaves_nothing() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir, 1).unwrap();
        incoming.place(1, &content[..PIECE_BYTES as usize]).unwrap();
        assert_eq!(incoming.abandon(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir, 1).unwrap();
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(1, first).unwrap();
        for (message, data) in [(0, first), (1, first), (2, &second[1..]), (4, second), (u32::MAX, second)] {
            assert!(incoming.place(message, data).is_err(), "{message}");
        }
        incoming.place(3, &sum(&content)).unwrap();
        assert!(incoming.place(3, &sum(&content)).is_err(), "twice");
        assert!(Incoming::begin(b"hello", dir.path(), 2).is_err());
        fs::write(dir.path().join("x.bin"), "mine").unwrap();
        assert!(begin(&content, &dir, 3).unwrap_err().0.contains("exists already"));
        let description = Description { name: ".spray-1-1.partial".into(), bytes: 1 };
        assert!(Incoming::begin(&description.encode(), dir.path(), 4).is_err(), "it would be removed as stale");
    }

    #[test]
    fn the_longest_name_works() {
        let dir = Folder::new();
        let description = Description { name: "n".repeat(255).into(), bytes: 0 };
        let mut incoming = Incoming::begin(&description.encode(), dir.path(), 1).unwrap();
        incoming.place(1, &sum(&[])).unwrap();
        assert!(ending(&mut incoming).is_ok());
    }
}
