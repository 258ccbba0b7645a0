//! What arrives by one connection: entries by their numbers, from the first message to the last verdict. No connection is known here:
//! messages go in, answers come out.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bytes::Bytes;

use super::format::{Answer, Description, Said, WINDOW};
use super::incoming::Incoming;
use super::keeper::{Kept, Lent, News};
use super::opener::{Begun, Job, Opener};
use super::patience::Awaited;
use super::refusal::Refusal;
use crate::progress::now;

/// One transfer.
#[derive(Debug)]
pub struct Arrivals {
    /// This transfer's own, among those of the process.
    transfer: u32,
    /// The first entry that is not begun.
    next: u32,
    /// Entries that came before an earlier one.
    early: BTreeMap<u32, Description>,
    /// Entries that the opener has to begin, each with what has come of it already, and where it says that they are.
    beginning: BTreeMap<u32, Vec<Lent>>,
    opener: Sender<Job>,
    answer: Sender<Begun>,
    begun: Receiver<Begun>,
    files: BTreeMap<u32, Incoming>,
    /// How many entries there are, once the sender has said it.
    entries: Option<u32>,
    /// The connection is gone.
    left: bool,
    /// Something was given up.
    broken: bool,
    /// Where messages come back that the files' threads have finished with, and how many are still out.
    owner: Sender<Bytes>,
    back: Receiver<Bytes>,
    lent: usize,
    pub tally: Tally,
}

/// What became of the entries.
#[derive(Clone, Debug)]
pub struct Tally {
    pub started: Instant,
    pub files: u32,
    pub folders: u32,
    pub refused: u32,
    /// Bytes that arrived of files that were kept.
    pub bytes: u64,
    /// Bytes of these that were there before.
    pub there_bytes: u64,
    /// The last file that was kept.
    pub last: Option<Kept>,
}

impl Tally {
    /// Entries that are there.
    pub fn kept(&self) -> u32 {
        self.files + self.folders
    }
}

impl Arrivals {
    pub fn new(transfer: u32, opener: &Opener) -> Self {
        let tally = Tally { started: now(), files: 0, folders: 0, refused: 0, bytes: 0, there_bytes: 0, last: None };
        let (early, files) = (BTreeMap::new(), BTreeMap::new());
        let ((owner, back), (answer, begun)) = (channel(), channel());
        let (beginning, opener) = (BTreeMap::new(), opener.jobs());
        let (next, entries, left, broken, lent) = (0, None, false, false, 0);
        Self {
            transfer,
            next,
            early,
            beginning,
            opener,
            answer,
            begun,
            files,
            entries,
            left,
            broken,
            owner,
            back,
            lent,
            tally,
        }
    }

    pub fn transfer(&self) -> u32 {
        self.transfer
    }

    /// Takes a message, which [`Self::finished`] returns later. What is to be answered at once is added to `answers`.
    ///
    /// # Errors
    /// When it is none of ours or breaks the rules, which ends the transfer. What one entry is refused for is answered.
    pub fn on_message(&mut self, message: Bytes, answers: &mut Vec<Answer>) -> Result<(), Refusal> {
        self.lent += 1;
        let message = Lent::new(message, &self.owner);
        let said = Said::decode(message.message()).ok_or_else(|| {
            Refusal::new(
                "a message was not understood, or describes no harmless file; does it run the same version of spray?",
            )
        })?;
        let number = match said {
            Said::Entry(number, description) => return self.on_entry(number, description),
            Said::End(entries) if self.entries.is_none() => {
                self.entries = Some(entries);
                return Ok(());
            }
            Said::End(_) => return Err(Refusal::new("it ended twice")),
            Said::Piece { number, .. } | Said::Sum { number, .. } | Said::Again(number) => number,
        };
        if number >= self.next {
            return Err(Refusal::new("a file came before its description"));
        }
        self.take(number, message, answers);
        Ok(())
    }

