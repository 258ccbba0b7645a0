//! Executes the open runs of a command on several threads. Completed runs are kept, so that the
//! command can be resumed, and parts can run on several machines.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use spray_experiments::sim::run_parallel;
use spray_tools::failure::{Failure, Outcome, no_thread};
use spray_tools::stop::Stop;
use spray_tools::{info, say};

use crate::lab::progress_display::ProgressDisplay;

pub struct Runs<'a> {
    pub out: &'a Path,
    /// Indices of the runs that are not done.
    open: Vec<usize>,
    all: usize,
    /// Whether each run needs the whole machine and polls the stop flag.
    exclusive: bool,
    pub display: ProgressDisplay,
    pub stop: Stop,
}

impl<'a> Runs<'a> {
    /// The results of runs outside of `open` are in `out`.
    pub fn new(out: &'a Path, all: usize, open: Vec<usize>, exclusive: bool) -> Outcome<Self> {
        let display = ProgressDisplay::new(all, all - open.len(), exclusive);
        Ok(Self { out, display, open, all, exclusive, stop: Stop::on_signals()? })
    }

    pub fn print_done(out: &Path, all: usize, open: &[usize]) {
        if open.len() < all {
            info!("spray: {} of {all} runs are done already in {}", all - open.len(), out.display());
        }
    }

    /// Calls `run` with the index of each open run. After an error no further run begins.
    pub fn each(&self, threads: usize, run: impl Fn(usize) -> Outcome + Sync) -> Outcome {
        let threads = if self.exclusive { 1 } else { threads };
        let all = || run_parallel(self.open.len(), threads, |index| run(self.open[index])).map(drop);
        let outcome = if self.exclusive { all() } else { self.watched(all) };
        match outcome {
            Err(failure) if failure.is_interrupted() => Err(Failure::interrupted_with(self.resume_hint())),
            outcome => outcome,
        }
    }

    /// Executes `work`, and ends the process when the user interrupts it. Written runs are kept.
    fn watched(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        const EVERY: Duration = Duration::from_millis(50);
        let (end, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watch = move || {
                while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                    if self.stop.is_set() {
                        Failure::interrupted_with(self.resume_hint()).exit();
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

    fn resume_hint(&self) -> String {
        let cleaned = if self.exclusive { "no namespace, link or program was left behind; " } else { "" };
        format!(
            "{cleaned}{} of {} runs are done and stay in {}; to continue:\n  {}",
            self.display.done(),
            self.all,
            self.out.display(),
            command_line(self.out)
        )
    }
}

/// A part of the runs of a command: `number`, from 1, of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub number: usize,
    pub of: usize,
}

impl Part {
    pub fn share<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }

    /// Reports that `done` of the `runs` in this part are done, of `all` in total.
    pub fn report(self, out: &Path, done: usize, runs: usize, all: usize) -> Outcome {
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

pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Quotes the command line for a shell, with `--out` added if missing.
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
