//! Parts of the fabric that hosts emulate: the port that leads to the host, and the host's link.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::{
    ChassisSpec, Fabric, LinkChange, Network, Node, PortBins, PortCounters, PortSamples, Scale, Thresholds,
};
use spray_pipeline::Cause;
use spray_pipeline::config::{OUTSIDE, PortConfig};
use spray_pipeline::last_port::{self, Delivery};
use spray_pipeline::port;

/// The switch port that leads to a host, emulated there.
pub(crate) trait LastPort: Debug + Send {
    /// The least latency from the port to the host.
    fn latency_ps(&self) -> u64;

    /// Passes a frame with its shim through the port. Called in the order of virtual times, except
    /// for late frames. Returns when it arrives at the host, and the new length of both; `None` if
    /// it is lost.
    fn deliver(&mut self, frame: &mut [u8]) -> Option<(u64, u32)>;
}

#[derive(Clone, Debug)]
pub(super) struct HostPort(Arc<Emulated>);

#[derive(Debug)]
struct Emulated {
    port: last_port::LastPort<AtomicU64>,
    bins: PortBins<AtomicU64>,
}

impl HostPort {
    /// Returns the emulated ports of `fabric` by number; `None` for those that lead to switches.
    pub fn all(fabric: &Fabric, frame_bytes: u32, bins: Scale) -> Vec<Option<Self>> {
        let spec = ChassisSpec { frame_bytes, bins, ..ChassisSpec::whole(fabric) };
        let emulated = |number: usize, port: &spray_fabric::Port| Emulated {
            port: last_port::LastPort::new(number as u32, fabric.seed, spec.port(port)),
            bins: PortBins::new(bins),
        };
        let port = |(number, port): (usize, &spray_fabric::Port)| {
            matches!(port.to, Node::Host(_)).then(|| Self(Arc::new(emulated(number, port))))
        };
        fabric.ports.iter().enumerate().map(port).collect()
    }

    pub fn samples(&self, number: usize, end_ps: u64) -> PortSamples {
        self.0.bins.samples(number, end_ps)
    }

    pub fn counters_until(&self, end_ps: u64) -> PortCounters {
        self.0.port.counters_until(end_ps)
    }

    pub fn queue_bytes(&self, now_ps: u64) -> [u64; 2] {
        self.0.port.queue_bytes(now_ps)
    }
}

impl HostPort {
    pub fn take(&self, frame: &mut [u8]) -> Result<Delivery, Cause> {
        self.0.port.deliver(frame, |crossing| self.0.bins.note(crossing))
    }
}

impl LastPort for HostPort {
    fn latency_ps(&self) -> u64 {
        self.0.port.latency_ps()
    }

    fn deliver(&mut self, frame: &mut [u8]) -> Option<(u64, u32)> {
        self.take(frame).ok().map(|Delivery { due_ps, len }| (due_ps, len))
    }
}

/// A host's own link with changes during the run.
#[derive(Clone, Debug)]
pub(super) struct OwnLink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Follows the numbers of all ports.
    number: u32,
    seed: u64,
    rate_bps: u64,
    changes: Vec<LinkChange>,
    config: PortConfig,
    counters: PortCounters<AtomicU64>,
    frames: AtomicU64,
}

impl OwnLink {
    /// Returns the link of each host; `None` for those without changes.
    pub fn all(fabric: &Fabric, network: &Network) -> Vec<Option<Self>> {
        let link = |(host, its): (usize, &spray_fabric::FabricHost)| {
            let link = &network.links[network.uplink(host)];
            let mut config = PortConfig::new(link.rate_bps, link.latency_ps, &Thresholds::NONE, OUTSIDE, 0);
            for change in &its.changes {
                config.push(link.rate_bps, change);
            }
            let inner = Inner {
                number: (fabric.ports.len() + host) as u32,
                seed: fabric.seed,
                rate_bps: link.rate_bps,
                changes: its.changes.clone(),
                config,
                counters: PortCounters::default(),
                frames: AtomicU64::new(0),
            };
            (!its.changes.is_empty()).then(|| Self(Arc::new(inner)))
        };
        fabric.hosts.iter().enumerate().map(link).collect()
    }

    pub fn counters(&self) -> PortCounters {
        self.0.counters.read()
    }

    pub fn rate_bps(&self, now_ps: u64) -> u64 {
        let now = self.0.changes.iter().rev().find(|change| change.at_ps <= now_ps);
        now.map_or(self.0.rate_bps, |change| change.state.rate_bps(self.0.rate_bps))
    }

    /// Whether the link carries a frame of `len` bytes sent at `now_ps`.
    pub fn carries(&self, now_ps: u64, len: u32, data: bool) -> bool {
        let Inner { number, seed, config, counters, frames, .. } = &*self.0;
        let random = port::share(frames.fetch_add(1, Ordering::Relaxed) as u32, now_ps, *number, *seed);
        config.carry(now_ps, len, data, random, counters).is_ok()
    }
}
