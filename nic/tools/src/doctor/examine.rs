//! `spray doctor IF`: checks an interface, and changes or restores its settings.

use std::io;

use super::change::{Change, Setting};
use super::check::{Check, Group};
use super::memory::Memory;
use super::subject::Subject;
use super::{driver, link, offloads, placement, probe, programs, queues};
use crate::args::Doctor;
use crate::failure::{Failure, Outcome};

/// Returns the checks of an interface, after `--fix` or `--undo`.
pub(super) fn examine(name: &str, arguments: &Doctor) -> Outcome<Vec<Group>> {
    let subject = find(name)?;
    let mut groups = Vec::new();
    let subject = match (arguments.fix, arguments.undo) {
        (true, _) => {
            groups.push(Group { title: "Fixed", checks: fix(&subject)? });
            find(name)?
        }
        (_, true) => {
            groups.push(Group { title: "Restored", checks: undo(&subject)? });
            find(name)?
        }
        _ => subject,
    };
    groups.extend(facts(&subject));
    if !arguments.no_probe && !arguments.undo {
        groups.push(Group { title: "Probe", checks: probe::checks(&subject, arguments.peer) });
    }
    Ok(groups)
}

fn find(name: &str) -> Outcome<Subject> {
    Subject::find(name).map_err(Failure::refused)
}

/// Checks that need no sockets.
fn facts(subject: &Subject) -> Vec<Group> {
    let group = |title, checks| Group { title, checks };
    let mut link = link::checks(subject);
    if link::is_of_no_use(subject) {
        return vec![group("Interface", link)];
    }
    link.push(programs::check(subject));
    vec![
        group("Interface", link),
        group("Driver", driver::checks(subject)),
        group("Queues", queues::checks(subject)),
        group("Offloads", offloads::checks(subject)),
        group("Placement", placement::checks(subject)),
    ]
}

/// Changes what is safe to change; each old value is saved first.
fn fix(subject: &Subject) -> Outcome<Vec<Check>> {
    let changes = changes(subject);
    let mut memory = memory(subject)?;
    // Drivers may take the link down to change other settings.
    let resets = changes.iter().any(|change| !matches!(change.to, Setting::HashFields { .. }));
    let mut checks = Vec::new();
    for change in &changes {
        memory.keep(&change.from).map_err(|error| failed_at(&memory, &error))?;
        checks.push(done(&change.from.to_string(), &change.to.to_string(), change.to.apply(&subject.ethtool)));
    }
    if resets {
        probe::wait_for_carrier(&subject.interface);
    }
    match checks.is_empty() {
        true => checks.push(Check::ok("fix", "nothing that is safe to change stands in the way")),
        false => checks.push(Check::ok("undo", format!("`spray doctor {} --undo`", subject.name()))),
    }
    Ok(checks)
}

fn changes(subject: &Subject) -> Vec<Change> {
    facts(subject).into_iter().flat_map(|group| group.checks).flat_map(|check| check.changes).collect()
}

/// Restores the settings before the first `--fix`, in reverse order.
fn undo(subject: &Subject) -> Outcome<Vec<Check>> {
    let memory = memory(subject)?;
    if memory.saved.before.is_empty() {
        return Ok(vec![Check::ok("undo", "nothing: no --fix has changed this interface since the machine started")]);
    }
    let (mut checks, mut left) = (Vec::new(), Vec::new());
    for setting in memory.saved.before.iter().rev() {
        let outcome = setting.apply(&subject.ethtool);
        if outcome.is_err() {
            left.insert(0, setting.clone());
        }
        checks.push(done("", &setting.to_string(), outcome));
    }
    let path = memory.path.display().to_string();
    memory.forget_but(left).map_err(|error| Failure::failed(format!("{path}: {error}")))?;
    probe::wait_for_carrier(&subject.interface);
    Ok(checks)
}

fn memory(subject: &Subject) -> Outcome<Memory> {
    Memory::of(&subject.interface).map_err(|error| {
        Failure::refused(format!("what {} was like before cannot be read: {error}; run as root", subject.name()))
    })
}

fn failed_at(memory: &Memory, error: &io::Error) -> Failure {
    let path = memory.path.display();
    Failure::refused(format!("{path}: {error}; run as root. Nothing is changed that could not be restored"))
}

fn done(from: &str, to: &str, outcome: io::Result<()>) -> Check {
    let arrow = if from.is_empty() { String::new() } else { format!("{from} -> ") };
    match outcome {
        Ok(()) => Check::ok("set", format!("{arrow}{to}")),
        Err(error) => {
            Check::warn("set", format!("{arrow}{to}: {error}"), "run as root; otherwise the driver refuses it")
        }
    }
}

#[cfg(test)]
mod tests {
    use spray_nic::net::ethtool::Ethtool;

    use super::*;
    use crate::doctor::Status;

    /// Settings of a missing interface cannot be changed.
    #[test]
    fn settings_that_cannot_be_changed_are_reported() {
        let nowhere = Ethtool::open("spray-nope").unwrap();
        let check = done("mtu 9000", "mtu 1500", Setting::Mtu(1500).apply(&nowhere));
        assert!(check.status == Status::Warn && check.found.starts_with("mtu 9000 -> mtu 1500: "), "{}", check.found);
    }
}
