//! The entries that arrive on one connection: messages in, answers out, without the endpoint.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bytes::Bytes;

use super::format::{Answer, Description, Message, Refusal, WINDOW, shown};
use super::incoming::Incoming;
use super::opener::{Begun, Job, Opener};
use super::writer::{Completed, HeldMessage};
use crate::progress::now;

#[derive(Debug)]
pub struct Arrivals {
    pub transfer: u32,
    next: u32,
    early: BTreeMap<u32, Description>,
    /// Entries that the opener has not begun, with their messages so far.
    beginning: BTreeMap<u32, Vec<HeldMessage>>,
    opener: Sender<Job>,
    answer: Sender<Begun>,
    begun: Receiver<Begun>,
    pub files: BTreeMap<u32, Incoming>,
    entries: Option<u32>,
    left: bool,
    broken: bool,
    /// Messages return by `return_to`, which file threads have; `held` counts those outstanding.
    return_to: Sender<Bytes>,
    returned: Receiver<Bytes>,
    held: usize,
    pub tally: Tally,
}

#[derive(Clone, Debug)]
pub struct Tally {
    pub started: Instant,
    pub files: u32,
    pub folders: u32,
    pub refused: u32,
    pub bytes: u64,
    pub last: Option<Completed>,
}

impl Tally {
    pub fn kept(&self) -> u32 {
        self.files + self.folders
    }
}

impl Arrivals {
    pub fn new(transfer: u32, opener: &Opener) -> Self {
        let ((return_to, returned), (answer, begun)) = (channel(), channel());
        Self {
            transfer,
            next: 0,
            early: BTreeMap::new(),
            beginning: BTreeMap::new(),
            opener: opener.jobs(),
            answer,
            begun,
            files: BTreeMap::new(),
            entries: None,
            left: false,
            broken: false,
            return_to,
            returned,
            held: 0,
            tally: Tally { started: now(), files: 0, folders: 0, refused: 0, bytes: 0, last: None },
        }
    }

    /// Takes a message, which [`Self::next_returned`] returns later, and appends answers. An
    /// error ends the transfer; the refusal of one entry is an answer.
    pub fn on_message(&mut self, message: Bytes, answers: &mut Vec<Answer>) -> Result<(), Refusal> {
        self.held += 1;
        let message = HeldMessage::new(message, &self.return_to);
        const INVALID: &str = "a message is invalid, or has a forbidden path; does it run the same version of spray?";
        let decoded = Message::decode(&message.message).ok_or(Refusal(INVALID.into()))?;
        let number = match decoded {
            Message::Entry(number, description) => return self.on_entry(number, description),
            Message::End(entries) if self.entries.is_none() => {
                self.entries = Some(entries);
                return Ok(());
            }
            Message::End(_) => return Err(Refusal("it ended twice".into())),
            Message::Piece { number, .. } | Message::Sum { number, .. } | Message::Withdrawn(number) => number,
        };
        if number >= self.next {
            return Err(Refusal("a file came before its description".into()));
        }
        self.take(number, message, answers);
        Ok(())
    }

    /// Takes a message about a file, or queues it until the file has begun.
    fn take(&mut self, number: u32, message: HeldMessage, answers: &mut Vec<Answer>) {
        if let Some(early) = self.beginning.get_mut(&number) {
            return early.push(message);
        }
        let Some(file) = self.files.get_mut(&number) else { return };
        let taken = match Message::decode(&message.message) {
            Some(Message::Piece { index, .. }) => file.place(index, message),
            Some(Message::Sum { sum, .. }) => file.take_sum(sum),
            Some(Message::Withdrawn(_)) => {
                let name = shown(&file.description.path);
                Err(Refusal(format!("the sender could not read {name} to its end")))
            }
            Some(Message::Entry(..) | Message::End(_)) | None => Ok(()),
        };
        if let Err(refusal) = taken {
            let refused = self.files.remove(&number);
            self.give_up(refused);
            self.refuse(number, refusal, answers);
        }
    }

