//! An arriving file: written next to its final name, and renamed once it is verified and on disk.

use std::collections::BTreeSet;

use super::format::{Description, EntryKind, PIECE_BYTES, Sum, piece_bytes, pieces};
use super::out::{ONE_FILE, Out};
use super::partial::Partial;
use super::refusal::Refusal;
use super::timeouts::Awaited;
use super::writer::{Command, Completed, FileResult, HeldMessage, Writer};

#[derive(Debug)]
pub struct Incoming {
    pub description: Description,
    /// The number of pieces before the first missing one.
    prefix: u64,
    beyond: BTreeSet<u64>,
    pub arrived_bytes: u64,
    /// Known from the description, or at the end of a stream.
    bytes: Option<u64>,
    /// The index and length of a stream's last piece, if it is partial.
    short: Option<(u64, u64)>,
    has_sum: bool,
    writer: Writer,
}

impl Incoming {
    pub fn begin(description: Description, out: &Out, transfer: u32) -> Result<Self, Refusal> {
        let goal = out.goal(&description, transfer)?;
        goal.check()?;
        let unwritable = |error| Refusal(format!("cannot write in {}: {error}", out.folder.path.display()));
        let partial = match out.is_stdout() {
            true => out.unnamed().ok_or_else(|| Refusal::new(ONE_FILE))?,
            false => Partial::create(&out.folder, description.mode).map_err(unwritable)?,
        };
        let bytes = description.bytes();
        bytes.map_or(Ok(()), |bytes| partial.check_room(bytes))?;
        let writer = Writer::start(partial, goal, out.waker.clone())
            .map_err(|error| Refusal(format!("cannot start a thread for the file: {error}")))?;
        let (beyond, short, has_sum) = (BTreeSet::new(), None, false);
        Ok(Self { description, prefix: 0, beyond, arrived_bytes: 0, bytes, short, has_sum, writer })
    }

    pub fn place(&mut self, index: u64, piece: HeldMessage) -> Result<(), Refusal> {
        let length = piece.piece().len() as u64;
        let is_right = match self.bytes {
            Some(bytes) => length > 0 && length == piece_bytes(bytes, index),
            None => length == PIECE_BYTES || length > 0 && length < PIECE_BYTES && self.short.is_none(),
        };
        // More than the maximum window of a connection, 64 Ki packets.
        //= docs/specs/endpoint.md#END-21 1,024 pieces past the first that is missing
        const AHEAD: u64 = 1024;
        let is_missing = index >= self.prefix && index - self.prefix < AHEAD && !self.beyond.contains(&index);
        if !is_right || !is_missing || self.short.is_some_and(|(last, _)| index > last) {
            return Err(Refusal(format!("{length} bytes as piece {index} are no piece of the file")));
        }
        self.writer.command(Command::Write { index, piece });
        if length < PIECE_BYTES && self.bytes.is_none() {
            self.short = Some((index, length));
        }
        self.arrived_bytes += length;
        self.beyond.insert(index);
        self.advance();
        Ok(())
    }

    /// Takes the SHA-256 and the length, which is new for a stream only.
    pub fn take_sum(&mut self, bytes: u64, sum: Sum) -> Result<(), Refusal> {
        let last = self.beyond.last().map_or(self.prefix, |last| last + 1);
        let is_end = match (self.bytes, self.short) {
            (Some(known), _) => known == bytes,
            (None, Some((index, length))) => index.checked_mul(PIECE_BYTES).map(|whole| whole + length) == Some(bytes),
            (None, None) => last <= pieces(bytes),
        };
        if self.has_sum || !is_end || last > pieces(bytes) {
            return Err(Refusal::new("the file's end contradicts what came before"));
        }
        self.has_sum = true;
        self.bytes = Some(bytes);
        self.writer.command(Command::Sum { sum, bytes });
        Ok(())
    }

    pub fn is_whole(&self) -> bool {
        self.has_sum && Some(self.arrived_bytes) == self.bytes
    }

    pub fn awaited(&self) -> Option<Awaited> {
        let is_stream = self.description.kind == EntryKind::Stream;
        (!self.is_whole()).then_some(if is_stream { Awaited::Stream } else { Awaited::Bytes })
    }

    pub fn result(&self) -> Option<FileResult> {
        self.writer.result()
    }

    /// Stops the file unless it has just completed.
    pub fn abandon(&mut self) -> Option<Completed> {
        self.writer.stop();
        self.result()?.ok()
    }

