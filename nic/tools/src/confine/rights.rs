//! Capabilities, and ways to gain them.

use std::path::Path;

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};

use super::files::{Bound, Reach};
use crate::failure::{Failure, Outcome};

pub fn no_new_privileges() -> Outcome {
    nix::sys::prctl::set_no_new_privs()
        .map_err(|error| Failure::refused(format!("cannot refuse new privileges: {error}")))
}

/// Disables core dumps and reading by other processes of the user, since the memory contains keys.
//= docs/specs/endpoint.md#END-29 no core dump
pub fn no_core_dump() -> Outcome {
    nix::sys::prctl::set_dumpable(false).map_err(|error| Failure::refused(format!("cannot refuse core dumps: {error}")))
}

/// Drops all capabilities of this thread, except that for files of other users if it is needed.
pub fn give_up(reach: &Reach<'_>, bound: Bound) -> Outcome {
    let failed = |error: CapsError| Failure::refused(format!("cannot give up capabilities: {error}"));
    // Executing a program cannot gain these. Failing is harmless: it means that none can be
    // dropped.
    for capability in caps::read(None, CapSet::Bounding).map_err(failed)? {
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
    caps::clear(None, CapSet::Effective).map_err(failed)?;
    let kept = needed(reach, bound)?;
    caps::set(None, CapSet::Effective, &kept).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(failed)?;
    // Clears the ambient set, too.
    caps::clear(None, CapSet::Inheritable).map_err(failed)
}

/// Returns the capability that `reach` needs.
fn needed(reach: &Reach<'_>, bound: Bound) -> Outcome<CapsHashSet> {
    const ALL: AccessFlags = AccessFlags::R_OK.union(AccessFlags::W_OK).union(AccessFlags::X_OK);
    let (capability, missing) = match reach {
        Reach::Read { files, .. } => {
            (Capability::CAP_DAC_READ_SEARCH, files.iter().find(|file| !may(file, AccessFlags::R_OK)))
        }
        Reach::Write(folder) => (Capability::CAP_DAC_OVERRIDE, Some(folder).filter(|folder| !may(folder, ALL))),
    };
    let Some(path) = missing else { return Ok(CapsHashSet::new()) };
    // Without it, the access fails later with an error.
    if !caps::has_cap(None, CapSet::Permitted, capability).unwrap_or(false) {
        return Ok(CapsHashSet::new());
    }
    //= docs/specs/endpoint.md#END-29 only if the kernel bounds the files
    if bound == Bound::Not {
        return Err(Failure::refused(format!(
            "{} belongs to another user, and this kernel cannot restrict root to it (Landlock): change its owner",
            path.display()
        )));
    }
    Ok([capability].into_iter().collect())
}

/// Whether this thread has access to a file with its effective capabilities.
fn may(path: &Path, access: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}
