//! Checks whether the running kernel accepts the programs.

use std::path::Path;
use std::{fs, io};

use spray_nic::xdp;

use super::ProgramError;
use super::object::{self, CLOCK, Compiled, HOST, STEER, SWITCH};

/// The verifier's limit of processed instructions.
pub const VERIFIER_LIMIT: u32 = 1_000_000;

/// All programs after their objects, those of benchmarks last.
pub(super) const PROGRAMS: [(Compiled<'_>, &str); 8] = [
    (STEER, "steer"),
    (CLOCK, "clock"),
    (HOST, "host"),
    (SWITCH, "switch"),
    (SWITCH, "deployed"),
    (SWITCH, "missed"),
    (SWITCH, "bench_switch"),
    (SWITCH, "bench_redirect"),
];

/// The verifier's result for a program.
#[derive(Debug)]
pub struct Checked {
    /// The program's name.
    pub program: &'static str,
    /// Instructions that the verifier processed, 0 before Linux 5.16; or the error.
    pub verified: Result<u32, ProgramError>,
}

/// Loads and unloads every program separately, without attaching it.
#[must_use]
pub fn check_programs() -> Vec<Checked> {
    PROGRAMS.map(|(compiled, program)| Checked { program, verified: check(compiled, program) }).into()
}

/// Checks as [`check_programs`] the objects in `folder`, such as `steer.o`.
///
/// # Errors
/// When an object cannot be read. A rejected program is no error.
pub fn check_folder(folder: &Path) -> io::Result<Vec<Checked>> {
    let check = |(compiled, program): (Compiled<'_>, _)| {
        let bytes = fs::read(folder.join(compiled.name).with_extension("o"))?;
        Ok(Checked { program, verified: check(Compiled { bytes: &bytes, ..compiled }, program) })
    };
    PROGRAMS.into_iter().map(check).collect()
}

pub(super) fn check(compiled: Compiled<'_>, program: &'static str) -> Result<u32, ProgramError> {
    let loaded = object::load(compiled, |open| {
        object::only(open, &[program]);
        Ok(())
    })?;
    let found = xdp::program(&loaded, program)?;
    object::verified_instructions(&found).map_err(|_| xdp::ProgramError::Missing(program).into())
}
