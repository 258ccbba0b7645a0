//! The thread that opens, reads and hashes files to send.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::format::{Description, EntryKind, HEADER, PIECE_BYTES, Sum, begin_piece, piece_bytes, pieces, shown};
use super::tree::Entry;
use crate::session::Wake;

const READ_AHEAD: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// The next entry, now open.
    Entry(u32, Description),
    /// The path of an entry that cannot be opened, and the reason.
    Failed(String, String),
    /// A file that could not be read to its end, and the reason.
    Broken(u32, String),
    /// There are no further entries; this is their number.
    End(u32),
    /// An encoded [`Message::Piece`](super::format::Message::Piece).
    Piece { number: u32, message: Bytes },
    /// Follows the last piece of a file.
    Sum { number: u32, sum: Sum },
}

pub enum Command {
    Open,
    Read(u32),
    Close(u32),
}

pub trait Read: io::Read + Seek + Send {}

impl<T: io::Read + Seek + Send> Read for T {}

pub type Source = Box<dyn Read>;

#[derive(Debug)]
pub struct Outgoing {
    commands: Sender<Command>,
    parts: Receiver<Item>,
    /// Dropped files that the thread has not closed yet.
    dropped: Arc<Mutex<HashSet<u32>>>,
}

impl Outgoing {
    /// Starts a thread that opens the entries on request, and wakes `waker` for each item.
    pub fn start(entries: Vec<Entry>, waker: Wake) -> io::Result<Self> {
        let opened = entries.into_iter().map(|entry| {
            let shown = shown(&entry.path);
            open(entry).map_err(|error| (shown, format!("cannot be read: {error}")))
        });
        Self::start_with(opened, waker)
    }

    pub fn start_with(
        entries: impl Iterator<Item = Result<(Description, Source), (String, String)>> + Send + 'static,
        waker: Wake,
    ) -> io::Result<Self> {
        let ((commands, commands_in), (parts_out, parts)) = (channel(), sync_channel(READ_AHEAD));
        let dropped = Arc::new(Mutex::default());
        let files = HashMap::new();
        let mut reader = Reader { entries, opened: 0, files, parts: parts_out, waker, dropped: Arc::clone(&dropped) };
        std::thread::Builder::new().name("spray-file".into()).spawn(move || reader.run(&commands_in))?;
        Ok(Self { commands, parts, dropped })
    }

    pub fn drop_file(&self, number: u32) {
        lock(&self.dropped).insert(number);
        self.command(Command::Close(number));
    }

    pub fn next(&self) -> Option<Item> {
        self.parts.try_recv().ok()
    }

    pub fn command(&self, command: Command) {
        // A thread that has ended has reported the reason.
        let _ = self.commands.send(command);
    }
}

fn lock(dropped: &Mutex<HashSet<u32>>) -> MutexGuard<'_, HashSet<u32>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry may have changed since it was listed.
fn open(entry: Entry) -> io::Result<(Description, Source)> {
    let Entry { path, kind, mode, source, named } = entry;
    let (kind, source): (_, Source) = match kind {
        EntryKind::Folder => (kind, Box::new(io::empty())),
        EntryKind::File { .. } => {
            let follows = if named { 0 } else { libc::O_NOFOLLOW };
            // Opening a pipe must not block.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | follows).open(source)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::other("it is no file any more"));
            }
            measure(file, metadata.len())?
        }
    };
    Ok((Description { path, kind, mode }, source))
}

/// Short files are read at once, as `/proc` and `/sys` state wrong lengths.
fn measure(mut file: File, stated: u64) -> io::Result<(EntryKind, Source)> {
    if stated > PIECE_BYTES {
        return Ok((EntryKind::File { bytes: stated }, Box::new(file)));
    }
    let mut content = Vec::with_capacity(stated as usize + 1);
    (&mut file).take(PIECE_BYTES + 1).read_to_end(&mut content)?;
    let bytes = content.len() as u64;
    if bytes <= PIECE_BYTES {
        return Ok((EntryKind::File { bytes }, Box::new(io::Cursor::new(content))));
    }
    let bytes = file.metadata()?.len();
    if bytes <= PIECE_BYTES {
        return Err(too_long(bytes));
    }
    file.rewind()?;
    Ok((EntryKind::File { bytes }, Box::new(file)))
}

