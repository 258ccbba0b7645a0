//! `spray up` and `spray down`: start and end the process that keeps a fabric.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use spray_experiments::switch::ExternalInterfaces;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::stop::Stop;
use spray_tools::{info, note, say};

use super::daemon::run_daemon;
use super::link::table;
use super::name::Name;
use super::protocol::{
    CableRow, EventRow, FabricReport, FabricStatus, Request, Response, check_root, named_or_only, own_fabric, send,
    status, unexpected,
};
use crate::lab::args;

/// Sets a fabric up, between `interfaces` if given; without a scenario, lists what runs.
pub fn up(arguments: &args::Up, interfaces: Option<ExternalInterfaces<'_>>) -> Outcome {
    check_root()?;
    if arguments.keep {
        return run_daemon(arguments, interfaces);
    }
    let status = match &arguments.scenario {
        Some(_) => start_daemon()?,
        None => status(&named_or_only(arguments.name.as_ref().map(|Name(name)| name.as_str()))?)?,
    };
    print_status(&status)
}

pub fn down(arguments: &args::Down) -> Outcome {
    let name = own_fabric(arguments.name.as_deref())?;
    let (removed, programs, report) = match send(&name, &Request::Down)? {
        Response::Removed { namespaces, programs, report } => (namespaces, programs, report),
        other => return Err(unexpected(&other)),
    };
    let namespaces = if removed.is_empty() { String::new() } else { format!(": {}", removed.join(", ")) };
    let FabricReport { seconds, links, events, lost_frames } = &report;
    say!("removed {name}{namespaces}");
    say!("it was up for {seconds:.1} s; its links carried:");
    table(links.iter().filter(|row| row.frames > 0 || row.drops().iter().any(|(_, count)| *count > 0)));
    events.iter().for_each(|EventRow { at_s, links, change }| say!("{at_s:>9.1} s  {links} {change}"));
    print_lost(*lost_frames);
    if !programs.is_empty() {
        note!("spray: programs in its hosts continue without a network:");
        programs.iter().for_each(|program| note!("  {} in {}: {}", program.pid, program.host, program.command));
        let pids: Vec<String> = programs.iter().map(|program| program.pid.to_string()).collect();
        note!("`kill {}` ends them", pids.join(" "));
    }
    say::object(&json!({
        "name": name, "removed": removed, "programs": programs,
        "seconds": seconds, "links": links, "events": events, "lost_frames": lost_frames,
    }))
}

fn print_status(status: &FabricStatus) -> Outcome {
    let FabricStatus { name, scenario, hosts, pid, user, node, cables, .. } = status;
    let owner = if user.is_empty() { String::new() } else { format!(" of the user {user}") };
    let part = if node.is_empty() { String::new() } else { format!(" switch {node}, with") };
    say!("{name} is running, from {scenario}:{part} {}, kept by process {pid}{owner}", counted(hosts.len()));
    let is_given = !cables.is_empty() || hosts.iter().any(|host| !host.interface.is_empty());
    if is_given && !hosts.is_empty() {
        say!("host         interface        learned addresses");
    } else if !is_given {
        say!("host         IPv4             IPv6                     namespace");
    }
    for host in hosts {
        if is_given {
            say!("{:<12} {:<16} {}", host.host, host.interface, host.addresses.join(" "));
        } else {
            say!("{:<12} {:<16} {:<24} {}", host.host, host.ipv4, host.ipv6, host.namespace);
        }
    }
    if !cables.is_empty() {
        say!("cable            interface        state of the far end");
    }
    for CableRow { link, interface, state } in cables {
        say!("{link:<16} {interface:<16} {state}");
    }
    if status.undelayed {
        say!(
            "the links are too fast for one thread to delay frames: frames are forwarded immediately, and latencies are not those of the scenario"
        );
    }
    print_lost(status.lost_frames);
    let first = status.hosts.first().map_or("h0", |host| host.host.as_str());
    let shell = if is_given { String::new() } else { format!("`spray shell {first}` opens a shell in a host, ") };
    info!("{shell}`spray link` lists links, `spray down {name}` removes the fabric");
    say::object(status)
}

fn print_lost(frames: u64) {
    if frames > 0 {
        say!(
            "this machine was too slow and lost {frames} frames: measurements during that time are not valid for the scenario"
        );
    }
}

fn counted(hosts: usize) -> String {
    if hosts == 1 { "1 host".into() } else { format!("{hosts} hosts") }
}

fn start_daemon() -> Outcome<FabricStatus> {
    let stop = Stop::on_signals()?;
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--keep")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::failed(format!("cannot start the process that keeps the fabric: {error}")))?;
    let line = first_line(&mut child, &stop);
    let mut errors = String::new();
    // The process closes both once the fabric is up.
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut errors));
    if let Ok(status) = serde_json::from_str(&line) {
        errors.lines().for_each(|line| info!("{line}"));
        return Ok(status);
    }
    let status = child.wait().map_err(Failure::failed)?;
    let errors = errors.trim_end();
    let errors = errors.strip_prefix("spray: ").unwrap_or(errors);
    Err(match status.code() {
        Some(2) => Failure::refused(errors),
        Some(0 | 130) => Failure::interrupted(),
        _ => Failure::failed(format!("cannot set up the fabric: {errors}")),
    })
}

/// Returns the first line of the process, or what it wrote before its end. Ctrl-C ends the process.
fn first_line(child: &mut Child, stop: &Stop) -> String {
    const POLL_MS: u16 = 50;
    let Some(mut stdout) = child.stdout.take() else { return String::new() };
    let (mut line, mut byte, mut is_stopped) = (Vec::new(), [0], false);
    loop {
        if stop.is_set() && !is_stopped {
            is_stopped = true;
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        let readable = poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], PollTimeout::from(POLL_MS));
        if !readable.is_ok_and(|count| count > 0) {
            continue;
        }
        match stdout.read(&mut byte) {
            Ok(1) if byte != *b"\n" => line.extend(byte),
            // A fabric that came up and was stopped at once has nothing to report.
            _ if is_stopped => return String::new(),
            _ => return String::from_utf8_lossy(&line).into(),
        }
    }
}
