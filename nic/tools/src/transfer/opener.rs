//! The thread of a receiver that creates files and folders in order.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::format::{Description, EntryKind, Refusal};
use super::incoming::Incoming;
use super::out::Out;

#[derive(Debug)]
pub enum Job {
    /// Creates a folder or file.
    Begin { number: u32, description: Description, answer: Sender<Begun> },
    /// Drops the file here, since that joins its thread.
    GiveUp(Incoming),
}

pub type Begun = (u32, Result<Option<Incoming>, Refusal>);

/// The handle of the thread. Dropping it waits until all jobs are done.
#[derive(Debug)]
pub struct Opener {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Opener {
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
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(out: &Out, todo: &Receiver<Job>) {
    while let Ok(job) = todo.recv() {
        match job {
            Job::Begin { number, description, answer } => {
                let begun = match description.kind {
                    EntryKind::Folder => out.make(&description).map(|()| None),
                    EntryKind::File { .. } => Incoming::begin(description, out).map(Some),
                };
                // The transfer may have been given up.
                let _ = answer.send((number, begun));
                out.waker.wake();
            }
            Job::GiveUp(file) => drop(file),
        }
    }
}
