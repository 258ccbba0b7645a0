use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
#[cfg(feature = "xdp")]
use spray_tools::args::{Doctor, Keygen, Paths, Perf, Recv, Send, Serve, Tunnel};

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
    /// Print results as JSON instead of text; docs/json.md lists the fields
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Suppress progress output
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Log set-up steps and their durations; repeat for more detail
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
}

/// Commands by purpose; the others are listed in one line below them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run scenarios", &["init", "explain", "check", "run", "sim", "compare", "figures", "trace", "demo"]),
    ("Send between machines", &["send", "recv", "tunnel", "serve", "perf", "paths", "keygen"]),
    ("Deploy a fabric", &["up", "shell", "link", "down", "switch"]),
    ("Check and clean", &["doctor", "clean"]),
];

pub fn command() -> clap::Command {
    let command = Cli::command();
    let heading = *command.get_styles().get_header();
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_string()).collect();
    let mut help = String::new();
    for (group, members) in GROUPS {
        let found: Vec<_> = members.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if found.is_empty() {
            continue;
        }
        help += &format!("{heading}{group}:{heading:#}\n");
        for sub in found {
            help +=
                &format!("  {:<18} {}\n", sub.get_name(), sub.get_about().map(ToString::to_string).unwrap_or_default());
        }
        help += "\n";
    }
    let others = names.iter().filter(|name| GROUPS.iter().all(|(_, members)| !members.contains(&name.as_str())));
    let others: Vec<&str> = others.map(String::as_str).collect();
    help += &format!("{heading}Also:{heading:#} {}", others.join(", "));
    // Replaces the list of clap, which has no groups.
    let hidden = |command: clap::Command, name: &String| command.mut_subcommand(name, |sub| sub.hide(true));
    let command = names.iter().fold(command, hidden).override_usage("spray [OPTIONS] <COMMAND>");
    command.before_help(help).help_template(
        "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}\n\n`spray COMMAND --help` lists the options of a command.",
    )
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Experiments(lab::args::Experiments),
    #[cfg(feature = "xdp")]
    /// Send files and folders to a `spray recv`
    Send(Send),
    #[cfg(feature = "xdp")]
    /// Receive files and folders
    Recv(Recv),
    #[cfg(feature = "xdp")]
    /// Carry the TCP and UDP traffic of any program over all paths, through a TUN device
    Tunnel(Tunnel),
    #[cfg(all(feature = "lab", feature = "xdp"))]
    #[command(flatten)]
    Deployment(lab::args::Deployment),
    #[cfg(feature = "xdp")]
    /// Serve `spray perf`
    Serve(Serve),
    #[cfg(feature = "xdp")]
    /// Measure goodput and latency to a `spray serve`
    Perf(Perf),
    #[cfg(feature = "xdp")]
    /// Find the paths to a host, and which are dead, slow or uneven
    Paths(Paths),
    #[cfg(feature = "xdp")]
    /// Create a key for the commands that send, and print its public half
    Keygen(Keygen),
    #[cfg(feature = "xdp")]
    /// Check what this machine and its NICs support and lack
    Doctor(Doctor),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Upkeep(lab::args::Upkeep),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write the manual pages, one for each command
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
    /// Folder for the pages; created if missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

#[cfg(all(test, feature = "lab", feature = "xdp"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn groups_name_existing_commands() {
        let command = Cli::command();
        for name in GROUPS.iter().flat_map(|(_, members)| *members) {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    /// The settings of systemd 252 that our units use: systemd ignores unknown ones, and logs a
    /// line in the journal.
    const SETTINGS: &str = "Description Documentation Wants After EnvironmentFile ExecStart Restart RestartSec KillSignal SuccessExitStatus \
        DynamicUser LoadCredential AmbientCapabilities CapabilityBoundingSet LimitMEMLOCK StateDirectory NoNewPrivileges ProtectSystem ProtectHome \
        PrivateTmp PrivateDevices DevicePolicy DeviceAllow ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectControlGroups \
        ProtectClock ProtectHostname RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality \
        MemoryDenyWriteExecute SystemCallArchitectures UMask WantedBy";

    #[test]
    fn units_have_valid_settings_and_command_lines() {
        let folder = spray_test_support::root().join("deploy/systemd");
        let units: Vec<_> = fs::read_dir(folder).unwrap().map(|unit| unit.unwrap().path()).collect();
        assert_eq!(units.len(), 3);
        for unit in units {
            let text = fs::read_to_string(&unit).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
            let pairs: Vec<_> = lines.map(|line| line.split_once('=').unwrap()).collect();
            for (setting, _) in &pairs {
                assert!(SETTINGS.split_whitespace().any(|known| known == *setting), "{}: {setting}", unit.display());
            }
            let [start] = pairs.iter().filter(|pair| pair.0 == "ExecStart").collect::<Vec<_>>()[..] else {
                panic!("{} does not start exactly one command", unit.display())
            };
            // The options of the tunnel are in its options file, without which it does not start.
            let options =
                if start.1.contains(" tunnel ") { "--peer 10.0.0.2 --address 10.9.0.1/24 --name spray0" } else { "" };
            let line = start.1.replace("%i", "eth1").replace("%d", "/run/credentials").replace("$OPTIONS", options);
            assert!(line.starts_with("/usr/bin/spray ") && !line.contains(['%', '$']), "{line}");
            command().try_get_matches_from(line.split_whitespace()).unwrap();
        }
    }
}
