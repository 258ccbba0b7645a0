//! Privileges that a command gives up once it is set up (see `deploy/README.md`).
//!
//! Capabilities (`rights`) and files (`files`, Landlock) are those of the calling thread and of its
//! later threads, so a command confines itself before it starts any. System calls (`calls`,
//! seccomp) are those of all threads.

mod calls;
mod files;
mod rights;

#[cfg(test)]
mod tests;

use self::files::Bound;
pub use self::files::Reach;
use crate::failure::Outcome;
use crate::note;

/// Gives up everything but `reach` and open sockets. Prints a warning about what the kernel does
/// not support.
///
/// # Errors
/// 2 if capabilities cannot be given up, or one is needed for files of other users and Landlock is
/// missing.
//= docs/specs/endpoint.md#END-29 before it starts a thread
pub fn confine(reach: &Reach<'_>) -> Outcome {
    rights::no_new_privileges()?;
    rights::no_core_dump()?;
    let bound = files::bound(reach)?;
    match bound {
        Bound::Fully => {}
        Bound::Partly => note!("spray: warning: {OLD_LANDLOCK}"),
        Bound::Not => note!("spray: warning: {NO_LANDLOCK}"),
    }
    rights::give_up(reach, bound)?;
    if let Err(error) = calls::allow_only(reach.writes()) {
        note!(
            "spray: warning: this kernel does not filter system calls (seccomp: {error}); capabilities are given up all the same"
        );
    }
    Ok(())
}

const NO_LANDLOCK: &str = "this kernel does not bound what files a process reaches (Landlock, from Linux 5.19 on; `lsm=` of the \
    kernel's command line must name it): a flaw in spray would reach all that this user may";
const OLD_LANDLOCK: &str = "this kernel's Landlock is older than that of Linux 6.2: a flaw in spray could empty files of this user outside of the folder";
