//! Settings shared by the topologies that are defined by counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Gbps, Micros};

use crate::{Network, Node, TopoTier};

/// The cables of a topology that is defined by counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cables {
    /// Rate of the hosts' cables.
    #[schemars(range(min = 0.01, max = 100_000))]
    pub host_gbps: Gbps,
    /// Propagation time of a cable, unless overridden by another setting.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_us: Micros,
    /// Propagation time of the hosts' cables. By default `latency_us`.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub host_latency_us: Option<Micros>,
    /// Time through a switch, in addition to cables and queues.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub switch_latency_us: Micros,
}

impl Default for Cables {
    fn default() -> Self {
        Self::uniform(100_000_000_000, 1_000_000)
    }
}

impl Cables {
    /// Returns cables of `bps` and `latency_ps`, and switches without latency.
    pub const fn uniform(bps: u64, latency_ps: u64) -> Self {
        Self {
            host_gbps: Gbps::from_bps(bps),
            latency_us: Micros::from_ps(latency_ps),
            host_latency_us: None,
            switch_latency_us: Micros::new(0),
        }
    }

    /// Rate of cables between switches in bits per second; `own` overrides the default.
    pub(crate) fn bps(&self, own: Option<Gbps>) -> u64 {
        own.unwrap_or(self.host_gbps).bps()
    }

    /// Returns the tier of the hosts' switches.
    pub(crate) fn host_tier(&self, radix_down: usize, radix_up: usize) -> TopoTier {
        let tier = self.tier(Some(self.host_gbps), [radix_down, radix_up], 1);
        TopoTier { downlink_latency_ps: self.host_latency_ps(), ..tier }
    }

    /// Returns a higher tier with cables to the tier below at the rate `own`, if given.
    pub(crate) fn tier(&self, own: Option<Gbps>, [radix_down, radix_up]: [usize; 2], bundle: usize) -> TopoTier {
        TopoTier {
            downlink_bps: self.bps(own),
            radix_down,
            radix_up,
            downlink_latency_ps: self.latency_us.ps(),
            switch_latency_ps: self.switch_latency_us.ps(),
            oversubscribed: 0,
            bundle,
        }
    }

    pub(crate) fn add_switch(&self, network: &mut Network, name: String) -> Node {
        network.add_switch(name, self.switch_latency_us.ps())
    }

    /// Adds `hosts` hosts, named `h0` and on, each with a cable to `switch`.
    pub(crate) fn add_hosts(&self, network: &mut Network, hosts: usize, switch: Node) {
        for _ in 0..hosts {
            let host = network.add_host(format!("h{}", network.hosts.len()));
            network.add_cable(host, switch, self.host_gbps.bps(), self.host_latency_ps());
        }
    }

    pub(crate) fn host_latency_ps(&self) -> u64 {
        self.host_latency_us.unwrap_or(self.latency_us).ps()
    }
}

pub(crate) fn one() -> usize {
    1
}
