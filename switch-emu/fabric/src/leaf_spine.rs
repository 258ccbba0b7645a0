//! Two tiers by counts and rates.

use super::Network;

/// A leaf-spine fabric: every leaf has `bundle` cables to every spine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafSpine {
    /// Number of leaves, at least 1.
    pub leaves: usize,
    /// Number of spines, at least 1.
    pub spines: usize,
    /// Hosts on each leaf, at least 1.
    pub hosts_per_leaf: usize,
    /// Parallel cables between a leaf and a spine, at least 1.
    pub bundle: usize,
    /// Rate of a host's cable in bits a second.
    pub host_bps: u64,
    /// Rate of a cable between leaf and spine in bits a second.
    pub uplink_bps: u64,
    /// Propagation time of a host's cable in ps.
    pub host_latency_ps: u64,
    /// Propagation time of a cable between leaf and spine in ps.
    pub uplink_latency_ps: u64,
    /// Time from ingress to egress queue of a switch in ps.
    pub switch_latency_ps: u64,
}

impl LeafSpine {
    /// Leaves, spines and hosts of each leaf, joined by single cables of `bps` and `latency_ps`; switches take no time.
    #[must_use]
    pub const fn uniform([leaves, spines, hosts_per_leaf]: [usize; 3], bps: u64, latency_ps: u64) -> Self {
        Self {
            leaves,
            spines,
            hosts_per_leaf,
            bundle: 1,
            host_bps: bps,
            uplink_bps: bps,
            host_latency_ps: latency_ps,
            uplink_latency_ps: latency_ps,
            switch_latency_ps: 0,
        }
    }

    /// Builds the network: hosts `h0..`, switches `leaf0..` then `spine0..`.
    pub fn network(&self) -> Network {
        let mut network = Network::default();
        let leaves: Vec<_> =
            (0..self.leaves).map(|leaf| network.add_switch(format!("leaf{leaf}"), self.switch_latency_ps)).collect();
        let spines: Vec<_> =
            (0..self.spines).map(|spine| network.add_switch(format!("spine{spine}"), self.switch_latency_ps)).collect();
        for leaf in &leaves {
            for _ in 0..self.hosts_per_leaf {
                let host = network.add_host(format!("h{}", network.hosts.len()));
                network.add_cable(host, *leaf, self.host_bps, self.host_latency_ps);
            }
        }
        for leaf in &leaves {
            for spine in &spines {
                (0..self.bundle)
                    .for_each(|_| network.add_cable(*leaf, *spine, self.uplink_bps, self.uplink_latency_ps));
            }
        }
        network
    }
}
