//! The thread of a receiver that begins files and makes folders, one after the other: the caller polls a network and must not wait for a
//! disk.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::format::{Description, EntryKind};
use super::incoming::Incoming;
use super::out::{ONE_FILE, Out};
use super::refusal::Refusal;

#[derive(Debug)]
pub enum Job {
    /// Makes the folder, or begins the file, which with `further` is not the transfer's first.
    Begin { transfer: u32, number: u32, description: Description, further: bool, answer: Sender<Begun> },
    /// Gives the file up, which waits for the file's own thread.
    GiveUp(Incoming),
}

/// What became of an entry, by its number: a file that is arriving, or nothing more where it is a folder.
pub type Begun = (u32, Result<Option<Incoming>, Refusal>);

/// The thread, as its owner sees it. Dropping it waits until nobody has a job for it any more, and all are done.
#[derive(Debug)]
pub struct Opener {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Opener {
    /// Starts it for what goes to `out`.
    pub fn start(out: Out) -> std::io::Result<Self> {
        let (jobs, todo) = channel();
        let thread = std::thread::Builder::new().name("spray-folder".into()).spawn(move || run(&out, &todo))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    pub fn jobs(&self) -> Sender<Job> {
        self.jobs.clone().expect("until it is dropped")
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.jobs = None;
        // A panic has already been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(out: &Out, todo: &Receiver<Job>) {
    while let Ok(job) = todo.recv() {
        match job {
            Job::Begin { transfer, number, description, further, answer } => {
                let begun = match description.kind {
                    EntryKind::Folder => out.make(&description, transfer).map(|()| None),
                    // Refused before any of it is sent.
                    EntryKind::File { .. } | EntryKind::Stream if further && out.takes_one_file() => {
                        Err(Refusal::new(ONE_FILE))
                    }
                    EntryKind::File { .. } | EntryKind::Stream => Incoming::begin(description, out, transfer).map(Some),
                };
                // Nobody waits for it if the transfer was given up.
                let _ = answer.send((number, begun));
                out.waker().wake();
            }
            Job::GiveUp(file) => drop(file),
        }
    }
}