    /// Takes a message about a file, which waits until that has begun. What was under way when the file was refused is dropped.
    fn take(&mut self, number: u32, message: Lent, answers: &mut Vec<Answer>) {
        if let Some(early) = self.beginning.get_mut(&number) {
            return early.push(message);
        }
        let Some(file) = self.files.get_mut(&number) else { return };
        let taken = match Said::decode(message.message()) {
            Some(Said::Piece { index, data, .. }) => {
                let bytes = data.len();
                file.place(index, message.with_piece(bytes))
            }
            Some(Said::Sum { bytes, sum, .. }) => file.take_sum(bytes, sum),
            Some(Said::Again(_)) => {
                let description = file.description.clone();
                self.forget(number);
                self.begin(number, description, true);
                Ok(())
            }
            Some(Said::Entry(..) | Said::End(_)) | None => Ok(()),
        };
        if let Err(refusal) = taken {
            self.forget(number);
            self.refuse(number, refusal, answers);
        }
    }

    /// Gives a file up, of which nothing is left for a later transfer.
    fn forget(&mut self, number: u32) {
        if let Some(file) = self.files.remove(&number) {
            file.discard();
            self.give_up([file]);
        }
    }

    /// Gives files up, as their connection is gone. That waits for their threads, and so the opener does it.
    pub fn give_up(&self, files: impl IntoIterator<Item = Incoming>) {
        // If there is no opener, the file that comes back is dropped here.
        files.into_iter().for_each(|file| drop(self.opener.send(Job::GiveUp(file))));
    }

    /// Takes what the opener and the files' threads say: that an entry is begun, what is there of a file, that it has got its name, or that
    /// it will not get it.
    pub fn poll(&mut self, answers: &mut Vec<Answer>) {
        while let Ok((number, begun)) = self.begun.try_recv() {
            match (begun, self.beginning.remove(&number)) {
                (Ok(Some(file)), Some(early)) => {
                    self.files.insert(number, file);
                    early.into_iter().for_each(|message| self.take(number, message, answers));
                }
                (Ok(Some(file)), None) => self.give_up([file]),
                (Ok(None), Some(_)) => {
                    self.tally.folders += 1;
                    answers.push(Answer::Made { number });
                }
                (Err(refusal), Some(_)) => self.refuse(number, refusal, answers),
                (_, None) => {}
            }
        }
        if self.left {
            let lost = self.lose();
            self.give_up(lost);
        }
        let news = self.files.iter().filter_map(|(&number, file)| Some((number, file.news()?)));
        for (number, news) in news.collect::<Vec<_>>() {
            match news {
                News::Ready { bytes, sum } => {
                    self.files.get_mut(&number).into_iter().for_each(|file| file.is_ready = true);
                    answers.push(Answer::Ready { number, bytes, sum });
                }
                News::End(ending) => {
                    let Some(file) = self.files.remove(&number) else { continue };
                    match ending {
                        Ok(kept) => {
                            answers.push(Answer::Verified { number, sum: kept.sum });
                            self.keep(kept, file.arrived_bytes, file.there_bytes);
                        }
                        Err(refusal) => self.refuse(number, refusal, answers),
                    }
                }
            }
        }
    }

    /// The next message that nothing needs any more; each comes back once.
    pub fn finished(&mut self) -> Option<Bytes> {
        let message = self.back.try_recv().ok()?;
        self.lent -= 1;
        Some(message)
    }

    /// Whether every entry has its verdict.
    pub fn is_complete(&self) -> bool {
        let is_all = self.entries.is_some_and(|entries| self.next >= entries) && self.early.is_empty();
        is_all && !self.is_busy() && !self.broken
    }

    /// The connection is gone: what is not whole is given up, and the rest is finished without it. Returns what was given up; what has
    /// not begun yet is judged when it has.
    pub fn leave(&mut self) -> Vec<Incoming> {
        self.left = true;
        self.broken |= !self.early.is_empty();
        self.early.clear();
        self.lose()
    }