struct Reader<I> {
    entries: I,
    opened: u32,
    files: HashMap<u32, (u64, Source)>,
    parts: SyncSender<Item>,
    waker: Wake,
    dropped: Arc<Mutex<HashSet<u32>>>,
}

impl<I: Iterator<Item = Result<(Description, Source), (String, String)>>> Reader<I> {
    fn run(&mut self, commands: &Receiver<Command>) {
        for command in commands {
            match command {
                Command::Open => self.open_next(),
                Command::Close(number) => {
                    self.files.remove(&number);
                    lock(&self.dropped).remove(&number);
                }
                Command::Read(number) => {
                    if let Err(error) = self.read(number) {
                        self.say(Item::Broken(number, format!("could not be read to its end: {error}")));
                    }
                }
            }
        }
    }

    fn open_next(&mut self) {
        loop {
            let part = match self.entries.next() {
                None => Item::End(self.opened),
                Some(Err((path, why))) => {
                    self.say(Item::Failed(path, why));
                    continue;
                }
                Some(Ok((description, source))) => {
                    let number = self.opened;
                    self.opened += 1;
                    if description.kind != EntryKind::Folder {
                        self.files.insert(number, (description.bytes(), source));
                    }
                    Item::Entry(number, description)
                }
            };
            self.say(part);
            return;
        }
    }

    fn read(&mut self, number: u32) -> io::Result<()> {
        let Some((bytes, mut source)) = self.files.remove(&number) else { return Ok(()) };
        let mut hasher = Sha256::new();
        for index in 0..pieces(bytes) {
            if lock(&self.dropped).contains(&number) {
                return Ok(());
            }
            let expected = piece_bytes(bytes, index);
            let mut message = begin_piece(number, index, expected);
            let length = (&mut source).take(expected).read_to_end(&mut message)? as u64;
            if length < expected {
                return Err(io::Error::other("it has become shorter"));
            }
            hasher.update(&message[HEADER..]);
            if !self.say(Item::Piece { number, message: message.into() }) {
                return Ok(());
            }
        }
        check_end(&mut source, bytes)?;
        self.say(Item::Sum { number, sum: hasher.finalize().into() });
        Ok(())
    }

    /// Returns whether the transfer still exists.
    fn say(&self, part: Item) -> bool {
        let is_heard = self.parts.send(part).is_ok();
        self.waker.wake();
        is_heard
    }
}

/// Fails if more bytes follow and yet the file has not grown: the stated length was too short.
fn check_end(source: &mut Source, bytes: u64) -> io::Result<()> {
    let more = source.take(1).read_to_end(&mut Vec::new())? > 0;
    let has_grown = |source: &mut Source| source.seek(SeekFrom::End(0)).is_ok_and(|length| length > bytes);
    if more && !has_grown(source) {
        return Err(too_long(bytes));
    }
    Ok(())
}

fn too_long(bytes: u64) -> io::Error {
    io::Error::other(format!("it is longer than the {bytes} bytes that its file system states"))
}

#[cfg(test)]
mod tests {
    use super::super::format::Message;
    use super::*;

    fn next(outgoing: &Outgoing) -> Item {
        loop {
            if let Some(part) = outgoing.next() {
                return part;
            }
            std::thread::yield_now();
        }
    }

    fn start(content: Vec<u8>, bytes: u64) -> Outgoing {
        let description = Description { path: "x".into(), kind: EntryKind::File { bytes }, mode: 0o644 };
        let source: Source = Box::new(io::Cursor::new(content));
        Outgoing::start_with(std::iter::once(Ok((description, source))), Wake::default()).unwrap()
    }

