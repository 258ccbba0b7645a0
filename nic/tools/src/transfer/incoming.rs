//! An arriving file: written next to its final name, and renamed once it is verified and on disk.

use std::collections::BTreeSet;

use super::format::{Description, PIECE_BYTES, Refusal, Sum, piece_bytes};
use super::out::Out;
use super::partial::Partial;
use super::writer::{Command, Completed, HeldMessage, Writer};

#[derive(Debug)]
pub struct Incoming {
    pub description: Description,
    /// The number of pieces before the first missing one.
    prefix: u64,
    beyond: BTreeSet<u64>,
    pub arrived_bytes: u64,
    has_sum: bool,
    pub writer: Writer,
}

impl Incoming {
    pub fn begin(description: Description, out: &Out) -> Result<Self, Refusal> {
        let goal = out.goal(&description)?;
        let unwritable = |error| Refusal(format!("cannot write in {}: {error}", out.folder.path.display()));
        let partial = Partial::create(&out.folder, description.mode).map_err(unwritable)?;
        partial.check_room(description.bytes())?;
        let writer = Writer::start(partial, goal, description.bytes(), out.waker.clone())
            .map_err(|error| Refusal(format!("cannot start a thread for the file: {error}")))?;
        Ok(Self { description, prefix: 0, beyond: BTreeSet::new(), arrived_bytes: 0, has_sum: false, writer })
    }

    pub fn place(&mut self, index: u64, piece: HeldMessage) -> Result<(), Refusal> {
        let length = piece.piece().len() as u64;
        let is_right = length > 0 && length == piece_bytes(self.description.bytes(), index);
        // More than the maximum window of a connection, 64 Ki packets.
        //= docs/specs/endpoint.md#END-21 1,024 pieces past the first that is missing
        const AHEAD: u64 = 1024;
        let is_missing = index >= self.prefix && index - self.prefix < AHEAD && !self.beyond.contains(&index);
        if !is_right || !is_missing {
            return Err(Refusal(format!("{length} bytes as piece {index} are no piece of the file")));
        }
        self.writer.command(Command::Write { index, piece });
        self.arrived_bytes += length;
        self.beyond.insert(index);
        self.advance();
        Ok(())
    }

    pub fn take_sum(&mut self, sum: Sum) -> Result<(), Refusal> {
        if std::mem::replace(&mut self.has_sum, true) {
            return Err(Refusal("the file's SHA-256 came twice".into()));
        }
        self.writer.command(Command::Sum(sum));
        Ok(())
    }

    pub fn is_whole(&self) -> bool {
        self.has_sum && self.arrived_bytes == self.description.bytes()
    }

    /// Stops the file unless it has just completed.
    pub fn abandon(&mut self) -> Option<Completed> {
        self.writer.stop();
        self.writer.result()?.ok()
    }

