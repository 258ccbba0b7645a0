//! The `spray` command. Exit codes: 0 done, 1 something ran and failed, 2 it could not be started as asked, 130 Ctrl-C.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod campaign;
mod demo;
mod doctor;
mod failure;
mod progress;
mod settings;
mod sim;
mod stop;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Run(arguments) => demo::run(&arguments),
        Command::Sim(arguments) => sim::sim(&arguments),
        Command::Compare(arguments) => sim::compare(&arguments),
        Command::CompareBalancers(arguments) => sim::compare_balancers(&arguments),
        Command::Clean => clean(),
        Command::Bench(args::Bench::Veth(arguments)) => bench::veth(&arguments),
        Command::Bench(args::Bench::Sim(arguments)) => sim::bench(&arguments),
        Command::Send(arguments) => transfer::send(&arguments),
        Command::Recv(arguments) => transfer::recv(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Removes what processes left behind that no longer live.
fn clean() -> failure::Outcome {
    let left = spray_experiments::testbed::leftovers();
    let removed = spray_experiments::testbed::clean();
    removed.iter().for_each(|name| println!("removed {name}"));
    match spray_experiments::testbed::leftovers() {
        still if !still.is_empty() => {
            Err(failure::Failure::refused(format!("cannot remove {}: run as root", still.join(", "))))
        }
        _ if left.is_empty() => {
            println!("nothing was left behind");
            Ok(())
        }
        _ => Ok(()),
    }
}
