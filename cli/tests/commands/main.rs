//! The output, the files and the error messages of all commands.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

#[cfg(feature = "xdp")]
mod bad_input;
mod balancers;
mod captures;
mod check;
#[cfg(feature = "xdp")]
mod doctor;
mod figures;
mod output;
#[cfg(feature = "xdp")]
mod perf;
mod sim;
#[cfg(not(feature = "xdp"))]
mod simulator_only;
mod spans;
mod sweep;

use std::process::{Command, Output};

use spray_test_support::text;

fn spray(arguments: &[&str]) -> Output {
    Command::new(spray_test_support::program("spray")).args(arguments).output().unwrap()
}

/// Expects exit code 2, empty standard output, and all of `parts` in the message.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = spray(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?} does not print `{part}`: {message}");
    }
    assert!(output.stdout.is_empty(), "{arguments:?}");
}
