//! Progress on stderr: one line that is rewritten on a terminal, plain lines elsewhere, none with `--quiet`.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::note;
use crate::say::manner;

/// Shows what is going on; clears its line when dropped.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    quiet: bool,
    last: Option<Instant>,
    shown: bool,
}

/// A terminal is rewritten this often.
const TERMINAL_EVERY: Duration = Duration::from_millis(100);
/// Elsewhere, a line within one phase appears this often.
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Most columns of a line: every terminal has these.
const COLUMNS: usize = 79;

impl Progress {
    /// Progress on this process' stderr.
    pub fn on_stderr() -> Self {
        Self { terminal: stderr().is_terminal(), quiet: manner().quiet, last: None, shown: false }
    }

    /// Shows a line that stays: the start of a phase, or its end.
    pub fn phase(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        if self.terminal {
            self.rewrite(text);
        } else {
            note!("{text}");
        }
        self.last = Some(now());
    }

    /// Shows how far the phase is, at most as often as one can read.
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        let every = if self.terminal { TERMINAL_EVERY } else { PLAIN_EVERY };
        if self.last.is_some_and(|last| now().duration_since(last) < every) {
            return;
        }
        self.phase(&text());
    }

    /// Removes the line, so that something else can be printed.
    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }

    fn rewrite(&mut self, text: &str) {
        let short: String = text.chars().take(COLUMNS).collect();
        let _ = write!(stderr(), "\r\x1b[K{short}");
        let _ = stderr().flush();
        self.shown = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The machine's clock. Commands are an edge, where reading it is allowed.
#[expect(clippy::disallowed_methods, reason = "progress and transfer speed are about the user's own time")]
pub fn now() -> Instant {
    Instant::now()
}
