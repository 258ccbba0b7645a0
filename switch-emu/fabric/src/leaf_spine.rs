//! Leaf-spine topologies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::Gbps;

use super::limits::Size;
use super::{Cables, Network, TopoFile};

/// A leaf-spine fabric: every leaf has `bundle` cables to every spine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeafSpine {
    /// Number of leaves, `leaf0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub leaves: usize,
    /// Number of spines, `spine0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub spines: usize,
    /// Hosts on each leaf, `h0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub hosts_per_leaf: usize,
    /// Parallel cables between two switches.
    #[serde(default = "crate::cables::one")]
    #[schemars(range(min = 1, max = 16))]
    pub bundle: usize,
    /// Rate of the cables between the two lowest tiers of switches. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 100_000))]
    pub uplink_gbps: Option<Gbps>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

impl LeafSpine {
    /// Returns a fabric of `[leaves, spines, hosts_per_leaf]` with single cables of `bps` and
    /// `latency_ps`, and switches without latency.
    #[must_use]
    pub const fn uniform([leaves, spines, hosts_per_leaf]: [usize; 3], bps: u64, latency_ps: u64) -> Self {
        let cables = Cables::uniform(bps, latency_ps);
        Self { leaves, spines, hosts_per_leaf, bundle: 1, uplink_gbps: None, cables }
    }

    /// Returns the counts of the network.
    pub fn size(&self) -> Size {
        self.tree().size()
    }

    /// Builds the network: hosts `h0..`, switches `leaf0..` then `spine0..`.
    pub fn network(&self) -> Network {
        self.tree().network()
    }

    fn tree(&self) -> TopoFile {
        let &Self { leaves, spines, hosts_per_leaf, bundle, uplink_gbps, cables } = self;
        let nodes = leaves * hosts_per_leaf;
        let tiers = vec![
            cables.host_tier(hosts_per_leaf, spines * bundle),
            cables.tier(uplink_gbps, [leaves * bundle, 0], bundle),
        ];
        TopoFile { nodes, podsize: nodes, tiers }
    }
}
