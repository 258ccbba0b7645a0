//! What a command that talks to the network gives up once it is set up: capabilities, ways to new ones, files, system calls.
//!
//! | file | content |
//! |---|---|
//! | `files` | the files that it still reaches (Landlock) |
//! | `rights` | its capabilities, and ways to new ones |
//! | `calls` | the system calls that it may still make (seccomp) |
//!
//! All but the system calls are of the calling thread and of threads that it starts later: so a command confines itself before it starts
//! any. `deploy/README.md` says what users see of this.

mod calls;
mod files;
mod rights;

#[cfg(test)]
mod tests;

use self::files::Bound;
pub use self::files::Reach;
use crate::failure::Outcome;
use crate::note;

/// Gives up all that a command does not need which reaches these files and has its sockets open. What an old kernel does not have is
/// told, and goes on without it.
///
/// # Errors
/// 2 where the process would keep root's capabilities: when they cannot be given up, or when nothing would bound the one that it needs
/// for files of other users.
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
