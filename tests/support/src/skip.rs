//! A test that cannot run here says so in a line that `cargo xtask test` counts, and returns.
//!
//! The test harness counts a test that returns early as passed, and hides what it prints. `cargo xtask test` takes the
//! tests that such lines name from those passed.

use std::io::Write as _;

/// Whether the process is root's. If not, the calling test skips.
#[must_use]
pub fn has_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip("needs root");
    }
    root
}

/// Writes `SKIPPED test: why`, past the harness, which captures only what `print!` writes.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    // The harness gives a test's thread the name of the test.
    let test = thread.name().unwrap_or("a test");
    // Whoever closed standard output does not count tests.
    let _ = writeln!(std::io::stdout(), "SKIPPED {test}: {why}");
}
