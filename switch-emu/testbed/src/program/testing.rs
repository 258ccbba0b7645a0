//! Reading a verdict off the counters around a test run: the kernel tells only the action.

use super::ProgramError;
use spray_fabric::{ChassisCounters, PortCounters};
use spray_pipeline::{Cause, Verdict};

/// All counters at one moment.
pub(super) struct Snapshot {
    pub(super) ports: Vec<PortCounters>,
    pub(super) chassis: ChassisCounters,
}

const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

pub(super) fn verdict(
    action: u32,
    len: usize,
    before: &Snapshot,
    after: &Snapshot,
    outside: &[usize],
) -> Result<Verdict, ProgramError> {
    match action {
        PASS => Ok(Verdict::Pass),
        REDIRECT => {
            let sent = |port: &&usize| after.ports[**port].frames > before.ports[**port].frames;
            let port = outside.iter().find(sent).copied().ok_or_else(|| unexpected(action))?;
            let trimmed = (0..after.ports.len()).any(|port| after.ports[port].trims > before.ports[port].trims);
            Ok(Verdict::Redirect { port: port as u32, trimmed_len: if trimmed { len as u32 } else { 0 } })
        }
        DROP => cause(before, after).map(Verdict::Drop).ok_or_else(|| unexpected(action)),
        _ => Err(unexpected(action)),
    }
}

fn unexpected(action: u32) -> ProgramError {
    ProgramError::Fabric(format!("the program returned action {action} without counting it"))
}

fn cause(before: &Snapshot, after: &Snapshot) -> Option<Cause> {
    let (old, new) = (&before.chassis, &after.chassis);
    if new.malformed > old.malformed {
        return Some(Cause::Malformed);
    }
    if new.no_route > old.no_route {
        return Some(Cause::NoRoute);
    }
    if new.hop_limit > old.hop_limit {
        return Some(Cause::HopLimit);
    }
    before.ports.iter().zip(&after.ports).find_map(|(old, new)| port_cause(old, new))
}

fn port_cause(old: &PortCounters, new: &PortCounters) -> Option<Cause> {
    let causes = [
        (old.drops_queue, new.drops_queue, Cause::Queue),
        (old.drops_down, new.drops_down, Cause::Down),
        (old.drops_silent, new.drops_silent, Cause::Silent),
        (old.drops_random, new.drops_random, Cause::Random),
        (old.drops_ttl, new.drops_ttl, Cause::Ttl),
    ];
    causes.into_iter().find(|(old, new, _)| new > old).map(|(_, _, cause)| cause)
}