    /// The pieces of the only file, and its end.
    fn parts(content: Vec<u8>, bytes: u64) -> (Vec<Vec<u8>>, Item) {
        let outgoing = start(content, bytes);
        outgoing.command(Command::Open);
        assert!(matches!(next(&outgoing), Item::Entry(0, _)));
        outgoing.command(Command::Read(0));
        let mut pieces = Vec::new();
        loop {
            match next(&outgoing) {
                Item::Piece { number: 0, message } => {
                    let Some(Message::Piece { number: 0, index, data }) = Message::decode(&message) else {
                        panic!("a piece")
                    };
                    assert_eq!(index, pieces.len() as u64);
                    pieces.push(data.to_vec());
                }
                part => return (pieces, part),
            }
        }
    }

    #[test]
    fn pieces_are_sent_in_order_before_the_checksum() {
        let content: Vec<u8> = (0..9 * PIECE_BYTES + 3).map(|n| (n >> 8) as u8).collect();
        let bytes = content.len() as u64;
        let (pieces, end) = parts(content.clone(), bytes);
        assert_eq!(end, Item::Sum { number: 0, sum: Sha256::digest(&content).into() });
        assert_eq!(pieces.len(), 10);
        assert!(pieces.concat() == content);
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        let (_, end) = parts(vec![0; 5], 6);
        assert_eq!(end, Item::Broken(0, "could not be read to its end: it has become shorter".into()));
        let (pieces, end) = parts(vec![0; 9], 0);
        assert_eq!(end, Item::Sum { number: 0, sum: Sha256::digest([]).into() });
        assert!(pieces.is_empty());
    }

    #[test]
    fn a_length_that_is_too_short_is_an_error_unless_the_file_has_grown() {
        let mut grown: Source = Box::new(io::Cursor::new(vec![0; 9]));
        assert!(check_end(&mut grown, 5).is_ok());
        // Its file system reports no length.
        let mut file: Source = Box::new(File::open("/proc/version").unwrap());
        assert!(check_end(&mut file, 5).unwrap_err().to_string().contains("longer than the 5 bytes"));
    }

    /// Including those refused before they are read: their number may exceed the limit of open
    /// files.
    #[test]
    fn files_that_are_not_read_are_closed() {
        let content: Arc<[u8]> = vec![1; 3 * PIECE_BYTES as usize].into();
        let kind = EntryKind::File { bytes: content.len() as u64 };
        let entries: Vec<_> = (0..20)
            .map(|_| {
                let source: Source = Box::new(io::Cursor::new(Arc::clone(&content)));
                Ok((Description { path: "x".into(), kind, mode: 0o644 }, source))
            })
            .collect();
        let outgoing = Outgoing::start_with(entries.into_iter(), Wake::default()).unwrap();
        for number in 0..20 {
            outgoing.command(Command::Open);
            assert!(matches!(next(&outgoing), Item::Entry(opened, _) if opened == number));
        }
        // Files to be read are closed, too.
        (0..10).for_each(|number| outgoing.command(Command::Read(number)));
        (0..20).for_each(|number| outgoing.drop_file(number));
        outgoing.command(Command::Open);
        let mut read = 0;
        while !matches!(next(&outgoing), Item::End(20)) {
            read += 1;
        }
        assert!(read <= 2 * READ_AHEAD && Arc::strong_count(&content) == 1, "{read}");
        assert!(lock(&outgoing.dropped).is_empty());
    }

    #[test]
    fn unreadable_files_are_reported_and_have_no_number() {
        let folder = spray_test_support::Folder::new();
        let entry = |name: &str| Entry {
            path: name.into(),
            kind: EntryKind::File { bytes: 1 },
            mode: 0o644,
            source: folder.path().join(name),
            named: false,
        };
        std::fs::write(folder.path().join("there"), "four").unwrap();
        std::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
        let outgoing = Outgoing::start(["gone", "link", "there"].map(entry).into(), Wake::default()).unwrap();
        outgoing.command(Command::Open);
        for path in ["gone", "link"] {
            assert!(matches!(next(&outgoing), Item::Failed(failed, _) if failed == path));
        }
        let described = Description { path: "there".into(), kind: EntryKind::File { bytes: 4 }, mode: 0o644 };
        assert_eq!(next(&outgoing), Item::Entry(0, described));
        outgoing.command(Command::Open);
        assert_eq!(next(&outgoing), Item::End(1));
    }
}
