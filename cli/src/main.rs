//! The `spray` command. Exit codes: 0 done, 1 something ran and failed, 2 nothing was started (bad input, missing rights), 130
//! Ctrl-C.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod folder;
#[cfg(feature = "lab")]
mod lab;
mod shell;
mod spans;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::FromArgMatches;
#[cfg(feature = "xdp")]
use spray_tools::doctor;
use spray_tools::failure::Outcome;
use spray_tools::say;

use crate::args::{Cli, Command};

/// Keeps what the simulator holds on few, large pages: at 1,024 hosts most of its time goes to misses in cache and TLB.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // What is wrong with a setting is said in full already: no usage of the command goes with it.
    let cli = match args::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // What was asked for: help, or the version.
        Err(error) if !error.use_stderr() => {
            let text = error.render();
            let text = if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() };
            say::print(text.trim_end());
            return ended(Ok(()));
        }
        Err(error) => error.exit(),
    };
    #[cfg(feature = "xdp")]
    spray_tools::raise_open_files();
    say::set_manner(say::Manner { json: cli.json, quiet: cli.quiet });
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
        #[cfg(feature = "xdp")]
        Command::ReportHardware(arguments) => spray_tools::report_hardware(&arguments),
        #[cfg(feature = "lab")]
        Command::Upkeep(command) => command.run(),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    ended(outcome)
}

/// The exit code of an outcome; 1 where a result could not be written.
fn ended(outcome: Outcome) -> ExitCode {
    let written = say::end();
    let failures = [outcome, written].map(Result::err);
    let codes: Vec<ExitCode> = failures.into_iter().flatten().map(|failure| failure.report()).collect();
    codes.first().copied().unwrap_or(ExitCode::SUCCESS)
}

/// Checks what this machine can do, and an interface, and says how to mend what is missing.
#[cfg(feature = "xdp")]
fn doctor(arguments: &spray_tools::args::Doctor) -> spray_tools::failure::Outcome {
    if let Some(interface) = arguments.restored() {
        return doctor::restore(interface);
    }
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
    doctor::tell(checks, arguments)
}
