//! Three tiers by counts and rates.

use super::{Network, TopoFile, TopoTier};

/// A fat tree of three tiers: pods of ToRs and aggregation switches, each ToR with `bundle` cables to every aggregation
/// switch of its pod, and cores above. Core `c` has a cable to aggregation switch `c % aggs_per_pod` of every pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FatTree {
    /// Number of pods, at least 1.
    pub pods: usize,
    /// ToRs of a pod, at least 1.
    pub tors_per_pod: usize,
    /// Aggregation switches of a pod, at least 1.
    pub aggs_per_pod: usize,
    /// Cores, a multiple of `aggs_per_pod`.
    pub cores: usize,
    /// Hosts on each ToR, at least 1.
    pub hosts_per_tor: usize,
    /// Parallel cables between a ToR and an aggregation switch, and between that and a core; at least 1.
    pub bundle: usize,
    /// Rate of a host's cable in bits a second.
    pub host_bps: u64,
    /// Rate of a cable between ToR and aggregation switch in bits a second.
    pub uplink_bps: u64,
    /// Rate of a cable between aggregation switch and core in bits a second.
    pub core_bps: u64,
    /// Propagation time of a host's cable in ps.
    pub host_latency_ps: u64,
    /// Propagation time of every other cable in ps.
    pub uplink_latency_ps: u64,
    /// Time from ingress to egress queue of a switch in ps.
    pub switch_latency_ps: u64,
}

impl FatTree {
    /// Pods, ToRs and aggregation switches of each pod, cores and hosts of each ToR, joined by single cables of `bps` and
    /// `latency_ps`; switches take no time.
    #[must_use]
    pub const fn uniform(counts: [usize; 5], bps: u64, latency_ps: u64) -> Self {
        let [pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor] = counts;
        Self {
            pods,
            tors_per_pod,
            aggs_per_pod,
            cores,
            hosts_per_tor,
            bundle: 1,
            host_bps: bps,
            uplink_bps: bps,
            core_bps: bps,
            host_latency_ps: latency_ps,
            uplink_latency_ps: latency_ps,
            switch_latency_ps: 0,
        }
    }

    /// Builds the network: hosts `h0..`, switches `tor0..` and `agg0..` (pod by pod), then `core0..`.
    pub fn network(&self) -> Network {
        let podsize = self.tors_per_pod * self.hosts_per_tor;
        let tier = |downlink_bps, downlink_latency_ps, radix_down, radix_up, bundle| TopoTier {
            downlink_bps,
            radix_down,
            radix_up,
            downlink_latency_ps,
            switch_latency_ps: self.switch_latency_ps,
            oversubscribed: 0,
            bundle,
        };
        let (bundle, latency_ps) = (self.bundle, self.uplink_latency_ps);
        let planes = self.cores / self.aggs_per_pod;
        let tiers = vec![
            tier(self.host_bps, self.host_latency_ps, self.hosts_per_tor, self.aggs_per_pod * bundle, 1),
            tier(self.uplink_bps, latency_ps, self.tors_per_pod * bundle, planes * bundle, bundle),
            tier(self.core_bps, latency_ps, self.pods * bundle, 0, bundle),
        ];
        TopoFile { nodes: self.pods * podsize, podsize, tiers }.network()
    }
}
