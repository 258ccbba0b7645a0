//! Whether the running kernel takes every program.

use super::ProgramError;
use super::object;

/// Most instructions that the kernel's verifier follows before it refuses a program.
pub const VERIFIER_LIMIT: u32 = 1_000_000;

/// Every program of ours after the object that holds it: those that links need first, then those of benchmarks.
pub(super) const PROGRAMS: [(&str, &str); 5] = [
    ("steer", "steer"),
    ("switch", "switch"),
    ("switch", "standing"),
    ("switch", "bench_switch"),
    ("switch", "bench_redirect"),
];

/// What the kernel says of one program.
#[derive(Debug)]
pub struct Checked {
    /// The program's name.
    pub program: &'static str,
    /// Instructions that the verifier followed, 0 where the kernel does not tell (before 5.16); or why it is refused.
    pub verified: Result<u32, ProgramError>,
}

/// Looks whether the switches' programs were built when this binary was.
///
/// # Errors
/// One for which [`ProgramError::is_missing`] holds.
pub fn check_built() -> Result<(), ProgramError> {
    PROGRAMS.into_iter().try_for_each(|(object, _)| object::bytes(object).map(drop))
}

/// Loads every program, each by itself, attached nowhere, and drops it again.
///
/// # Errors
/// [`ProgramError::is_missing`]: there is nothing to load. A refused program is no error here.
pub fn check_programs() -> Result<Vec<Checked>, ProgramError> {
    let check = |(object, program)| Ok(Checked { program, verified: check(object, object::bytes(object)?, program) });
    PROGRAMS.into_iter().map(check).collect()
}

pub(super) fn check(object: &'static str, bytes: &[u8], program: &'static str) -> Result<u32, ProgramError> {
    let loaded = object::load_bytes(object, bytes, |open| {
        object::only(open, &[program]);
        Ok(())
    })?;
    let found = loaded.progs_mut().find(|found| found.name() == program);
    found.and_then(|found| object::verified_instructions(&found).ok()).ok_or(ProgramError::missing(program))
}
