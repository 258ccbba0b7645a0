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

/// Gives up everything but `reach` and open sockets. Fails with 2 if capabilities cannot be given
/// up, or Landlock is missing and one is needed for files of other users.
//= docs/specs/endpoint.md#END-29 before it starts a thread
pub fn confine(reach: &Reach<'_>) -> Outcome {
    rights::no_new_privileges()?;
    rights::no_core_dump()?;
    let bound = files::bound(reach)?;
    match bound {
        Bound::Fully => {}
        Bound::Partly => note!("spray: warning: Landlock before Linux 6.2 does not prevent truncating files elsewhere"),
        Bound::Not => note!("spray: warning: {NO_LANDLOCK}"),
    }
    rights::give_up(reach, bound)?;
    if let Err(error) = calls::allow_only(reach.writes()) {
        note!("spray: warning: this kernel does not filter system calls (seccomp: {error})");
    }
    Ok(())
}

const NO_LANDLOCK: &str = "this kernel does not restrict file access (Landlock, Linux 5.19 or later, named in `lsm=`): \
    a vulnerability of spray would expose all files of this user";
