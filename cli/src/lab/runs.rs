//! Makes the runs of a command that are not done yet, on several threads, with one line of progress. Results stay: the same command goes on
//! where it was stopped, and several machines can each make a part.

use std::fmt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use spray_experiments::sim::over_cores;
use spray_tools::failure::{Failure, Outcome, no_thread};
use spray_tools::stop::Stop;
use spray_tools::{info, say};

use crate::lab::show::Show;

/// Runs that a command makes.
pub struct Runs<'a> {
    /// The folder that keeps what is done.
    pub out: &'a Path,
    /// The numbers of those that are open.
    open: Vec<usize>,
    all: usize,
    /// Whether each needs the whole machine, and is ended by the stop flag.
    exclusive: bool,
    /// Shows how far they are.
    pub show: Show,
    /// Set when the user wants to stop.
    pub stop: Stop,
}

impl<'a> Runs<'a> {
    /// Runs with the numbers in `open`, of `all`. The results of the others are in `out` already.
    pub fn new(out: &'a Path, all: usize, open: Vec<usize>, exclusive: bool) -> Outcome<Self> {
        let show = Show::new(all, all - open.len(), exclusive);
        Ok(Self { out, show, open, all, exclusive, stop: Stop::on_signals()? })
    }

    /// Says how many are done already, if any are.
    pub fn say_done(out: &Path, all: usize, open: &[usize]) {
        if open.len() < all {
            info!("spray: {} of {all} runs are done already in {}", all - open.len(), out.display());
        }
    }

    /// Calls `run` with the number of each that is open, `threads` at a time. An error ends what has not begun.
    pub fn each(&self, threads: usize, run: impl Fn(usize) -> Outcome + Sync) -> Outcome {
        let threads = if self.exclusive { 1 } else { threads };
        let all = || over_cores(self.open.len(), threads, |index| run(self.open[index])).map(drop);
        let outcome = if self.exclusive { all() } else { self.watched(all) };
        match outcome {
            Err(failure) if failure.is_interrupted() => Err(Failure::interrupted_with(self.kept())),
            outcome => outcome,
        }
    }

    /// Does the `work`, and ends the process when the user wants to stop: runs that are written stay.
    fn watched(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        const EVERY: Duration = Duration::from_millis(50);
        let (end, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watch = move || {
                while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                    if self.stop.is_set() {
                        Failure::interrupted_with(self.kept()).exit();
                    }
                }
            };
            std::thread::Builder::new()
                .spawn_scoped(scope, watch)
                .map_err(|error| Failure::failed(no_thread(&error)))?;
            let done = work();
            drop(end);
            done
        })
    }

    fn kept(&self) -> Kept<'a> {
        Kept { done: self.show.done(), all: self.all, out: self.out, exclusive: self.exclusive }
    }
}

/// A part of the runs of a command: its number, from 1, and how many parts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which part.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Part {
    /// Its share of `all` runs: every `of`-th.
    pub fn share<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }

    /// Says how many of its `runs` are done, of `all` that there are.
    pub fn say(self, out: &Path, done: usize, runs: usize, all: usize) -> Outcome {
        let Self { number, of } = self;
        say!("part {number} of {of}: {done} of its {runs} runs are done, of {all} in all");
        say::object(&json!({ "results": out, "part": number, "of": of, "done": done, "runs": runs, "all": all }))
    }
}

impl std::str::FromStr for Part {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        parts
            .filter(|(part, of)| (1..=*of).contains(part))
            .map(|(number, of)| Self { number, of })
            .ok_or("expected I/N with I from 1 to N, as in 3/16")
    }
}

/// What an interrupted command leaves; as text it says how to go on.
struct Kept<'a> {
    done: usize,
    all: usize,
    out: &'a Path,
    exclusive: bool,
}

impl fmt::Display for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, all, out, exclusive } = self;
        if *exclusive {
            write!(f, "no namespace, link or program was left behind; ")?;
        }
        write!(f, "{done} of {all} runs are done and stay in {}; to go on:\n  {}", out.display(), command_line(out))
    }
}

/// The command line of this process.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line of this process as a shell takes it, with `out` as the folder of results.
fn command_line(out: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let word = |text: &str| match text.chars().all(plain) && !text.is_empty() {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    let words = command();
    let has_out = words.iter().any(|text| text == "--out" || text.starts_with("--out="));
    let out = (!has_out).then(|| ["--out".into(), out.display().to_string()]).into_iter().flatten();
    words.into_iter().chain(out).map(|text| word(&text)).collect::<Vec<_>>().join(" ")
}
