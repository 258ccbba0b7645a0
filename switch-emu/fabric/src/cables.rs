//! What the cables of a topology by counts have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Gbps, Micros};

use crate::{Network, Node};

/// The cables of a topology that is given by counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cables {
    /// Rate of the hosts' cables.
    #[schemars(range(min = 0.01, max = 10_000))]
    pub host_gbps: Gbps,
    /// Propagation time of a cable, unless another setting says otherwise.
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
    /// Cables of 100 Gb/s and 1 us.
    fn default() -> Self {
        Self::uniform(100_000_000_000, 1_000_000)
    }
}

impl Cables {
    /// Cables of `bps` and `latency_ps`; switches take no time.
    pub const fn uniform(bps: u64, latency_ps: u64) -> Self {
        Self {
            host_gbps: Gbps::from_bps(bps),
            latency_us: Micros::from_ps(latency_ps),
            host_latency_us: None,
            switch_latency_us: Micros::new(0),
        }
    }

    /// Rate of cables between switches in bits a second, unless `own` says otherwise.
    pub(crate) fn bps(&self, own: Option<Gbps>) -> u64 {
        own.unwrap_or(self.host_gbps).bps()
    }

    pub(crate) fn add_switch(&self, network: &mut Network, name: String) -> Node {
        network.add_switch(name, self.switch_latency_us.ps())
    }

    /// Adds `hosts` hosts, each with a cable to `switch`; they are called `h0` and on.
    pub(crate) fn add_hosts(&self, network: &mut Network, hosts: usize, switch: Node) {
        for _ in 0..hosts {
            let host = network.add_host(format!("h{}", network.hosts.len()));
            network.add_cable(host, switch, self.host_gbps.bps(), self.host_latency_ps());
        }
    }

    /// Propagation time of the hosts' cables in ps.
    pub(crate) fn host_latency_ps(&self) -> u64 {
        self.host_latency_us.unwrap_or(self.latency_us).ps()
    }
}

/// One, for settings of which there is one by default.
pub(crate) fn one() -> usize {
    1
}
