//! `spray doctor`: checks the machine and interfaces, and names remedies.

mod change;
mod check;
mod driver;
mod echo;
mod examine;
mod kernel;
mod link;
mod machine;
mod offloads;
mod placement;
mod probe;
mod programs;
mod queues;
mod subject;

use serde::Serialize;

use self::check::Group;
pub use self::check::{Check, Status};
use self::examine::examine;
use crate::args::Doctor;
use crate::failure::{Failure, Outcome};
use crate::say;

#[derive(Serialize)]
struct Entry<'a> {
    topic: &'static str,
    #[serde(flatten)]
    check: &'a Check,
}

/// Prints the checks of the machine and of the interface that the arguments name.
///
/// # Errors
/// When a check failed, or there is no such interface.
pub fn report(machine: Vec<Check>, arguments: &Doctor) -> Outcome {
    let mut groups = vec![Group { title: "Machine", checks: machine }];
    if let Some(name) = &arguments.interface {
        groups.extend(examine(name, arguments)?);
    }
    let entries = groups.iter().flat_map(|group| group.checks.iter().map(|check| Entry { topic: group.title, check }));
    say::object(&entries.collect::<Vec<_>>())?;
    let alone = groups.len() == 1;
    groups.iter().for_each(|group| print(group, alone));
    let statuses: Vec<Status> = groups.iter().flat_map(|group| &group.checks).map(|check| check.status).collect();
    match statuses.iter().filter(|status| **status == Status::Fail).count() {
        0 => Ok(()),
        failed => Err(Failure::failed(format!("{failed} of {} checks failed; see their remedies", statuses.len()))),
    }
}

fn print(group: &Group, alone: bool) {
    if !alone {
        let gap = if group.title == "Machine" { "" } else { "\n" };
        say!("{gap}{}", group.title);
    }
    group.checks.iter().for_each(|check| say!("{}", check.line()));
}

/// Checks the kernel and privileges.
pub fn kernel() -> [Check; 3] {
    [kernel::version(), machine::rights(), kernel::bpf_jit()]
}

/// Checks what AF_XDP needs.
pub fn packets() -> [Check; 5] {
    [kernel::af_xdp(), kernel::ports(), machine::memlock(), machine::memory(), machine::cpus()]
}

#[cfg(test)]
mod tests;
