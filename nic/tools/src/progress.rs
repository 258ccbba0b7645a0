//! Progress on standard error: a rewritten line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::note;
use crate::say::output_options;

/// A progress line, cleared on drop.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    quiet: bool,
    last: Option<Instant>,
    shown: bool,
}

const TERMINAL_EVERY: Duration = Duration::from_millis(100);
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Maximum width of a line.
const COLUMNS: usize = 79;

impl Progress {
    /// Creates progress output on standard error, which is off with `--quiet`.
    pub fn on_stderr() -> Self {
        Self { terminal: stderr().is_terminal(), quiet: output_options().quiet, last: None, shown: false }
    }

    /// Shows a line immediately.
    pub fn phase(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        if self.terminal {
            let short: String = text.chars().take(COLUMNS).collect();
            let _ = write!(stderr(), "\r\x1b[K{short}");
            let _ = stderr().flush();
            self.shown = true;
        } else {
            note!("{text}");
        }
        self.last = Some(now());
    }

    /// Shows a line unless the last one is too recent.
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        let every = if self.terminal { TERMINAL_EVERY } else { PLAIN_EVERY };
        if self.last.is_some_and(|last| now().duration_since(last) < every) {
            return;
        }
        self.phase(&text());
    }

    /// Removes the line, for other output.
    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Reads the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "progress and transfer speed are about the user's own time")]
pub fn now() -> Instant {
    Instant::now()
}
