//! What the command says: to standard output and to standard error.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

/// Prints a line. Where the reader has gone, as in `spray sim ... | head -1`, the process ends as other tools do: by SIGPIPE.
pub fn line(text: Arguments<'_>) {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => drop(emulate_default_handler(SIGPIPE)),
        Err(error) => remark(format_args!("spray: cannot write to standard output: {error}")),
        Ok(()) => {}
    }
}

/// Prints a line to standard error. The work goes on where nobody reads it.
pub fn remark(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
}

macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

macro_rules! note {
    ($($text:tt)*) => { $crate::say::remark(format_args!($($text)*)) };
}

pub(crate) use {note, say};
