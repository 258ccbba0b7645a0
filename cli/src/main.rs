//! The `spray` command. Exit codes: 0 done, 1 something ran and failed, 2 it could not be started as asked, 130 Ctrl-C.
#![forbid(unsafe_code)]

mod args;
mod doctor;
mod failure;
mod progress;
mod stop;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(_) | Command::Run(_) | Command::Clean | Command::Bench(_) => Err(failure::Failure::refused("x")),
        Command::Send(arguments) => transfer::send(&arguments),
        Command::Recv(arguments) => transfer::recv(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
