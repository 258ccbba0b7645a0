//! Queues and delivered bytes over time, for plots.

use spray_fabric::Node;

use super::common::Common;
use super::part::Part;
use super::spec::{PortSamples, SimSpec};
use super::watch::Watch;

/// Looks at every port at equal distances of time, if asked to.
#[derive(Debug)]
pub(super) struct Sampler {
    step_ps: u64,
    next_ps: u64,
    ports: Vec<PortSamples>,
    delivered: Vec<(u64, u64)>,
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
        }
    }

    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps
    }

    /// Takes a sample if one is due.
    pub(super) fn look<W: Watch>(&mut self, now_ps: u64, common: &Common<'_>, parts: &[Part<'_, W>]) {
        if now_ps < self.next_ps {
            return;
        }
        self.next_ps = now_ps + self.step_ps;
        for (samples, link) in self.ports.iter_mut().zip(common.links()) {
            let (port, waiting) = (common.port(parts, link), waiting(common, parts, link, now_ps));
            samples.look(now_ps, port.rate_bps, waiting, port.counters.bytes.get());
        }
        self.delivered.push((now_ps, parts.iter().map(Part::bytes_received).sum()));
    }

    pub(super) fn finish(self) -> (Vec<PortSamples>, Vec<(u64, u64)>) {
        (self.ports, self.delivered)
    }
}

/// Bytes that wait for a link.
pub(super) fn waiting<W: Watch>(common: &Common<'_>, parts: &[Part<'_, W>], link: usize, now_ps: u64) -> u64 {
    let port = common.port(parts, link);
    match common.spec.network.links[link].from {
        Node::Host(host) => {
            let net = &parts[common.locate(link).part].net;
            let uplink = &net.uplinks[common.partition.place_of_host[host] as usize];
            port.bytes_in(uplink.link.free_ps().saturating_sub(now_ps))
        }
        Node::Switch(_) => port.waiting_bytes(now_ps),
    }
}
