//! `spray doctor IF`: checks an interface, and changes its settings.

use super::change::{Change, Setting};
use super::check::{Check, Group};
use super::subject::Subject;
use super::{driver, link, offloads, placement, probe, programs, queues};
use crate::args::Doctor;
use crate::failure::{Failure, Outcome};

/// Returns the checks of an interface, after `--fix`.
pub(super) fn examine(name: &str, arguments: &Doctor) -> Outcome<Vec<Group>> {
    let mut subject = find(name)?;
    let mut groups = Vec::new();
    if arguments.fix {
        groups.push(Group { title: "Fixed", checks: fix(&subject) });
        subject = find(name)?;
    }
    groups.extend(facts(&subject));
    if !arguments.no_probe {
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

/// Changes what is safe to change.
fn fix(subject: &Subject) -> Vec<Check> {
    let checks = facts(subject).into_iter().flat_map(|group| group.checks);
    let changes: Vec<Change> = checks.flat_map(|check| check.changes).collect();
    if changes.is_empty() {
        return vec![Check::ok("fix", "nothing that is safe to change stands in the way")];
    }
    let checks = changes.iter().map(|change| set(subject, change)).collect();
    // Drivers may take the link down to change other settings.
    if changes.iter().any(|change| !matches!(change.to, Setting::HashFields { .. })) {
        probe::wait_for_carrier(&subject.interface);
    }
    checks
}

fn set(subject: &Subject, Change { from, to }: &Change) -> Check {
    match to.apply(&subject.ethtool) {
        Ok(()) => Check::ok("set", format!("{from} -> {to}")),
        Err(error) => {
            Check::warn("set", format!("{from} -> {to}: {error}"), "run as root; otherwise the driver refuses it")
        }
    }
}
