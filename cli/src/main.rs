//! The `spray` command. Exit codes: 0 done, 1 something ran and failed, 2 nothing was started (bad input, missing rights), 130
//! Ctrl-C.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod bound;
mod campaign;
mod captures;
#[cfg(feature = "xdp")]
mod compare;
mod compare_balancers;
#[cfg(feature = "xdp")]
mod demo;
#[cfg(feature = "xdp")]
mod doctor;
mod engines;
mod explain;
mod figures;
mod fit;
mod flowcut_memory;
mod folder;
mod init;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "live/absent.rs"]
mod live;
mod run;
mod settings;
mod shell;
mod sim;
mod spans;
#[cfg(feature = "xdp")]
mod standing;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
#[cfg(feature = "xdp")]
use spray_tools::failure;
use spray_tools::say;

use crate::args::{Cli, Command};

/// Keeps what the simulator holds on few, large pages: at 1,024 hosts most of its time goes to misses in cache and TLB.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // What is wrong with a setting is said in full already: no usage of the command goes with it.
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    say::set_manner(say::Manner { json: cli.json, quiet: cli.quiet });
    let _spans = match spans::begin(cli.verbose) {
        Ok(spans) => spans,
        Err(failure) => return failure.report(),
    };
    let outcome = match cli.command {
        #[cfg(feature = "xdp")]
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Sim(arguments) => sim::sim(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        #[cfg(feature = "xdp")]
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Bound(arguments) => bound::bound(&arguments),
        Command::Figures(arguments) => figures::figures(&arguments),
        Command::FlowcutMemory(arguments) => flowcut_memory::flowcut_memory(&arguments),
        Command::CompareBalancers(arguments) => compare_balancers::compare_balancers(&arguments),
        #[cfg(feature = "xdp")]
        Command::Clean => clean(),
        Command::Bench(bench) => bench::bench(&bench),
        #[cfg(feature = "xdp")]
        Command::Send(arguments) => spray_tools::send(&arguments),
        #[cfg(feature = "xdp")]
        Command::Recv(arguments) => spray_tools::recv(&arguments),
        #[cfg(feature = "xdp")]
        Command::Tunnel(arguments) => spray_tools::tunnel(&arguments),
        #[cfg(feature = "xdp")]
        Command::Up(arguments) => standing::up(&arguments),
        #[cfg(feature = "xdp")]
        Command::Shell(arguments) => standing::shell(&arguments),
        #[cfg(feature = "xdp")]
        Command::Link(arguments) => standing::link(&arguments),
        #[cfg(feature = "xdp")]
        Command::Down(arguments) => standing::down(&arguments),
        #[cfg(feature = "xdp")]
        Command::Serve(arguments) => spray_tools::serve(&arguments),
        #[cfg(feature = "xdp")]
        Command::Perf(arguments) => spray_tools::perf(&arguments),
        #[cfg(feature = "xdp")]
        Command::Keygen(arguments) => spray_tools::keygen(&arguments),
        #[cfg(feature = "xdp")]
        Command::Doctor => doctor::doctor(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Removes what dead processes left behind.
#[cfg(feature = "xdp")]
fn clean() -> failure::Outcome {
    let left = spray_testbed::leftovers();
    let removed = spray_testbed::clean();
    say::object(&serde_json::json!({ "removed": removed }))?;
    removed.iter().for_each(|name| say!("removed {name}"));
    match spray_testbed::leftovers() {
        still if !still.is_empty() => {
            Err(failure::Failure::refused(format!("cannot remove {}: run as root", still.join(", "))))
        }
        _ if left.is_empty() => {
            say!("nothing was left behind");
            Ok(())
        }
        _ => Ok(()),
    }
}
