//! Queues and delivered bytes over time, for plots.

use super::hosts::{Connection, Uplink};
use super::spec::{PortSamples, SimSpec};
use super::tables::Switches;

/// Looks at every port at equal distances of time, if asked to.
#[derive(Debug)]
pub(super) struct Sampler {
    step_ps: u64,
    next_ps: u64,
    ports: Vec<PortSamples>,
    delivered: Vec<(u64, u64)>,
    /// Bytes of the connections that have ended.
    ended_bytes: u64,
}

impl Sampler {
    pub(super) fn new(spec: &SimSpec<'_>, ports: usize) -> Self {
        let on = spec.sample_ps > 0;
        let ports = if on { ports } else { 0 };
        Self {
            step_ps: spec.sample_ps,
            next_ps: if on { 0 } else { u64::MAX },
            ports: (0..ports).map(|port| PortSamples { port, samples: Vec::new() }).collect(),
            delivered: Vec::new(),
            ended_bytes: 0,
        }
    }

    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps
    }

    /// Counts what a connection received that ends now.
    pub(super) fn on_end(&mut self, bytes: u64) {
        self.ended_bytes += bytes;
    }

    /// Takes a sample if one is due.
    pub(super) fn look(&mut self, now_ps: u64, switches: &Switches, uplinks: &[Uplink], connections: &[Connection]) {
        if now_ps < self.next_ps {
            return;
        }
        self.next_ps = now_ps + self.step_ps;
        let first_host = switches.ports.len() - uplinks.len();
        for samples in &mut self.ports {
            let port = &switches.ports[samples.port];
            let waiting = match samples.port.checked_sub(first_host) {
                Some(host) => port.bytes_in(uplinks[host].link.free_ps().saturating_sub(now_ps)),
                None => port.waiting_bytes(now_ps),
            };
            samples.samples.push((now_ps, waiting, port.counters.bytes.get()));
        }
        let open = connections.iter().filter_map(|entry| entry.halves.as_ref());
        let bytes = self.ended_bytes + open.map(|halves| halves.receiver.stats().bytes).sum::<u64>();
        self.delivered.push((now_ps, bytes));
    }

    pub(super) fn finish(self) -> (Vec<PortSamples>, Vec<(u64, u64)>) {
        (self.ports, self.delivered)
    }
}