    /// Takes out the files that are not whole.
    fn lose(&mut self) -> Vec<Incoming> {
        let (whole, lost): (_, BTreeMap<u32, Incoming>) =
            std::mem::take(&mut self.files).into_iter().partition(|(_, file)| file.is_whole());
        self.files = whole;
        self.broken |= !lost.is_empty();
        lost.into_values().collect()
    }

    /// Gives up everything that does not get its name at this moment, and returns it.
    pub fn abandon(&mut self) -> Vec<Incoming> {
        let mut lost = self.leave();
        self.broken |= !self.beginning.is_empty();
        self.beginning.clear();
        for mut file in std::mem::take(&mut self.files).into_values() {
            match file.abandon() {
                Some(kept) => self.keep(kept, file.arrived_bytes, file.there_bytes),
                None => lost.push(file),
            }
        }
        self.broken |= !lost.is_empty();
        lost
    }

    /// Gives up everything, and leaves nothing for a later transfer.
    pub fn discard(&mut self) {
        self.broken = true;
        self.beginning.clear();
        let files = std::mem::take(&mut self.files);
        files.values().for_each(Incoming::discard);
        self.give_up(files.into_values());
    }

    /// Whether files are still on their way, or to the disk.
    pub fn is_busy(&self) -> bool {
        !self.files.is_empty() || !self.beginning.is_empty()
    }

    /// What the sender is waited for; `None` while this side has something to do.
    pub fn awaited(&self) -> Option<Awaited> {
        if self.is_complete() || self.lent > 0 || !self.beginning.is_empty() {
            return None;
        }
        let add = |one: Awaited, other: Awaited| Awaited {
            compared_bytes: one.compared_bytes.saturating_add(other.compared_bytes),
            is_stream: one.is_stream || other.is_stream,
        };
        self.files.values().map(Incoming::awaited).try_fold(Awaited::default(), |all, file| Some(add(all, file?)))
    }

    /// The files that are on their way.
    pub fn arriving(&self) -> impl Iterator<Item = &Incoming> {
        self.files.values()
    }

    /// Takes an entry; those that earlier ones must come before wait for them. So a folder is made before what lies in it.
    //= docs/specs/endpoint.md#END-21 in the order of their numbers
    fn on_entry(&mut self, number: u32, description: Description) -> Result<(), Refusal> {
        //= docs/specs/endpoint.md#END-21 At most 16 entries
        let is_new = number >= self.next && !self.early.contains_key(&number);
        let described = self.early.len() + self.beginning.len() + self.files.len();
        if !is_new || number - self.next >= WINDOW as u32 || described >= WINDOW {
            return Err(Refusal::new("too much was described at once, or something twice"));
        }
        self.early.insert(number, description);
        while let Some(description) = self.early.remove(&self.next) {
            self.begin(self.next, description, false);
            self.next += 1;
        }
        Ok(())
    }

    /// Has the opener begin an entry.
    fn begin(&mut self, number: u32, description: Description, anew: bool) {
        self.beginning.insert(number, Vec::new());
        let (transfer, answer) = (self.transfer, self.answer.clone());
        if self.opener.send(Job::Begin { transfer, number, description, anew, answer }).is_err() {
            let _ = self.answer.send((number, Err(Refusal::new("the receiver's thread for its folder has ended"))));
        }
    }

    fn keep(&mut self, kept: Kept, arrived: u64, there: u64) {
        self.tally.files += 1;
        self.tally.bytes += arrived;
        self.tally.there_bytes += there;
        self.tally.last = Some(kept);
    }

