//! Checks what this machine can do, and says how to mend what is missing.

mod kernel;
mod machine;

use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::say;

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

/// Prints checks.
///
/// # Errors
/// When one failed, so that scripts can tell.
pub fn tell(checks: &[Check]) -> Outcome {
    say::object(&checks)?;
    checks.iter().for_each(|check| say!("{}", check.line()));
    match checks.iter().filter(|check| check.status == Status::Fail).count() {
        0 => Ok(()),
        failed => {
            Err(Failure::failed(format!("{failed} of {} checks failed; the remedies stand below them", checks.len())))
        }
    }
}

/// The kernel and the rights that it gives.
pub fn kernel() -> [Check; 4] {
    [kernel::version(), machine::rights(), kernel::bpf_jit(), kernel::btf()]
}

/// What packets take.
pub fn packets() -> [Check; 4] {
    [kernel::af_xdp(), machine::memlock(), machine::memory(), machine::cpus()]
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
        for check in kernel().into_iter().chain(packets()) {
            assert!(check.status == Status::Ok || !check.remedy.is_empty(), "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
    }
}
