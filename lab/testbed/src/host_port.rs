//! Parts of the fabric that hosts emulate: the port that leads to the host, and the host's link.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::{BinScale, ChassisSpec, Fabric, LinkChange, Network, Node, PortBins, PortCounters, Thresholds};
use spray_pipeline::Cause;
use spray_pipeline::bins::Cells;
use spray_pipeline::config::{OUTSIDE, PortConfig};
use spray_pipeline::last_port::{self, Delivery};
use spray_pipeline::port;

/// The switch port that leads to a host, emulated there.
pub(crate) trait LastPort: Debug + Send {
    /// The least latency from the port to the host.
    fn latency_ps(&self) -> u64;

    /// Passes a frame with its shim through the port; `None` if it is lost. Called in the order of
    /// virtual times, except for late frames.
    fn deliver(&mut self, frame: &mut [u8]) -> Option<Delivery>;
}

/// The emulated switch port that leads to a host.
#[derive(Clone, Debug)]
pub(super) struct HostPort {
    pub port: Arc<last_port::LastPort<AtomicU64>>,
    pub bins: Arc<PortBins<AtomicU64>>,
}

impl HostPort {
    /// Returns the emulated ports of `fabric` by number; `None` for those that lead to switches.
    pub fn all(fabric: &Fabric, frame_bytes: u32, bins: BinScale) -> Vec<Option<Self>> {
        let spec = ChassisSpec { frame_bytes, bins, ..ChassisSpec::whole(fabric) };
        let port = |(number, port): (usize, &spray_fabric::Port)| {
            matches!(port.to, Node::Host(_)).then(|| Self {
                port: Arc::new(last_port::LastPort::new(number as u32, fabric.seed, spec.port(port))),
                bins: Arc::new(PortBins::new(bins)),
            })
        };
        fabric.ports.iter().enumerate().map(port).collect()
    }

    pub fn take(&self, frame: &mut [u8]) -> Result<Delivery, Cause> {
        self.port.deliver(frame, |transit| self.bins.record(transit))
    }
}

impl LastPort for HostPort {
    fn latency_ps(&self) -> u64 {
        self.port.latency_ps()
    }

    fn deliver(&mut self, frame: &mut [u8]) -> Option<Delivery> {
        self.take(frame).ok()
    }
}

/// A host's own link with changes during the run.
#[derive(Debug)]
pub(super) struct TimedHostLink {
    /// Follows the numbers of all ports.
    number: u32,
    seed: u64,
    rate_bps: u64,
    changes: Vec<LinkChange>,
    config: PortConfig,
    pub counters: PortCounters<AtomicU64>,
    frames: AtomicU64,
}

impl TimedHostLink {
    /// Returns the link of each host; `None` for those without changes.
    pub fn all(fabric: &Fabric, network: &Network) -> Vec<Option<Arc<Self>>> {
        let link = |(host, its): (usize, &spray_fabric::FabricHost)| {
            let link = &network.links[network.uplink(host)];
            let mut config = PortConfig::new(link.rate_bps, link.latency_ps, &Thresholds::NONE, OUTSIDE, 0);
            for change in &its.changes {
                config.push(link.rate_bps, change);
            }
            let own = Self {
                number: (fabric.ports.len() + host) as u32,
                seed: fabric.seed,
                rate_bps: link.rate_bps,
                changes: its.changes.clone(),
                config,
                counters: PortCounters::default(),
                frames: AtomicU64::new(0),
            };
            (!its.changes.is_empty()).then(|| Arc::new(own))
        };
        fabric.hosts.iter().enumerate().map(link).collect()
    }

    pub fn rate_bps(&self, now_ps: u64) -> u64 {
        let now = self.changes.iter().rev().find(|change| change.at_ps <= now_ps);
        now.map_or(self.rate_bps, |change| change.state.rate_bps(self.rate_bps))
    }

    /// Whether the link carries a frame of `len` bytes sent at `now_ps`.
    pub fn carries(&self, now_ps: u64, len: u32, data: bool) -> bool {
        let Self { number, seed, config, counters, frames, .. } = self;
        let random = port::share(frames.fetch_add(1, Ordering::Relaxed) as u32, now_ps, *number, *seed);
        config.traverse_link(now_ps, len, data, random, counters).is_ok()
    }
}
