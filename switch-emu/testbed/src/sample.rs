//! Samples of queues and deliveries while a run lasts.

use super::RunError;
use super::drive::Report;
use super::host_port::HostPort;
use super::hosts::Setup;
use super::rig::Rig;
use spray_fabric::{Node, PortSamples};

/// Ports that are sampled at most: each costs a few microseconds of the machine that also plays the fabric.
const MAX_PORTS: usize = 128;

/// Looks at ports every so often.
pub(super) struct Sampler<'a> {
    /// By number those ports that hosts play.
    played: &'a [Option<HostPort>],
    /// Switch and series of each port.
    ports: Vec<(usize, PortSamples)>,
    /// By port.
    rates: Vec<u64>,
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
    /// Samples as often as the run's spec says, from `lead_in_ps` on.
    pub fn new(setup: &Setup<'a>, lead_in_ps: u64) -> Self {
        // Ports to other switches first: they are what balancers balance.
        let mut ports: Vec<_> = setup.fabric.ports.iter().enumerate().collect();
        ports.sort_by_key(|(number, port)| (matches!(port.to, Node::Host(_)), *number));
        let ports = ports.into_iter().take(MAX_PORTS);
        let ports = ports.map(|(port, its)| (its.switch, PortSamples { port, samples: Vec::new() })).collect();
        let every_ps = setup.spec.sample_ps;
        let rates = setup.fabric.ports.iter().map(|port| port.rate_bps).collect();
        Self { played: setup.ports, ports, rates, delivered: Vec::new(), every_ps, lead_in_ps, next_ps: lead_in_ps }
    }

    /// Takes a sample if one is due.
    pub fn look(&mut self, rig: &Rig, report: &Report) -> Result<(), RunError> {
        if self.every_ps == 0 || report.now_ps < self.next_ps {
            return Ok(());
        }
        let time_ps = report.now_ps - self.lead_in_ps;
        self.next_ps = report.now_ps - time_ps % self.every_ps + self.every_ps;
        self.delivered.push((time_ps, report.delivered_bytes));
        for (switch, series) in &mut self.ports {
            let ([both, control], came) = match &self.played[series.port] {
                Some(port) => (port.queue_bytes(report.now_ps), port.counters().bytes),
                None => {
                    let program = rig.program(*switch);
                    (program.queue_bytes(series.port, report.now_ps)?, program.counters(series.port)?.bytes)
                }
            };
            series.look(time_ps, self.rates[series.port], both.max(control), came);
        }
        Ok(())
    }

    /// Everything seen.
    pub fn finish(self) -> Samples {
        Samples { ports: self.ports.into_iter().map(|(_, series)| series).collect(), delivered: self.delivered }
    }
}
