//! What the command says: results to standard output, as text or as JSON, and remarks to standard error.

use std::fmt::{Arguments, Display};
use std::fs::File;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

static FILE: OnceLock<File> = OnceLock::new();

/// Has results go to the end of this file from now on. Only the first call counts.
///
/// # Errors
/// 2 when it cannot be written.
pub fn into_file(path: &Path) -> Outcome {
    let opened = File::options().append(true).create(true).open(path);
    let file = opened.map_err(|error| Failure::refused(format!("cannot write {}: {error}", path.display())))?;
    FILE.get_or_init(|| file);
    Ok(())
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
/// `spray sim ... | head -1`, the process ends as other tools do: by SIGPIPE. A command that takes Ctrl-C stops and cleans up first; [`end`] then ends it.
pub fn print(text: impl Display) {
    if let Some(mut file) = FILE.get() {
        let _ =
            writeln!(file, "{text}").inspect_err(|error| remark(format_args!("spray: cannot write results: {error}")));
        return;
    }
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            BROKEN.store(true, Ordering::Relaxed);
            if !Stop::ask_all() {
                end();
            }
        }
        Err(error) => remark(format_args!("spray: cannot write to standard output: {error}")),
        Ok(()) => {}
    }
}

/// Nobody reads the standard output any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Ends the process by SIGPIPE if nobody reads its output any more: the last thing to do.
pub fn end() {
    if BROKEN.load(Ordering::Relaxed) {
        let _ = emulate_default_handler(SIGPIPE);
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
