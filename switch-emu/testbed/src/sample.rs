//! Samples of queues and deliveries while a run lasts.

use super::RunError;
use super::drive::Report;
use super::rig::Rig;
use spray_fabric::{Fabric, Node, PortSamples};

/// Ports that are sampled at most: each costs a few microseconds of the machine that also plays the fabric.
const MAX_PORTS: usize = 128;

/// Looks at ports every so often.
pub(super) struct Sampler<'a> {
    rig: &'a Rig,
    /// Switch and series of each port.
    ports: Vec<(usize, PortSamples)>,
    delivered: Vec<(u64, u64)>,
    every_ps: u64,
    lead_in_ps: u64,
    next_ps: u64,
}

/// What a sampler has seen.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub ports: Vec<PortSamples>,
    pub delivered: Vec<(u64, u64)>,
}

impl<'a> Sampler<'a> {
    /// Samples every `every_ps` (0: never) from `lead_in_ps` on.
    pub fn new(rig: &'a Rig, fabric: &Fabric, every_ps: u64, lead_in_ps: u64) -> Self {
        // Ports to other switches first: they are what balancers balance.
        let mut ports: Vec<_> = fabric.ports.iter().enumerate().collect();
        ports.sort_by_key(|(number, port)| (matches!(port.to, Node::Host(_)), *number));
        let ports = ports.into_iter().take(MAX_PORTS);
        let ports = ports.map(|(port, its)| (its.switch, PortSamples { port, samples: Vec::new() })).collect();
        Self { rig, ports, delivered: Vec::new(), every_ps, lead_in_ps, next_ps: lead_in_ps }
    }

    /// Takes a sample if one is due.
    pub fn look(&mut self, report: &Report) -> Result<(), RunError> {
        if self.every_ps == 0 || report.now_ps < self.next_ps {
            return Ok(());
        }
        let time_ps = report.now_ps - self.lead_in_ps;
        self.next_ps = report.now_ps - time_ps % self.every_ps + self.every_ps;
        self.delivered.push((time_ps, report.delivered_bytes));
        for (switch, series) in &mut self.ports {
            let program = self.rig.program(*switch);
            let [both, control] = program.queue_bytes(series.port, report.now_ps)?;
            let sent_bytes = program.counters(series.port)?.bytes;
            series.samples.push((time_ps, both.max(control), sent_bytes));
        }
        Ok(())
    }

    /// Everything seen.
    pub fn finish(self) -> Samples {
        Samples { ports: self.ports.into_iter().map(|(_, series)| series).collect(), delivered: self.delivered }
    }
}