    fn refuse(&mut self, number: u32, Refusal(reason): Refusal, answers: &mut Vec<Answer>) {
        self.tally.refused += 1;
        answers.push(Answer::Refused { number, reason });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use sha2::{Digest, Sha256};
    use spray_test_support::Folder;

    use super::super::format::EntryKind;
    use super::super::out::Out;
    use super::*;

    fn file(path: &str, bytes: u64) -> Description {
        Description { path: path.into(), kind: EntryKind::File { bytes }, mode: 0o644 }
    }

    fn folder(path: &str) -> Description {
        Description { path: path.into(), kind: EntryKind::Folder, mode: 0o755 }
    }

    /// A opener for what goes into a folder.
    fn opener(dir: &Folder, keep: bool) -> Opener {
        Opener::start(Out::new(dir.path(), keep).unwrap()).unwrap()
    }

    /// Says these things, each when the entries before are begun, and waits until every file has ended.
    fn run(arrivals: &mut Arrivals, messages: &[Said<'_>]) -> Result<Vec<Answer>, Refusal> {
        let mut answers = Vec::new();
        for message in messages {
            arrivals.on_message(message.encode().into(), &mut answers)?;
            while !arrivals.beginning.is_empty() {
                arrivals.poll(&mut answers);
                std::thread::yield_now();
            }
        }
        while arrivals.arriving().any(Incoming::is_whole) {
            arrivals.poll(&mut answers);
            std::thread::yield_now();
        }
        Ok(answers)
    }

    #[test]
    //= docs/specs/endpoint.md#END-21 in the order of their numbers
    fn entries_are_taken_in_the_order_of_their_numbers() {
        let dir = Folder::new();
        let opener = opener(&dir, false);
        let mut arrivals = Arrivals::new(0, &opener);
        let sum = Sha256::digest(b"").into();
        let said = [
            Said::End(3),
            Said::Entry(1, folder("a/b")),
            Said::Entry(2, file("a/b/empty", 0)),
            Said::Entry(0, Description { mode: 0o711, ..folder("a") }),
            Said::Sum { number: 2, bytes: 0, sum },
        ];
        assert!(run(&mut arrivals, &said[..3]).unwrap().is_empty(), "the first is missing");
        assert!(!arrivals.is_complete());
        let answers = run(&mut arrivals, &said[3..]).unwrap();
        assert_eq!(answers[..2], [Answer::Made { number: 0 }, Answer::Made { number: 1 }]);
        assert_eq!(answers.last(), Some(&Answer::Verified { number: 2, sum }));
        assert!(arrivals.is_complete() && dir.path().join("a/b/empty").is_file());
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o777, 0o711);
    }

    /// An entry is begun by another thread, and answered when it has done so.
    #[test]
    //= docs/specs/endpoint.md#END-28 begins files and makes folders
    fn nothing_is_asked_of_the_disk_while_a_message_is_taken() {
        let dir = Folder::new();
        let (jobs, todo) = channel();
        let opener = opener(&dir, true);
        let mut arrivals = Arrivals { opener: jobs, ..Arrivals::new(0, &opener) };
        let mut answers = Vec::new();
        for entry in [Said::Entry(0, folder("a/b/c")), Said::Entry(1, file("a/x", 5))] {
            arrivals.on_message(entry.encode().into(), &mut answers).unwrap();
            arrivals.poll(&mut answers);
        }
        let kinds = todo.try_iter().map(|job| matches!(job, Job::Begin { number: 0 | 1, anew: false, .. }));
        assert_eq!((kinds.collect::<Vec<_>>(), answers.len()), (vec![true; 2], 0));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(arrivals.is_busy() && arrivals.awaited().is_none());
    }

    #[test]
    fn what_was_said_whole_is_kept_though_its_sender_left_before_it_was_begun() {
        for is_whole in [true, false] {
            let (dir, (jobs, todo)) = (Folder::new(), channel());
            let opener = opener(&dir, true);
            let mut arrivals = Arrivals { opener: jobs, ..Arrivals::new(0, &opener) };
            let (mut answers, sum) = (Vec::new(), Sha256::digest(b"five!").into());
            let said = [
                Said::Entry(0, file("x", 5)),
                Said::End(1),
                Said::Piece { number: 0, index: 0, data: b"five!" },
                Said::Sum { number: 0, bytes: 5, sum },
            ];
            for message in &said[..if is_whole { 4 } else { 3 }] {
                arrivals.on_message(message.encode().into(), &mut answers).unwrap();
            }
            assert!(arrivals.leave().is_empty() && arrivals.is_busy() && !arrivals.is_complete());
            todo.try_iter().for_each(|job| opener.jobs().send(job).unwrap());
            arrivals.opener = opener.jobs();
            while arrivals.is_busy() {
                arrivals.poll(&mut answers);
                std::thread::yield_now();
            }
            assert_eq!(arrivals.is_complete(), is_whole);
            drop((arrivals, opener));
            assert_eq!(
                (dir.path().join("x").exists(), fs::read_dir(dir.path()).unwrap().count()),
                (is_whole, is_whole.into())
            );
        }
    }

    #[test]
    fn one_entry_is_refused_and_the_others_are_taken() {
        let (dir, outside) = (Folder::new(), Folder::new());
        fs::write(dir.path().join("there"), "mine").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let opener = opener(&dir, false);
        let mut arrivals = Arrivals::new(0, &opener);
        let sum = Sha256::digest(b"").into();
        let said = [
            Said::Entry(0, file("there", 5)),
            Said::Entry(1, file("link/x", 0)),
            Said::Entry(2, folder("there/x")),
            Said::Entry(3, file("good", 0)),
            // It was refused in the meantime.
            Said::Sum { number: 1, bytes: 0, sum },
            Said::Sum { number: 3, bytes: 0, sum },
            Said::End(4),
        ];
        let answers = run(&mut arrivals, &said).unwrap();
        let refused = answers.iter().filter(|answer| matches!(answer, Answer::Refused { .. })).count();
        assert_eq!((refused, arrivals.tally.refused, arrivals.tally.kept()), (3, 3, 1), "{answers:?}");
        assert!(arrivals.is_complete());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"mine");
    }

