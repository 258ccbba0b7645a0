//! Fat trees of three tiers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::Gbps;

use super::limits::Size;
use super::{Cables, Network, TopoFile};

/// A fat tree of three tiers: pods of ToRs and aggregation switches, each ToR with `bundle` cables
/// to every aggregation switch of its pod, and cores above. Core `c` has a cable to aggregation
/// switch `c % aggs_per_pod` of every pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FatTree {
    /// Number of pods.
    #[schemars(range(min = 1, max = 256))]
    pub pods: usize,
    /// ToRs of a pod, `tor0` and on.
    #[schemars(range(min = 1, max = 128))]
    pub tors_per_pod: usize,
    /// Aggregation switches of a pod, `agg0` and on; every ToR of the pod has cables to each.
    #[schemars(range(min = 1, max = 128))]
    pub aggs_per_pod: usize,
    /// Number of cores, `core0` and on, a multiple of `aggs_per_pod`. Core c has cables to
    /// aggregation switch c modulo `aggs_per_pod` of each pod.
    #[schemars(range(min = 1, max = 4_096))]
    pub cores: usize,
    /// Hosts on each ToR, `h0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub hosts_per_tor: usize,
    /// Parallel cables between two switches.
    #[serde(default = "crate::cables::one")]
    #[schemars(range(min = 1, max = 16))]
    pub bundle: usize,
    /// Rate of the cables between the two lowest tiers of switches. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 100_000))]
    pub uplink_gbps: Option<Gbps>,
    /// Rate of the cables to cores. By default `uplink_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 100_000))]
    pub core_gbps: Option<Gbps>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

impl FatTree {
    /// Returns a fat tree of `[pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor]` with single
    /// cables of `bps` and `latency_ps`, and switches without latency.
    #[must_use]
    pub const fn uniform(counts: [usize; 5], bps: u64, latency_ps: u64) -> Self {
        let [pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor] = counts;
        let cables = Cables::uniform(bps, latency_ps);
        Self {
            pods,
            tors_per_pod,
            aggs_per_pod,
            cores,
            hosts_per_tor,
            bundle: 1,
            uplink_gbps: None,
            core_gbps: None,
            cables,
        }
    }

    /// Returns the counts of the network.
    pub fn size(&self) -> Size {
        self.tree().size()
    }

    /// Builds the network: hosts `h0..`, switches `tor0..`, `agg0..` (by pod), `core0..`.
    pub fn network(&self) -> Network {
        self.tree().network()
    }

    fn tree(&self) -> TopoFile {
        let &Self { pods, tors_per_pod, aggs_per_pod, hosts_per_tor, bundle, cables, .. } = self;
        let podsize = tors_per_pod * hosts_per_tor;
        let planes = self.cores / aggs_per_pod;
        let tiers = vec![
            cables.host_tier(hosts_per_tor, aggs_per_pod * bundle),
            cables.tier(self.uplink_gbps, [tors_per_pod * bundle, planes * bundle], bundle),
            cables.tier(self.core_gbps.or(self.uplink_gbps), [pods * bundle, 0], bundle),
        ];
        TopoFile { nodes: pods * podsize, podsize, tiers }
    }
}
