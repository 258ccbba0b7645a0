//! Skipping of tests, with a line that `cargo xtask test` counts: the test harness counts a test
//! that returns early as passed, and hides what it prints.

use std::io::Write as _;

/// Returns whether the process runs as root. If not, the calling test skips.
#[must_use]
pub fn has_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip("needs root");
    }
    root
}

/// Writes `SKIPPED test: why` past the harness, which captures only what `print!` writes.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    // The harness names a test's thread after the test.
    let test = thread.name().unwrap_or("a test");
    // Ignored if standard output is closed.
    let _ = writeln!(std::io::stdout(), "SKIPPED {test}: {why}");
}
