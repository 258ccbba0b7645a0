//! Single frames through the kernel's test run, which returns only the action: the verdict follows
//! from the counters.

use super::super::switch::SWITCH;
use super::super::{ProgramError, SwitchProgram};
use libbpf_rs::ProgramInput;
use spray_fabric::{ChassisCounters, PortCounters};
use spray_pipeline::config::HOST;
use spray_pipeline::shim::SHIM_BYTES;
use spray_pipeline::{Cause, Verdict};
use spray_wire::Ports;
use spray_wire::switch_view::{self, Parsed, address_words};

impl SwitchProgram {
    /// Runs one frame through the program as if it entered at `ingress`; nothing is sent. There
    /// must be no other traffic meanwhile.
    pub(super) fn test_run(&self, frame: &[u8], ingress: usize) -> Result<(Verdict, Vec<u8>), ProgramError> {
        self.prepare_test(ingress)?;
        let before = self.snapshot()?;
        let mut out = vec![0; frame.len() + 256];
        let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..Default::default() };
        let output = self.program(SWITCH)?.test_run(input).map_err(ProgramError::TestRun)?;
        let (action, len) = (output.return_value, output.data.map_or(0, |data| data.len()));
        out.truncate(len);
        let after = self.snapshot()?;
        let port = self.sent_by(&before, &after).or_else(|| self.handed_over(&out));
        Ok((verdict(action, len, &before, &after, port)?, out))
    }

    /// Returns the port out of the chassis that counted a frame.
    fn sent_by(&self, before: &Snapshot, after: &Snapshot) -> Option<usize> {
        self.external.iter().copied().find(|port| after.ports[*port].frames > before.ports[*port].frames)
    }

    /// Returns the port to the destination host of `frame`, which counts nothing here because the
    /// host emulates it.
    fn handed_over(&self, frame: &[u8]) -> Option<usize> {
        let Parsed::Ours(headers) = switch_view::parse(frame.get(SHIM_BYTES..)?, Ports::DEFAULT) else { return None };
        let tables = &self.tables;
        let host = tables.hosts.iter().find(|(address, _)| address_words(*address) == headers.destination)?.1;
        let only = |switch| tables.groups[tables.globals.group_index(0, switch, host) as usize].first;
        let ports = (0..tables.globals.switches).filter_map(|switch| tables.members.get(only(switch) as usize));
        ports.map(|port| *port as usize).find(|port| tables.ports[*port].next == HOST)
    }

    fn snapshot(&self) -> Result<Snapshot, ProgramError> {
        let ports = (0..self.tables.ports.len()).map(|port| self.counters(port)).collect::<Result<_, _>>()?;
        Ok(Snapshot { ports, chassis: self.chassis_counters()? })
    }
}

/// All counters at one moment.
struct Snapshot {
    ports: Vec<PortCounters>,
    chassis: ChassisCounters,
}

const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = 4;

fn verdict(
    action: u32,
    len: usize,
    before: &Snapshot,
    after: &Snapshot,
    port: Option<usize>,
) -> Result<Verdict, ProgramError> {
    let trimmed = (0..after.ports.len()).any(|port| after.ports[port].trims > before.ports[port].trims);
    let trimmed_len = if trimmed { len as u32 } else { 0 };
    match action {
        PASS => Ok(Verdict::Pass),
        TX => Ok(Verdict::Return { trimmed_len }),
        REDIRECT => Ok(Verdict::Redirect { port: port.ok_or_else(|| unexpected(action))? as u32, trimmed_len }),
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
