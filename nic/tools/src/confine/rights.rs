//! Capabilities, and ways to new ones.

use std::path::Path;

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};

use super::files::{Bound, Reach};
use crate::failure::{Failure, Outcome};

/// From now on, no program that is executed gives this thread rights that it does not have.
pub fn no_new_privileges() -> Outcome {
    nix::sys::prctl::set_no_new_privs()
        .map_err(|error| Failure::refused(format!("cannot refuse new privileges: {error}")))
}

/// From now on the kernel writes no memory of this process to a file when it crashes, and lets no other process of its user read it: there
/// are keys in it.
//= docs/specs/endpoint.md#END-29 no core dump
pub fn no_core_dump() -> Outcome {
    nix::sys::prctl::set_dumpable(false).map_err(|error| Failure::refused(format!("cannot refuse core dumps: {error}")))
}

/// Gives up all capabilities of this thread, but the one for files of other users where the command has to reach such.
pub fn give_up(reach: &Reach<'_>, bound: Bound) -> Outcome {
    let failed = |error: CapsError| Failure::refused(format!("cannot give up capabilities: {error}"));
    // What is not in it cannot be had by executing a program. Who may not change it has nothing to gain by that.
    for capability in caps::read(None, CapSet::Bounding).map_err(failed)? {
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
    caps::clear(None, CapSet::Effective).map_err(failed)?;
    let kept = needed(reach, bound)?;
    caps::set(None, CapSet::Effective, &kept).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(failed)?;
    // Where these are empty, as they nearly always are, so are the ambient ones.
    caps::clear(None, CapSet::Inheritable).map_err(failed)
}

/// What this thread, which has no capability in effect, still needs of those that it may have.
fn needed(reach: &Reach<'_>, bound: Bound) -> Outcome<CapsHashSet> {
    const ALL: AccessFlags = AccessFlags::R_OK.union(AccessFlags::W_OK).union(AccessFlags::X_OK);
    let (capability, missing) = match reach {
        Reach::Read { files, .. } => {
            (Capability::CAP_DAC_READ_SEARCH, files.iter().find(|file| !may(file, AccessFlags::R_OK)))
        }
        Reach::Write(folder) => (Capability::CAP_DAC_OVERRIDE, Some(folder).filter(|folder| !may(folder, ALL))),
        Reach::Open => return Ok(CapsHashSet::new()),
    };
    let Some(path) = missing else { return Ok(CapsHashSet::new()) };
    // Without it, it will be told what cannot be read or written.
    if !caps::has_cap(None, CapSet::Permitted, capability).unwrap_or(false) {
        return Ok(CapsHashSet::new());
    }
    //= docs/specs/endpoint.md#END-29 only if the kernel bounds the files
    if bound == Bound::Not {
        return Err(Failure::refused(format!(
            "{} belongs to another user, and this kernel cannot bound root's power to it (Landlock, from Linux 5.19 on): change its \
             owner",
            path.display()
        )));
    }
    Ok([capability].into_iter().collect())
}

/// Whether this thread may do this with a file, by the capabilities that are in effect.
fn may(path: &Path, access: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}
