//! What arrives by one connection: entries by their numbers, from the first message to the last verdict. No connection is known here:
//! messages go in, answers come out.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bytes::Bytes;

use super::format::{Answer, Description, EntryKind, Said, WINDOW, shown};
use super::incoming::Incoming;
use super::keeper::{Kept, Lent};
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
    /// The first file: the only one that is taken where `--out` is one file.
    first_file: Option<u32>,
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
    /// Bytes of files that were kept.
    pub bytes: u64,
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
        let tally = Tally { started: now(), files: 0, folders: 0, refused: 0, bytes: 0, last: None };
        let (early, files) = (BTreeMap::new(), BTreeMap::new());
        let ((owner, back), (answer, begun)) = (channel(), channel());
        let (beginning, opener) = (BTreeMap::new(), opener.jobs());
        let (next, first_file, entries, left, broken, lent) = (0, None, None, false, false, 0);
        Self {
            transfer,
            next,
            first_file,
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
            Said::Piece { number, .. } | Said::Sum { number, .. } | Said::Withdrawn(number) => number,
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
            Some(Said::Withdrawn(_)) => {
                let name = shown(&file.description.path);
                Err(Refusal(format!("the sender could not read {name} to its end")))
            }
            Some(Said::Entry(..) | Said::End(_)) | None => Ok(()),
        };
        if let Err(refusal) = taken {
            let refused = self.files.remove(&number);
            self.give_up(refused);
            self.refuse(number, refusal, answers);
        }
    }

    /// Gives files up, as their connection is gone. That waits for their threads, and so the opener does it.
    pub fn give_up(&self, files: impl IntoIterator<Item = Incoming>) {
        // If there is no opener, the file that comes back is dropped here.
        files.into_iter().for_each(|file| drop(self.opener.send(Job::GiveUp(file))));
    }

    /// Takes the results of the opener and of the files' threads: an entry is begun, or a file has got its name or will not get it.
    pub fn poll(&mut self, answers: &mut Vec<Answer>) {
        while let Ok((number, begun)) = self.begun.try_recv() {
            match (begun, self.beginning.remove(&number)) {
                (Ok(Some(file)), Some(early)) => {
                    answers.push(Answer::Ready { number });
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
        let ended = self.files.iter().filter_map(|(&number, file)| Some((number, file.ending()?)));
        for (number, ending) in ended.collect::<Vec<_>>() {
            let Some(file) = self.files.remove(&number) else { continue };
            match ending {
                Ok(kept) => {
                    answers.push(Answer::Verified { number, sum: kept.sum });
                    self.keep(kept, file.arrived_bytes);
                }
                Err(refusal) => self.refuse(number, refusal, answers),
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
                Some(kept) => self.keep(kept, file.arrived_bytes),
                None => lost.push(file),
            }
        }
        self.broken |= !lost.is_empty();
        lost
    }

    /// Gives up everything, by the opener.
    pub fn discard(&mut self) {
        self.broken = true;
        self.beginning.clear();
        let files = std::mem::take(&mut self.files);
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
        self.files.values().map(Incoming::awaited).try_fold(Awaited::Bytes, |all, file| Some(all.max(file?)))
    }

    /// The files that are on their way.
    pub fn arriving(&self) -> impl Iterator<Item = &Incoming> {
        self.files.values()
    }

    /// Takes an entry; those that earlier ones must come before wait for them. So a folder is made before what lies in it.
    //= docs/specs/endpoint.md#END-21 in the order of their numbers
    fn on_entry(&mut self, number: u32, description: Description) -> Result<(), Refusal> {
        //= docs/specs/endpoint.md#END-21 At most 16 described entries
        let is_new = number >= self.next && !self.early.contains_key(&number);
        let described = self.early.len() + self.beginning.len() + self.files.len();
        if !is_new || number - self.next >= WINDOW as u32 || described >= WINDOW {
            return Err(Refusal::new("too much was described at once, or something twice"));
        }
        self.early.insert(number, description);
        while let Some(description) = self.early.remove(&self.next) {
            self.begin(self.next, description);
            self.next += 1;
        }
        Ok(())
    }

    /// Has the opener begin an entry.
    fn begin(&mut self, number: u32, description: Description) {
        self.beginning.insert(number, Vec::new());
        let (transfer, answer) = (self.transfer, self.answer.clone());
        let further = description.kind != EntryKind::Folder && *self.first_file.get_or_insert(number) != number;
        if self.opener.send(Job::Begin { transfer, number, description, further, answer }).is_err() {
            let _ = self.answer.send((number, Err(Refusal::new("the receiver's thread for its folder has ended"))));
        }
    }

    fn keep(&mut self, kept: Kept, bytes: u64) {
        self.tally.files += 1;
        self.tally.bytes += bytes;
        self.tally.last = Some(kept);
    }

    fn refuse(&mut self, number: u32, Refusal(reason): Refusal, answers: &mut Vec<Answer>) {
        self.tally.refused += 1;
        answers.push(Answer::Refused { number, reason });
    }
}
