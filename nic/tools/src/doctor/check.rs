//! One check, and its line of the output.

use serde::Serialize;

/// How a check ended.
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

/// One check: a line of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub check: &'static str,
    /// The outcome.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; empty when nothing needs doing.
    pub remedy: String,
}

impl Check {
    /// All is well.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    /// It works, but could work better.
    pub fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    /// Some part of `spray` cannot work.
    pub fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, status: Status::Fail, found: found.into(), remedy: remedy.into() }
    }

    pub(super) fn line(&self) -> String {
        let status = match self.status {
            Status::Ok => "ok  ",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        let remedy = if self.remedy.is_empty() { String::new() } else { format!("\n{:22}-> {}", "", self.remedy) };
        let found = self.found.replace('\n', &format!("\n{:22}", ""));
        format!("{status}  {:14}  {found}{remedy}", self.check)
    }
}