    fn advance(&mut self) {
        let before = self.prefix;
        while self.beyond.remove(&self.prefix) {
            self.prefix += 1;
        }
        if self.prefix > before {
            let whole = self.prefix * PIECE_BYTES;
            let end = match (self.bytes, self.short) {
                (Some(bytes), _) => bytes,
                (None, Some((index, length))) => index * PIECE_BYTES + length,
                (None, None) => whole,
            };
            self.writer.command(Command::Hash { until: end.min(whole) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sha2::{Digest, Sha256};
    use spray_test_support::Folder;

    use super::super::format::Message;
    use super::super::out::ONE_TRANSFER;
    use super::*;

    fn content() -> Vec<u8> {
        (0..PIECE_BYTES as u32 + 5_000).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    fn out(dir: &Folder) -> Out {
        Out::new(dir.path(), true).unwrap()
    }

    fn describe(name: &str, kind: EntryKind) -> Description {
        Description { path: name.into(), kind, mode: 0o644 }
    }

    fn begin(content: &[u8], dir: &Folder) -> Result<Incoming, Refusal> {
        Incoming::begin(describe("x.bin", EntryKind::File { bytes: content.len() as u64 }), &out(dir), 0)
    }

    fn end(incoming: &mut Incoming, content: &[u8]) -> Result<(), Refusal> {
        incoming.take_sum(content.len() as u64, Sha256::digest(content).into())
    }

    fn piece(data: &[u8]) -> HeldMessage {
        let (return_to, _) = std::sync::mpsc::channel();
        HeldMessage::new(Message::Piece { number: 0, index: 0, data }.encode().into(), &return_to)
    }

    fn result(incoming: &mut Incoming) -> FileResult {
        loop {
            match incoming.result() {
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
    fn a_second_file_does_not_replace_the_only_one() {
        let (dir, contents) = (Folder::new(), [vec![1; 10], vec![2; 10]]);
        let target = dir.path().join("one");
        fs::write(&target, "older").unwrap();
        let out = Out::new(&target, false).unwrap();
        let begin =
            |transfer| Incoming::begin(describe("x.bin", EntryKind::File { bytes: 10 }), &out, transfer).unwrap();
        // The third is another file of the first transfer.
        let mut all = [begin(0), begin(1), begin(0)];
        for (incoming, content) in all.iter_mut().zip(contents.iter().cycle()) {
            incoming.place(0, piece(content)).unwrap();
        }
        let outcomes: Vec<_> = (0..3)
            .map(|place| {
                end(&mut all[place], &contents[place % 2]).unwrap();
                result(&mut all[place])
            })
            .collect();
        assert_eq!(outcomes[1], Err(Refusal::new(ONE_TRANSFER)));
        assert!(outcomes[2].as_ref().unwrap_err().0.contains("--out is one file"));
        assert_eq!(fs::read(&target).unwrap(), contents[0]);
    }

    /// For every order of its messages.
    #[test]
    fn the_end_of_a_stream_states_its_length() {
        let whole = PIECE_BYTES as usize;
        for (seed, bytes) in [0, 5, 80, whole, 2 * whole + 80].into_iter().enumerate().cycle().take(40) {
            let (dir, content) = (Folder::new(), vec![7; bytes]);
            let mut incoming = Incoming::begin(describe("x", EntryKind::Stream), &out(&dir), 0).unwrap();
            let pieces: Vec<&[u8]> = content.chunks(whole).collect();
            let mut order: Vec<usize> = (0..=pieces.len()).collect();
            let all = order.len();
            order.rotate_left(seed % all);
            order.swap(0, (seed / 2) % all);
            for at in order {
                assert!(!incoming.is_whole());
                match pieces.get(at) {
                    Some(data) => incoming.place(at as u64, piece(data)).unwrap(),
                    None => end(&mut incoming, &content).unwrap(),
                }
            }
            assert!(incoming.is_whole());
            assert_eq!(fs::read(result(&mut incoming).unwrap().path).unwrap(), content, "{bytes}");
        }
    }

    #[test]
    fn inconsistent_streams_are_refused() {
        const WHOLE: usize = PIECE_BYTES as usize;
        // The pieces, then the length.
        for (messages, bytes) in [
            (&[(0, WHOLE), (0, WHOLE)][..], 0),
            (&[(1, 5), (0, 5)], 0),
            (&[(0, 5), (1, WHOLE)], 0),
            (&[(1024, WHOLE)], 0),
            (&[(u64::MAX, WHOLE)], 0),
            (&[(0, 0)], 0),
            (&[(1, WHOLE)], WHOLE),
            (&[(0, 5)], 6),
            (&[(0, 5)], WHOLE),
            (&[(1, 5)], 5),
        ] {
            let dir = Folder::new();
            let mut incoming = Incoming::begin(describe("x", EntryKind::Stream), &out(&dir), 0).unwrap();
            let refused =
                messages.iter().any(|&(index, length)| incoming.place(index, piece(&vec![1; length])).is_err());
            assert!(refused || incoming.take_sum(bytes as u64, [0; 32]).is_err(), "{messages:?}");
        }
    }

    #[test]
    fn an_abandoned_file_is_removed() {
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
        assert!(incoming.take_sum(5, [0; 32]).is_err(), "another length");
        end(&mut incoming, &content).unwrap();
        assert!(end(&mut incoming, &content).is_err(), "twice");
        fs::write(dir.path().join("x.bin"), "mine").unwrap();
        assert!(begin(&content, &dir).unwrap_err().0.contains("exists already"));
        for path in [".spray-1-1.partial", "a/.spray-1-1.partial", ".spray-1-1.partial/a"] {
            let refused = Incoming::begin(describe(path, EntryKind::File { bytes: 1 }), &out(&dir), 0);
            assert!(refused.is_err(), "it would be removed as stale");
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-28 than the file system has room for
    fn files_larger_than_the_free_space_are_refused_first() {
        let dir = Folder::new();
        for bytes in [1 << 52, u64::MAX] {
            let refused = Incoming::begin(describe("x", EntryKind::File { bytes }), &out(&dir), 0).unwrap_err();
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
        let mut incoming = Incoming::begin(describe("x", EntryKind::File { bytes }), &out(&dir), 0).unwrap();
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
        let mut incoming = Incoming::begin(description, &out(&dir), 0).unwrap();
        end(&mut incoming, &[]).unwrap();
        assert!(result(&mut incoming).is_ok());
    }
}
