//! What the command says: results to standard output, as text or as JSON, and remarks to standard error.

use std::fmt::{Arguments, Display};
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

use crate::failure::{Failure, Outcome};
use crate::stop::Stop;

/// What the user asked of the output of all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Results are JSON, in place of text.
    pub json: bool,
    /// No progress, and no remarks but warnings and errors.
    pub quiet: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// Sets how everything is said from now on. Only the first call counts.
pub fn set_manner(manner: Manner) {
    MANNER.get_or_init(|| manner);
}

/// How things are said.
pub fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// Prints a line of a result for people; nothing where JSON was asked for.
pub fn line(text: Arguments<'_>) {
    if !manner().json {
        print(text);
    }
}

/// Prints a result as JSON, if that was asked for.
///
/// # Errors
/// 1 when it has no form in JSON.
pub fn object(result: &impl Serialize) -> Outcome {
    if manner().json {
        let text = serde_json::to_string_pretty(result).map_err(Failure::failed)?;
        print(format_args!("{text}"));
    }
    Ok(())
}

/// Prints a line that is wanted in any case: a document of its own, such as a manual page. Where the reader has gone, as in
/// `spray sim ... | head -1`, the process ends as other tools do: by SIGPIPE. A command that takes Ctrl-C stops and cleans up first; [`end`] then
/// ends it. After any other error nothing more is written, and [`end`] returns the error.
pub fn print(text: impl Display) {
    let mut unwritten = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if unwritten.is_some() {
        return;
    }
    let Err(error) = writeln!(stdout(), "{text}").and_then(|()| stdout().flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        BROKEN.store(true, Ordering::Relaxed);
        drop(unwritten);
        if !Stop::ask_all() {
            let _ = end();
        }
    } else {
        *unwritten = Some(format!("cannot write to standard output: {error}"));
    }
}

/// The first error of a write; after it nothing is written.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);

/// Whether the standard output is a pipe that no process reads any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Ends the process by SIGPIPE if no process reads its output any more: the last thing to do.
///
/// # Errors
/// 1 when a result could not be written.
pub fn end() -> Outcome {
    if BROKEN.load(Ordering::Relaxed) {
        let _ = emulate_default_handler(SIGPIPE);
    }
    match UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(Failure::failed(error)),
        None => Ok(()),
    }
}

/// Prints a warning or an error. The work goes on where nobody reads it.
pub fn remark(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
}

/// Prints what is good to know and no more: not with `--quiet`.
pub fn aside(text: Arguments<'_>) {
    if !manner().quiet {
        remark(text);
    }
}

/// Prints a line of a result for people: see [`say::line`](crate::say::line).
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// Prints a warning or an error: see [`say::remark`](crate::say::remark).
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::remark(format_args!($($text)*)) };
}

/// Prints what is good to know and no more: see [`say::aside`](crate::say::aside).
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => { $crate::say::aside(format_args!($($text)*)) };
}
