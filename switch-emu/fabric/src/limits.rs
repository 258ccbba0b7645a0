//! Limits of scenarios. Readers check them before they allocate, and name the limit in errors.

/// Maximum number of hosts: route tables must fit into memory.
pub const MAX_HOSTS: usize = 65_536;
/// Maximum number of cables: 2.5 times those of a full fat tree of [`MAX_HOSTS`].
pub const MAX_CABLES: usize = 1 << 19;
/// Maximum entries of a route table: that tree (2,048 ToRs and aggs, 1,024 cores) has 279 million.
pub const MAX_ROUTES: usize = 300_000_000;
/// Maximum flows of a run: a training step of 1,024 hosts has 260,096.
pub const MAX_FLOWS: usize = 300_000;
/// Maximum workloads of a scenario, including parts of workloads: results have figures of each.
pub const MAX_WORKLOADS: usize = 64;
/// Largest message.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 40;
/// Maximum packets of a run: hours for a simulator of a million packets per second.
pub const MAX_PACKETS: u64 = 10_000_000_000;
/// Maximum time in a scenario, and of its flows at full rate: an hour, in ps.
pub const MAX_TIME_PS: u64 = 3_600_000_000_000_000;
/// Maximum size of a topology, matrix or failure file.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The counts of a fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Hosts.
    pub hosts: usize,
    /// Switches.
    pub switches: usize,
    /// Switches that have hosts.
    pub leaves: usize,
    /// Cables, including those of hosts.
    pub cables: usize,
}

impl Size {
    /// Returns the entries of the route table. At most half of the links lead towards a leaf.
    pub fn routes(&self) -> usize {
        let between = self.cables.saturating_sub(self.hosts);
        self.leaves.saturating_mul(self.switches.saturating_add(between))
    }

    /// Returns an estimate of the memory of the fabric and its routes.
    pub fn memory_bytes(&self) -> u64 {
        let nodes = self.hosts.saturating_add(self.switches) as u64;
        let parts = [(nodes, NODE_BYTES), (self.cables as u64, CABLE_BYTES), (self.routes() as u64, ROUTE_BYTES)];
        parts.iter().fold(0, |sum: u64, (count, bytes)| sum.saturating_add(count.saturating_mul(*bytes)))
    }

    /// Checks the counts; the error names the first one above its limit, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            (self.hosts, "hosts", MAX_HOSTS, "fewer hosts"),
            (self.cables, "cables", MAX_CABLES, "fewer switches or parallel cables"),
            (self.routes(), "routes between switches", MAX_ROUTES, "fewer switches with hosts, or fewer cables"),
        ];
        match counts.into_iter().find(|(count, _, most, _)| count > most) {
            Some((count, what, most, remedy)) => Err(format!("{count} {what}; allowed: at most {most}: {remedy}")),
            None => Ok(()),
        }
    }
}

/// A node with two copies of its name; a cable with two named links and their ports; a route entry,
/// in the tables of both paths and switches.
const NODE_BYTES: u64 = 256;
const CABLE_BYTES: u64 = 1_024;
const ROUTE_BYTES: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dragonfly, FatTree, LeafSpine, Network, ShortestPaths};

    fn is_as_counted(size: Size, network: &Network) {
        let cables = network.links.len() / 2;
        let paths = ShortestPaths::new(network, |_| true);
        let leaves = paths.leaves().len();
        let built = Size { hosts: network.hosts.len(), switches: network.switches.len(), leaves, cables };
        assert_eq!(size, built);
        let next = |switch| (0..leaves).map(|leaf| paths.next(switch, leaf).len()).sum::<usize>();
        let entries = leaves * built.switches + (0..built.switches).map(next).sum::<usize>();
        assert!(size.routes() >= entries, "{} for {entries}", size.routes());
    }

    #[test]
    fn sizes_are_known_before_a_fabric_is_built() {
        let two = LeafSpine { bundle: 3, ..LeafSpine::uniform([3, 2, 5], 1_000_000_000, 1) };
        is_as_counted(two.size(), &two.network());
        let three = FatTree { bundle: 2, ..FatTree::uniform([3, 2, 2, 4, 2], 1_000_000_000, 1) };
        is_as_counted(three.size(), &three.network());
        let cables = crate::Cables::uniform(1_000_000_000, 1);
        let [local_gbps, global_gbps] = [None; 2];
        let (groups, routers_per_group, hosts_per_router, global_cables) = (5, 2, 2, 4);
        let dragonfly = Dragonfly {
            groups,
            routers_per_group,
            hosts_per_router,
            global_cables,
            local_gbps,
            global_gbps,
            global_latency_us: None,
            cables,
        };
        is_as_counted(dragonfly.size(), &dragonfly.network());
    }

    #[test]
    fn the_largest_fat_tree_fits_and_a_dense_fabric_does_not() {
        assert_eq!(FatTree::uniform([64, 32, 32, 1_024, 32], 1_000_000_000, 1).size().check(), Ok(()));
        let dense = LeafSpine::uniform([1_024, 1_024, 16], 1_000_000_000, 1).size();
        assert!(dense.check().unwrap_err().starts_with("1064960 cables; allowed: at most 524288"));
        let many = LeafSpine::uniform([1_024, 400, 16], 1_000_000_000, 1).size();
        assert!(many.check().unwrap_err().contains("routes between switches; allowed: at most 300000000"));
        let none = Size { hosts: usize::MAX, switches: usize::MAX, leaves: usize::MAX, cables: usize::MAX };
        assert!(none.check().is_err() && none.memory_bytes() == u64::MAX);
    }
}
