//! Output of commands: results on standard output, as text or JSON; diagnostics on standard error.

use std::fmt::{Arguments, Display};
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

use crate::failure::{Failure, Outcome};
use crate::stop::Stop;

/// The output options of all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Prints results as JSON.
    pub json: bool,
    /// Suppresses progress and diagnostics other than warnings and errors.
    pub quiet: bool,
}

static OPTIONS: OnceLock<OutputOptions> = OnceLock::new();

/// Sets the output options. Only the first call has an effect.
pub fn set_output_options(output_options: OutputOptions) {
    OPTIONS.get_or_init(|| output_options);
}

/// Returns the output options.
pub fn output_options() -> OutputOptions {
    OPTIONS.get().copied().unwrap_or_default()
}

/// Prints a line of a result, except with `--json`.
pub fn line(text: Arguments<'_>) {
    if !output_options().json {
        print(text);
    }
}

/// Prints a result as JSON with `--json`.
///
/// # Errors
/// 1 if it cannot be encoded.
pub fn object(result: &impl Serialize) -> Outcome {
    if output_options().json {
        let text = serde_json::to_string_pretty(result).map_err(Failure::failed)?;
        print(format_args!("{text}"));
    }
    Ok(())
}

/// Prints a line in all modes.
///
/// If the output pipe is closed, the process ends by SIGPIPE; commands that handle Ctrl-C clean up
/// first, and [`end`] ends them. After other errors, nothing more is written, and [`end`] returns
/// the error.
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

/// The first write error.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);

/// Whether the output pipe is closed.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Ends the process by SIGPIPE if the output pipe is closed.
///
/// # Errors
/// 1 if a result could not be written.
pub fn end() -> Outcome {
    if BROKEN.load(Ordering::Relaxed) {
        let _ = emulate_default_handler(SIGPIPE);
    }
    match UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(Failure::failed(error)),
        None => Ok(()),
    }
}

/// Prints a warning or an error. Write errors are ignored.
pub fn diagnostic(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
}

/// Prints a diagnostic, except with `--quiet`.
pub fn info(text: Arguments<'_>) {
    if !output_options().quiet {
        diagnostic(text);
    }
}

/// Prints a line of a result: see [`say::line`](crate::say::line).
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

/// Prints a warning or an error: see [`say::diagnostic`](crate::say::diagnostic).
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::diagnostic(format_args!($($text)*)) };
}

/// Prints a diagnostic: see [`say::info`](crate::say::info).
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => { $crate::say::info(format_args!($($text)*)) };
}
