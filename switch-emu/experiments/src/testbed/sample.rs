//! Samples of queues and deliveries while a run lasts.

use super::RunError;
use super::drive::Report;
use super::rig::Rig;
use crate::results::{DeliveredSample, PortSample, PortSeries};
use spray_fabric::{Fabric, Node};

/// Ports that are sampled at most: each costs a few microseconds of the machine that also plays the fabric.
const MAX_PORTS: usize = 128;

/// Looks at ports every so often.
pub(super) struct Sampler<'a> {
    rig: &'a Rig,
    /// Port, switch and series.
    ports: Vec<(usize, usize, PortSeries)>,
    delivered: Vec<DeliveredSample>,
    every_ps: u64,
    lead_in_ps: u64,
    next_ps: u64,
}

/// What a sampler has seen.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub ports: Vec<PortSeries>,
    pub delivered: Vec<DeliveredSample>,
}

impl<'a> Sampler<'a> {
    /// Samples every `every_ps` (0: never) from `lead_in_ps` on.
    pub fn new(rig: &'a Rig, fabric: &Fabric, every_ps: u64, lead_in_ps: u64) -> Self {
        // Ports to other switches first: they are what balancers balance.
        let mut ports: Vec<_> = fabric.ports.iter().enumerate().collect();
        ports.sort_by_key(|(number, port)| (matches!(port.to, Node::Host(_)), *number));
        let series = |name: &str| PortSeries { name: name.to_string(), samples: Vec::new() };
        let ports = ports.into_iter().take(MAX_PORTS);
        let ports = ports.map(|(number, port)| (number, port.switch, series(&port.name))).collect();
        Self { rig, ports, delivered: Vec::new(), every_ps, lead_in_ps, next_ps: lead_in_ps }
    }

    /// Takes a sample if one is due.
    pub fn look(&mut self, report: &Report) -> Result<(), RunError> {
        if self.every_ps == 0 || report.now_ps < self.next_ps {
            return Ok(());
        }
        let time_us = (report.now_ps - self.lead_in_ps) as f64 / 1e6;
        self.next_ps = report.now_ps - (report.now_ps - self.lead_in_ps) % self.every_ps + self.every_ps;
        self.delivered.push(DeliveredSample { time_us, bytes: report.delivered_bytes });
        for (port, switch, series) in &mut self.ports {
            let program = self.rig.program(*switch);
            let queue = program.queue_sample(*port, report.now_ps)?;
            let sent_bytes = program.counters(*port)?.bytes;
            let queue_bytes = queue.data_bytes + queue.control_bytes;
            series.samples.push(PortSample { time_us, queue_bytes, sent_bytes });
        }
        Ok(())
    }

    /// Everything seen.
    pub fn finish(self) -> Samples {
        Samples { ports: self.ports.into_iter().map(|(_, _, series)| series).collect(), delivered: self.delivered }
    }
}