    fn advance(&mut self) {
        let before = self.prefix;
        while self.beyond.remove(&self.prefix) {
            self.prefix += 1;
        }
        if self.prefix > before {
            let until = self.description.bytes().min(self.prefix * PIECE_BYTES);
            self.writer.command(Command::Hash { until });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sha2::{Digest, Sha256};
    use spray_test_support::Folder;

    use super::super::format::{EntryKind, Message};
    use super::super::writer::FileResult;
    use super::*;

    fn content() -> Vec<u8> {
        (0..PIECE_BYTES as u32 + 5_000).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    fn out(dir: &Folder) -> Out {
        Out::new(dir.path()).unwrap()
    }

    fn describe(name: &str, kind: EntryKind) -> Description {
        Description { path: name.into(), kind, mode: 0o644 }
    }

    fn begin(content: &[u8], dir: &Folder) -> Result<Incoming, Refusal> {
        Incoming::begin(describe("x.bin", EntryKind::File { bytes: content.len() as u64 }), &out(dir))
    }

    /// While the disk is slow, pieces must not stay in memory until the thread of the folder drops the file.
    #[test]
    fn a_cancelled_file_frees_its_waiting_pieces_before_it_is_dropped() {
        use std::os::unix::fs::MetadataExt;
        let (dir, bytes) = (Folder::new(), 1 << 30);
        let mut incoming = Incoming::begin(describe("x.bin", EntryKind::File { bytes }), &out(&dir)).unwrap();
        let file = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        fs::File::options().write(true).open(&file).unwrap().set_len(bytes).unwrap();
        // Takes a second in place of a slow write.
        incoming.writer.command(Command::Hash { until: bytes });
        let (return_to, returned) = std::sync::mpsc::channel();
        let message = vec![7; super::super::format::HEADER + PIECE_BYTES as usize];
        incoming.place(1, HeldMessage::new(message.into(), &return_to)).unwrap();
        incoming.writer.cancel();
        assert!(returned.recv_timeout(std::time::Duration::from_secs(60)).is_ok());
        assert!(fs::metadata(&file).map_or(0, |metadata| metadata.blocks()) == 0, "it was written");
    }

    fn end(incoming: &mut Incoming, content: &[u8]) -> Result<(), Refusal> {
        incoming.take_sum(Sha256::digest(content).into())
    }

    fn piece(data: &[u8]) -> HeldMessage {
        let (return_to, _) = std::sync::mpsc::channel();
        HeldMessage::new(Message::Piece { number: 0, index: 0, data }.encode().into(), &return_to)
    }

    fn result(incoming: &mut Incoming) -> FileResult {
        loop {
            match incoming.writer.result() {
                Some(result) => return result,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn a_file_is_complete_after_messages_in_any_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            let (dir, content) = (Folder::new(), content());
            let mut incoming = begin(&content, &dir).unwrap();
            let (first, second) = content.split_at(PIECE_BYTES as usize);
            for message in order {
                assert!(!incoming.is_whole());
                match message {
                    2 => end(&mut incoming, &content).unwrap(),
                    number => incoming.place(number, piece([first, second][number as usize])).unwrap(),
                }
            }
            assert!(incoming.is_whole());
            let kept = result(&mut incoming).unwrap();
            drop(incoming);
            assert_eq!(fs::read(kept.path).unwrap(), content);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn an_empty_file_is_complete_with_its_checksum() {
        let dir = Folder::new();
        let mut incoming = begin(&[], &dir).unwrap();
        assert!(!incoming.is_whole());
        end(&mut incoming, &[]).unwrap();
        assert!(incoming.is_whole());
        assert_eq!(fs::read(result(&mut incoming).unwrap().path).unwrap(), b"");
    }

    #[test]
    fn a_wrong_checksum_leaves_no_file() {
        let (dir, mut content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir).unwrap();
        end(&mut incoming, &content).unwrap();
        content[3] ^= 1;
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(0, piece(first)).unwrap();
        incoming.place(1, piece(second)).unwrap();
        assert!(result(&mut incoming).unwrap_err().0.contains("not the sender's"));
        drop(incoming);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_two_files_with_one_name_one_is_kept() {
        let (dir, content) = (Folder::new(), content());
        let mut both = [(); 2].map(|()| begin(&content, &dir).unwrap());
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        for incoming in &mut both {
            incoming.place(0, piece(first)).unwrap();
            incoming.place(1, piece(second)).unwrap();
        }
        let outcomes = both.each_mut().map(|incoming| {
            end(incoming, &content).unwrap();
            result(incoming)
        });
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1], Err(Refusal("x.bin exists already".into())));
    }

    #[test]
    fn a_file_given_up_leaves_nothing() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir).unwrap();
        incoming.place(0, piece(&content[..PIECE_BYTES as usize])).unwrap();
        assert_eq!(incoming.abandon(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn inconsistent_messages_are_refused() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = begin(&content, &dir).unwrap();
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(0, piece(first)).unwrap();
        for (index, data) in [(0, first), (1, &second[1..]), (1, &[]), (3, second), (u64::MAX, second)] {
            assert!(incoming.place(index, piece(data)).is_err(), "{index}");
        }
        end(&mut incoming, &content).unwrap();
        assert!(end(&mut incoming, &content).is_err(), "twice");
        fs::write(dir.path().join("x.bin"), "mine").unwrap();
        assert!(begin(&content, &dir).unwrap_err().0.contains("exists already"));
        for path in [".spray-1-1.partial", "a/.spray-1-1.partial", ".spray-1-1.partial/a"] {
            let refused = Incoming::begin(describe(path, EntryKind::File { bytes: 1 }), &out(&dir));
            assert!(refused.is_err(), "it would be removed as stale");
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-28 than the file system has room for
    fn files_larger_than_the_free_space_are_refused_first() {
        let dir = Folder::new();
        for bytes in [1 << 52, u64::MAX] {
            let refused = Incoming::begin(describe("x", EntryKind::File { bytes }), &out(&dir)).unwrap_err();
            assert!(refused.0.contains(&format!("{bytes} bytes")) && refused.0.contains("has room for"), "{refused:?}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    /// The farthest piece that is accepted makes the file long, without using memory or disk for
    /// gaps.
    #[test]
    //= docs/specs/endpoint.md#END-28 depends on what has arrived of it
    fn missing_data_uses_no_disk_space() {
        use std::os::unix::fs::MetadataExt;
        let (dir, whole) = (Folder::new(), vec![7; PIECE_BYTES as usize]);
        let bytes = 2048 * PIECE_BYTES;
        let mut incoming = Incoming::begin(describe("x", EntryKind::File { bytes }), &out(&dir)).unwrap();
        incoming.place(1023, piece(&whole)).unwrap();
        assert!(incoming.place(1024, piece(&whole)).is_err());
        assert_eq!(incoming.beyond.len(), 1);
        let partial = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap();
        let written = || partial.metadata().ok().filter(|metadata| metadata.len() == 1024 * PIECE_BYTES);
        let metadata = std::iter::repeat_with(written).flatten().next().unwrap();
        assert!(metadata.blocks() * 512 <= 2 * PIECE_BYTES, "{metadata:?}");
    }

    #[test]
    fn the_longest_name_works() {
        let dir = Folder::new();
        let description = describe(&"n".repeat(255), EntryKind::File { bytes: 0 });
        let mut incoming = Incoming::begin(description, &out(&dir)).unwrap();
        end(&mut incoming, &[]).unwrap();
        assert!(result(&mut incoming).is_ok());
    }
}
