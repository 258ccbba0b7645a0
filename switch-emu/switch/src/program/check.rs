//! Whether the running kernel takes every program.

use std::path::Path;
use std::{fs, io};

use spray_nic::xdp;

use super::ProgramError;
use super::object::{self, CLOCK, Compiled, HOST, STEER, SWITCH};

/// Most instructions that the kernel's verifier follows before it refuses a program.
pub const VERIFIER_LIMIT: u32 = 1_000_000;

/// Every program of ours after the object that holds it: those that links need first, then those of benchmarks.
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

/// What the kernel says of one program.
#[derive(Debug)]
pub struct Checked {
    /// The program's name.
    pub program: &'static str,
    /// Instructions that the verifier followed, 0 where the kernel does not tell (before 5.16); or why it is refused.
    pub verified: Result<u32, ProgramError>,
}

/// Loads every program, each by itself, attached nowhere, and drops it again.
#[must_use]
pub fn check_programs() -> Vec<Checked> {
    PROGRAMS.map(|(compiled, program)| Checked { program, verified: check(compiled, program) }).into()
}

/// As [`check_programs`], of objects that are built anew: `folder` has them by name, as `steer.o` and `switch.o`.
///
/// # Errors
/// When one cannot be read. A refused program is no error here.
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
