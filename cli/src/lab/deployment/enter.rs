//! `spray shell`: a shell or a command in a host of a deployed fabric.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use spray_tools::failure::{Failure, Outcome};

use super::protocol::{HostRow, own_fabric, status};
use crate::lab::args;

/// Replaces this process by the shell or the command in the host.
pub fn shell(arguments: &args::Shell) -> Outcome {
    let name = own_fabric(arguments.name.as_deref())?;
    let status = status(&name)?;
    let Some(host) = status.hosts.iter().find(|host| host.host == arguments.host) else {
        let hosts: Vec<_> = status.hosts.iter().map(|host| host.host.as_str()).collect();
        return Err(Failure::refused(format!(
            "`{name}` has no host `{}`; its hosts: {}",
            arguments.host,
            hosts.join(", ")
        )));
    };
    if !host.interface.is_empty() {
        return Err(Failure::refused(format!("{} is another machine, behind {}", host.host, host.interface)));
    }
    enter(host, status.pid)
        .map_err(|error| Failure::refused(format!("cannot enter the host {}: {error}", host.host)))?;
    let mut command = match arguments.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        None => interactive(&host.host),
    };
    let error = command.env("SPRAY_HOST", &host.host).exec();
    Err(Failure::refused(format!("cannot run {}: {error}", command.get_program().display())))
}

fn interactive(host: &str) -> Command {
    let mut shell = Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    shell.env("PS1", format!("{host}# "));
    // The start-up files of Bash overwrite PS1.
    shell.env("PROMPT_COMMAND", format!("PS1=\"({host}) ${{PS1#\\({host}\\) }}\""));
    shell
}

/// Enters a host as `ip netns exec` does: network, /sys, /etc/hosts and /etc/resolv.conf.
fn enter(host: &HostRow, daemon: u32) -> std::io::Result<()> {
    // The daemon may have another mount namespace, as within `ip netns exec`.
    let namespace = File::open(Path::new(&format!("/proc/{daemon}/root/run/netns")).join(&host.namespace))?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_SLAVE | MsFlags::MS_REC, None::<&str>)?;
    // Ignored where a container forbids it.
    let _ = umount2("/sys", MntFlags::MNT_DETACH);
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>);
    for name in ["hosts", "resolv.conf"] {
        let own = Path::new("/etc/netns").join(&host.namespace).join(name);
        let _ = mount(Some(&own), &Path::new("/etc").join(name), None::<&str>, MsFlags::MS_BIND, None::<&str>);
    }
    Ok(())
}
