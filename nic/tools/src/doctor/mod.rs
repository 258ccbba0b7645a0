//! Checks what this machine can do, and says how to mend what is missing.

mod check;
mod kernel;
mod machine;

pub use self::check::{Check, Status};
use crate::failure::{Failure, Outcome};
use crate::say;

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