    #[test]
    //= docs/specs/endpoint.md#END-21 At most 16 entries
    fn who_describes_too_much_at_once_is_refused() {
        let dir = Folder::new();
        let opener = opener(&dir, true);
        let many =
            |from: u32| (0..=WINDOW as u32).map(move |number| Said::Entry(from + number, file(&number.to_string(), 5)));
        for from in [0, 1, WINDOW as u32, u32::MAX - WINDOW as u32] {
            let said: Vec<_> = many(from).collect();
            assert!(run(&mut Arrivals::new(0, &opener), &said).is_err(), "{from}");
        }
        for twice in [[Said::End(1), Said::End(1)], [0, 0].map(|number| Said::Entry(number, folder("a")))] {
            assert!(run(&mut Arrivals::new(0, &opener), &twice).is_err());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the folder `a` only");
    }

    /// They get their names like any other: nothing is replaced, no link is followed, and nothing runs as somebody else.
    #[test]
    //= docs/specs/endpoint.md#END-22 No symbolic link on the way is followed
    fn names_that_programs_look_for_are_like_any_other() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (dir, outside) = (Folder::new(), Folder::new());
        fs::write(outside.path().join("bashrc"), "theirs").unwrap();
        fs::write(dir.path().join(".profile"), "mine").unwrap();
        for (to, link) in [("bashrc", ".bashrc"), ("missing", ".login"), ("", ".ssh")] {
            symlink(outside.path().join(to), dir.path().join(link)).unwrap();
        }
        let opener = opener(&dir, false);
        let mut arrivals = Arrivals::new(0, &opener);
        let sum = Sha256::digest(b"").into();
        let names = [".profile", ".bashrc", ".login", ".ssh/authorized_keys", ".zshrc", "tool"];
        let described = names.iter().zip(0..).map(|(name, number)| {
            let length = if *name == ".bashrc" { 6 } else { 0 };
            Said::Entry(number, Description { mode: 0o7777, ..file(name, length) })
        });
        let sums = (0..6).map(|number| Said::Sum { number, bytes: 0, sum });
        let answers = run(&mut arrivals, &described.chain(sums).collect::<Vec<_>>()).unwrap();
        let refused = answers.iter().filter_map(|answer| match answer {
            Answer::Refused { number, .. } => Some(*number),
            _ => None,
        });
        assert_eq!(refused.collect::<Vec<_>>(), [0, 1, 2, 3], "{answers:?}");
        assert_eq!(fs::read(dir.path().join(".profile")).unwrap(), b"mine");
        assert_eq!(fs::read(outside.path().join("bashrc")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        for name in [".zshrc", "tool"] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7000, 0, "{name}: {mode:o}");
        }
    }

