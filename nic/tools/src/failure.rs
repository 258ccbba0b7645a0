//! Errors of commands: a message and an exit code.

use std::process::ExitCode;
use std::{fmt, io};

use crate::note;

/// Why a command failed, and its exit code.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

const INTERRUPTED: u8 = 130;

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Describes the failure to start a thread.
pub fn no_thread(error: &io::Error) -> String {
    format!("cannot start a thread: {error}; `ulimit -u` and the cgroup's pids.max limit how many there may be")
}

impl Failure {
    /// Creates an error with exit code 2: bad input, or missing rights or features; nothing was
    /// started.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// Creates an error with exit code 1: something was started and failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// Creates an error with exit code 130: stopped by a signal, and cleaned up.
    pub fn interrupted() -> Self {
        Self::interrupted_with("nothing was left behind")
    }

    /// Creates an error with exit code 130 and a description of what remains.
    pub fn interrupted_with(left: impl fmt::Display) -> Self {
        Self { message: format!("interrupted; {left}"), code: INTERRUPTED }
    }

    /// Creates an error with exit code 130: a stopped transfer, of which the receiver may keep a
    /// part.
    pub fn stopped() -> Self {
        Self { message: "interrupted".into(), code: INTERRUPTED }
    }

    /// Adds a hint at the cause.
    pub fn and(self, hint: impl fmt::Display) -> Self {
        Self { message: format!("{}; {hint}", self.message), ..self }
    }

    /// Whether the user stopped the command.
    pub fn is_interrupted(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// Whether something was started and failed.
    pub fn is_failed(&self) -> bool {
        self.code == 1
    }

    /// Prints the message, and exits.
    pub fn exit(&self) -> ! {
        let _ = self.report();
        std::process::exit(self.code.into())
    }

    /// Prints the message, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        note!("spray: {}", self.message);
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
