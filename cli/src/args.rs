//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
#[cfg(feature = "xdp")]
use spray_tools::args::{Doctor, Keygen, Paths, Perf, Recv, ReportHardware, Send, Serve, Tunnel};

#[cfg(feature = "lab")]
use crate::lab;

#[cfg_attr(
    feature = "lab",
    doc = "A userspace NIC dataplane that sprays packets over many paths, and the emulated fabric to try it in."
)]
#[cfg_attr(not(feature = "lab"), doc = "A userspace NIC dataplane that sprays packets over many paths.")]
#[derive(Debug, Parser)]
#[command(name = "spray", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Print results as JSON in place of text; docs/reference/json.md has the fields
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Say nothing of progress, only warnings and errors
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Say what is done before packets go, and how long it takes; -vv says more
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Experiments(lab::args::Experiments),
    #[cfg(feature = "xdp")]
    /// Sends files and folders from an AF_XDP interface to a `spray recv`
    Send(Send),
    #[cfg(feature = "xdp")]
    /// Receives files and folders on an AF_XDP interface
    Recv(Recv),
    #[cfg(feature = "xdp")]
    /// Joins machines by a TUN device, so that any TCP or UDP program uses all paths between them
    Tunnel(Tunnel),
    #[cfg(all(feature = "lab", feature = "xdp"))]
    #[command(flatten)]
    Deployment(lab::args::Deployment),
    #[cfg(feature = "xdp")]
    /// Waits for `spray perf`
    Serve(Serve),
    #[cfg(feature = "xdp")]
    /// Measures goodput and latency between an AF_XDP interface and a `spray serve`
    Perf(Perf),
    #[cfg(feature = "xdp")]
    /// Finds which entropy value takes which path to a host, and dead, slow and uneven paths
    Paths(Paths),
    #[cfg(feature = "xdp")]
    /// Makes a key for `spray send`, `spray recv` and `spray tunnel`, and prints its public half
    Keygen(Keygen),
    #[cfg(feature = "xdp")]
    /// Checks what this machine and an interface can do, and says what is missing
    Doctor(Doctor),
    #[cfg(feature = "xdp")]
    /// Examines and measures an interface, and writes one file to send to the developers
    ReportHardware(ReportHardware),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Upkeep(lab::args::Upkeep),
    /// Prints what makes a shell complete the command line
    Completions(Completions),
    /// Writes the manual pages, one for each command
    Man(Man),
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write them to, made if there is none
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