    /// Cancels files, and drops them on the opener's thread, since that waits for their threads.
    pub fn give_up(&self, files: impl IntoIterator<Item = Incoming>) {
        for mut file in files {
            file.writer.cancel();
            let _ = self.opener.send(Job::GiveUp(file));
        }
    }

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
        let ended = self.files.iter().filter_map(|(&number, file)| Some((number, file.writer.result()?)));
        for (number, result) in ended.collect::<Vec<_>>() {
            let Some(file) = self.files.remove(&number) else { continue };
            match result {
                Ok(kept) => {
                    answers.push(Answer::Verified { number, sum: kept.sum });
                    self.keep(kept, file.arrived_bytes);
                }
                Err(refusal) => self.refuse(number, refusal, answers),
            }
        }
    }

    /// Returns a message that is no longer in use, each once.
    pub fn next_returned(&mut self) -> Option<Bytes> {
        let message = self.returned.try_recv().ok()?;
        self.held -= 1;
        Some(message)
    }

    pub fn is_complete(&self) -> bool {
        let is_all = self.entries.is_some_and(|entries| self.next >= entries) && self.early.is_empty();
        is_all && !self.is_busy() && !self.broken
    }

    /// Returns the incomplete files when the connection has ended; complete files are still
    /// finished, and entries that have not begun are decided later.
    pub fn leave(&mut self) -> Vec<Incoming> {
        self.left = true;
        self.broken |= !self.early.is_empty();
        self.early.clear();
        self.lose()
    }

    fn lose(&mut self) -> Vec<Incoming> {
        let (whole, lost): (_, BTreeMap<u32, Incoming>) =
            std::mem::take(&mut self.files).into_iter().partition(|(_, file)| file.is_whole());
        self.files = whole;
        self.broken |= !lost.is_empty();
        lost.into_values().collect()
    }

    /// Stops all files and returns those that did not just complete.
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

    pub fn discard(&mut self) {
        self.broken = true;
        self.beginning.clear();
        let files = std::mem::take(&mut self.files);
        self.give_up(files.into_values());
    }

    pub fn is_busy(&self) -> bool {
        !self.files.is_empty() || !self.beginning.is_empty()
    }

    /// Whether the sender has to send something, and this side is not busy.
    pub fn waits(&self) -> bool {
        let is_busy = self.held > 0 || !self.beginning.is_empty() || self.files.values().any(Incoming::is_whole);
        !self.is_complete() && !is_busy
    }

    /// Takes an entry. An early one waits, so that a folder precedes its content.
    //= docs/specs/endpoint.md#END-21 in the order of their numbers
    fn on_entry(&mut self, number: u32, description: Description) -> Result<(), Refusal> {
        //= docs/specs/endpoint.md#END-21 At most 16 described entries
        let is_new = number >= self.next && !self.early.contains_key(&number);
        let described = self.early.len() + self.beginning.len() + self.files.len();
        if !is_new || number - self.next >= WINDOW as u32 || described >= WINDOW {
            return Err(Refusal("too much was described at once, or something twice".into()));
        }
        self.early.insert(number, description);
        while let Some(description) = self.early.remove(&self.next) {
            self.begin(self.next, description);
            self.next += 1;
        }
        Ok(())
    }

    fn begin(&mut self, number: u32, description: Description) {
        self.beginning.insert(number, Vec::new());
        let answer = self.answer.clone();
        if self.opener.send(Job::Begin { number, description, answer }).is_err() {
            let _ = self.answer.send((number, Err(Refusal("the receiver's thread for its folder has ended".into()))));
        }
    }

    fn keep(&mut self, kept: Completed, bytes: u64) {
        self.tally.files += 1;
        self.tally.bytes += bytes;
        self.tally.last = Some(kept);
    }

    fn refuse(&mut self, number: u32, Refusal(reason): Refusal, answers: &mut Vec<Answer>) {
        self.tally.refused += 1;
        answers.push(Answer::Refused { number, reason });
    }
}
