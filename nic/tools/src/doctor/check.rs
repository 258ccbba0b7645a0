use serde::Serialize;

use super::change::Change;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All is well.
    Ok,
    /// It works, but could work better.
    Warn,
    /// Some part of `spray` cannot work.
    Fail,
}

/// A check: one line of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub check: &'static str,
    /// The outcome.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; empty if nothing.
    pub remedy: String,
    /// What `--fix` changes.
    #[serde(skip)]
    pub(super) changes: Vec<Change>,
}

impl Check {
    /// Creates a check without findings.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Status::Ok, found.into(), String::new())
    }

    /// Creates a warning.
    pub fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, Status::Warn, found.into(), remedy.into())
    }

    /// Creates a failure.
    pub fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, Status::Fail, found.into(), remedy.into())
    }

    pub(super) fn mended_by(self, changes: impl IntoIterator<Item = Change>) -> Self {
        Self { changes: changes.into_iter().collect(), ..self }
    }

    fn new(check: &'static str, status: Status, found: String, remedy: String) -> Self {
        Self { check, status, found, remedy, changes: Vec::new() }
    }

    pub(super) fn line(&self) -> String {
        let status = match self.status {
            Status::Ok => "ok  ",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        let fix = if self.changes.is_empty() { "" } else { "; --fix does it" };
        let remedy = if self.remedy.is_empty() { String::new() } else { format!("\n{:22}-> {}{fix}", "", self.remedy) };
        let found = self.found.replace('\n', &format!("\n{:22}", ""));
        format!("{status}  {:14}  {found}{remedy}", self.check)
    }
}

/// Checks of one topic.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) checks: Vec<Check>,
}