    fn said() -> impl Strategy<Value = Vec<u8>> {
        let path = proptest::collection::vec(prop_oneof!["a", "b", "link", "\\.\\.", "", "x\u{7}"], 1..4);
        let kind = prop_oneof![
            (0..3 * super::super::format::PIECE_BYTES).prop_map(|bytes| EntryKind::File { bytes }),
            any::<u64>().prop_map(|bytes| EntryKind::File { bytes }),
            Just(EntryKind::Stream),
            Just(EntryKind::Folder),
        ];
        let number = prop_oneof![0u32..4, any::<u32>()];
        let index = prop_oneof![0u64..3, any::<u64>()];
        prop_oneof![
            (number.clone(), path, kind, any::<u16>()).prop_map(|(number, path, kind, mode)| {
                Said::Entry(number, Description { path: path.join("/").into(), kind, mode }).encode()
            }),
            (number.clone(), index, proptest::collection::vec(any::<u8>(), 0..9))
                .prop_map(|(number, index, data)| Said::Piece { number, index, data: &data }.encode()),
            (number.clone(), any::<u8>(), any::<[u8; 32]>()).prop_map(|(number, bytes, sum)| Said::Sum {
                number,
                bytes: bytes.into(),
                sum
            }
            .encode()),
            number.prop_map(|number| Said::End(number).encode()),
            prop_oneof![0u32..4, any::<u32>()].prop_map(|number| Said::Again(number).encode()),
            proptest::collection::vec(any::<u8>(), 0..40),
        ]
    }

    proptest! {
        /// Whatever is said: nothing is written outside of the folder, what is there stays, and nothing unfinished is left.
        #[test]
        fn no_conversation_leaves_the_folder(messages in proptest::collection::vec(said(), 1..30)) {
            let (dir, outside) = (Folder::new(), Folder::new());
            fs::write(dir.path().join("a"), "mine").unwrap();
            std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
            let opener = opener(&dir, true);
            let (mut arrivals, mut answers) = (Arrivals::new(0, &opener), Vec::new());
            for (at, message) in messages.iter().enumerate() {
                let _ = arrivals.on_message(message.clone().into(), &mut answers);
                prop_assert!(arrivals.files.len() + arrivals.beginning.len() + arrivals.early.len() <= WINDOW);
                while at % 2 == 0 && !arrivals.beginning.is_empty() {
                    arrivals.poll(&mut answers);
                }
            }
            drop(arrivals.abandon());
            prop_assert!(!arrivals.is_busy());
            // What the opener still had to do is done when it has ended.
            let Arrivals { back, lent, opener: jobs, begun, .. } = arrivals;
            drop(jobs);
            drop(opener);
            drop(begun);
            let mut returned: Vec<_> = back.try_iter().map(Vec::from).collect();
            returned.sort_unstable();
            let mut messages = messages;
            messages.sort_unstable();
            prop_assert!(returned == messages && lent == messages.len(), "each message comes back once");
            prop_assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
            prop_assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"mine");
            let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let allowed = ["a", "b", "link"].map(std::ffi::OsString::from);
            for name in left {
                prop_assert!(allowed.contains(&name), "{name:?}");
            }
        }
    }
}
