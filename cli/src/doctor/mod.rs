//! `spray doctor`: checks what this machine can do, and says how to mend what is missing.

mod kernel;
mod machine;

use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::say::{self, say};

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
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, status: Status::Fail, found: found.into(), remedy: remedy.into() }
    }

    fn line(&self) -> String {
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

/// Runs all checks and prints them.
///
/// # Errors
/// When a check failed, so that scripts can tell.
pub fn doctor() -> Outcome {
    let checks = all();
    say::object(&checks)?;
    checks.iter().for_each(|check| say!("{}", check.line()));
    match checks.iter().filter(|check| check.status == Status::Fail).count() {
        0 => Ok(()),
        failed => {
            Err(Failure::failed(format!("{failed} of {} checks failed; the remedies stand below them", checks.len())))
        }
    }
}

fn all() -> Vec<Check> {
    vec![
        kernel::version(),
        machine::rights(),
        kernel::bpf_jit(),
        kernel::btf(),
        kernel::programs(),
        kernel::veth_xdp(),
        kernel::af_xdp(),
        machine::memlock(),
        machine::memory(),
        machine::cpus(),
        machine::leftovers(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_status_finding_and_remedy() {
        assert_eq!(Check::ok("kernel", "6.18").line(), "ok    kernel          6.18");
        let line = Check::fail("rights", "not root", "run as root").line();
        assert_eq!(line, "fail  rights          not root\n                      -> run as root");
        let line = Check::fail("rights", "one\ntwo", "three").line();
        assert_eq!(line.lines().nth(1), Some("                      two"));
    }

    #[test]
    fn every_failed_check_has_a_remedy() {
        for check in all() {
            assert!(check.status == Status::Ok || !check.remedy.is_empty(), "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
    }
}
