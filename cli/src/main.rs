//! The `spray` command. Exit codes: 0 success, 1 something ran and failed, 2 nothing was started
//! (bad input, missing rights), 130 Ctrl-C.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod folder;
#[cfg(feature = "lab")]
mod lab;
mod shell;
mod spans;

use std::error::Error as _;
use std::io::IsTerminal;
use std::num::{ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ErrorKind};
#[cfg(feature = "xdp")]
use spray_tools::doctor;
use spray_tools::failure::Outcome;
use spray_tools::say;

use crate::args::{Cli, Command};

/// Uses large pages: with 1,024 hosts cache and TLB misses dominate the run time of the simulator.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Replaces the message of a number that cannot be parsed; returns other errors unchanged.
fn plain(error: clap::Error) -> clap::Error {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let allowed = match error.source() {
        Some(source) if source.is::<ParseIntError>() => "a whole number that is not too large",
        Some(source) if source.is::<ParseFloatError>() => "a number",
        _ => return error,
    };
    let (value, argument) = (context(ContextKind::InvalidValue), context(ContextKind::InvalidArg));
    let message = format!("`{argument}` is {value}; allowed: {allowed}");
    args::command().error(ErrorKind::ValueValidation, message)
}

fn main() -> ExitCode {
    // Errors of settings are complete already, so clap's usage text is not added to them.
    let cli = match args::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // Help or version.
        Err(error) if !error.use_stderr() => {
            let text = error.render();
            let text = if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() };
            say::print(text.trim_end());
            return ended(Ok(()));
        }
        Err(error) => plain(error).exit(),
    };
    #[cfg(feature = "xdp")]
    spray_tools::raise_open_files();
    say::set_output_options(say::OutputOptions { json: cli.json, quiet: cli.quiet });
    spans::begin(cli.verbose);
    let outcome = match cli.command {
        #[cfg(feature = "lab")]
        Command::Experiments(command) => command.run(),
        #[cfg(feature = "xdp")]
        Command::Send(arguments) => spray_tools::send(&arguments),
        #[cfg(feature = "xdp")]
        Command::Recv(arguments) => spray_tools::recv(&arguments),
        #[cfg(feature = "xdp")]
        Command::Tunnel(arguments) => spray_tools::tunnel(&arguments),
        #[cfg(all(feature = "lab", feature = "xdp"))]
        Command::Deployment(command) => command.run(),
        #[cfg(feature = "xdp")]
        Command::Serve(arguments) => spray_tools::serve(&arguments),
        #[cfg(feature = "xdp")]
        Command::Perf(arguments) => spray_tools::perf(&arguments),
        #[cfg(feature = "xdp")]
        Command::Paths(arguments) => spray_tools::paths(&arguments),
        #[cfg(feature = "xdp")]
        Command::Keygen(arguments) => spray_tools::keygen(&arguments),
        #[cfg(feature = "xdp")]
        Command::Doctor(arguments) => doctor(&arguments),
        #[cfg(feature = "lab")]
        Command::Upkeep(command) => command.run(),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    ended(outcome)
}

/// Reports failures, including a result that could not be written, and returns the first exit code.
fn ended(outcome: Outcome) -> ExitCode {
    let codes = [outcome, say::end()].map(|outcome| outcome.err().map(|failure| failure.report()));
    codes.into_iter().flatten().next().unwrap_or(ExitCode::SUCCESS)
}

#[cfg(feature = "xdp")]
fn doctor(arguments: &spray_tools::args::Doctor) -> Outcome {
    let mut checks = Vec::from(doctor::kernel());
    #[cfg(feature = "lab")]
    let of_the_laboratory = !arguments.has_interface();
    #[cfg(feature = "lab")]
    if of_the_laboratory {
        checks.extend(lab::doctor::programs());
    }
    checks.extend(doctor::packets());
    #[cfg(feature = "lab")]
    if of_the_laboratory {
        checks.push(lab::doctor::leftovers());
    }
    doctor::report(checks, arguments)
}
