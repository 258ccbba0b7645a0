//! The failure of a command: one message that says what, where and what to do, and an exit code.

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

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// That a thread could not be started.
pub fn no_thread(error: &io::Error) -> String {
    format!("cannot start a thread: {error}; `ulimit -u` and the cgroup's pids.max limit how many there may be")
}

impl Failure {
    /// Bad input, bad usage, a missing right or feature: nothing was started. Exit code 2.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// Something was started and failed. Exit code 1.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// Ctrl-C or a termination signal; everything was cleaned up. Exit code 130.
    pub fn interrupted() -> Self {
        Self::interrupted_with("nothing was left behind")
    }

    /// An interruption that leaves what `left` says.
    pub fn interrupted_with(left: impl fmt::Display) -> Self {
        Self { message: format!("interrupted; {left}"), code: INTERRUPTED }
    }

    /// Ctrl-C or a termination signal in the middle of a transfer, of which the receiver may keep a part.
    pub fn stopped() -> Self {
        Self { message: "interrupted".into(), code: INTERRUPTED }
    }

    /// This failure, with a hint at its cause.
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

    /// Prints the message, and ends the process.
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
