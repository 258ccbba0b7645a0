//! `--prepare`: what `--fix` changes, for as long as a command runs. A child that keeps its rights puts it back, since the command gives its
//! own up, and may be killed.

use std::io::{self, Write, stdin};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::change::{Change, Setting};
use super::examine::{changes, find};
use super::probe;
use super::subject::Subject;
use crate::failure::{Failure, Outcome};
use crate::note;
use crate::stop::Stop;

/// An interface that was changed. Dropping it puts everything back, and so does the end of the process, however it ends.
#[derive(Debug)]
pub(crate) struct Prepared {
    keeper: Child,
}

impl Prepared {
    /// Changes what is safe to change of an interface, if there is anything.
    ///
    /// # Errors
    /// When there is no such interface, or nobody could put back what would be changed.
    pub(crate) fn begin(name: &str) -> Outcome<Option<Self>> {
        let subject = find(name)?;
        let changes = changes(&subject);
        if changes.is_empty() {
            return Ok(None);
        }
        let impossible = |error: io::Error| {
            Failure::refused(format!(
                "--prepare: {error}; nothing is changed that would not be put back: `spray doctor {name} --fix`"
            ))
        };
        let mut prepared = Self { keeper: keeper(name).map_err(impossible)? };
        for change in &changes {
            prepared.change(&subject, change).map_err(impossible)?;
        }
        if changes.iter().any(|change| change.to.resets_link()) {
            probe::wait_for_carrier(&subject.interface);
        }
        Ok(Some(prepared))
    }

    /// Changes one setting, once the child knows what it was.
    fn change(&mut self, subject: &Subject, Change { from, to }: &Change) -> io::Result<()> {
        let mut before = serde_json::to_vec(from)?;
        before.push(b'\n');
        self.keeper.stdin.as_mut().map_or(Ok(()), |keeper| keeper.write_all(&before))?;
        let name = subject.name();
        match to.apply(&subject.ethtool) {
            Ok(()) => note!("spray: {name}: {from} -> {to}, until the end"),
            Err(error) => note!("spray: warning: {name}: {from} -> {to}: {error}"),
        }
        Ok(())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.keeper.stdin = None;
        // Where it cannot be waited for, it does its work all the same.
        let _ = self.keeper.wait();
    }
}

/// Starts this program anew as [`restore`]. What a terminal sends to its programs does not reach it.
fn keeper(name: &str) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["doctor", name, "--restore"]).stdin(Stdio::piped()).stdout(Stdio::null());
    command.process_group(0).spawn()
}

/// The child: reads what settings were until the other end of its standard input is closed, and gives the interface these values, the last
/// one first.
///
/// # Errors
/// 2 when there is no such interface, 1 when a setting could not be put back.
pub fn restore(name: &str) -> Outcome {
    // What asks the command to end does not end this.
    let _stop = Stop::on_signals()?;
    let subject = find(name)?;
    let before: Result<Vec<Setting>, _> = serde_json::Deserializer::from_reader(stdin().lock()).into_iter().collect();
    let before = before.map_err(Failure::refused)?;
    let mut outcome = Ok(());
    for setting in before.iter().rev() {
        if let Err(error) = put_back(setting, &subject) {
            outcome = Err(Failure::failed(format!("{name}: {setting} could not be put back: {error}")));
        }
    }
    outcome
}

/// Gives the interface a value that its program may be in the way of, until that is gone.
fn put_back(setting: &Setting, subject: &Subject) -> io::Result<()> {
    const TRIES: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    let mut outcome = setting.apply(&subject.ethtool);
    for _ in 0..TRIES {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        outcome = setting.apply(&subject.ethtool);
    }
    outcome
}
