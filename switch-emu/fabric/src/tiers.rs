//! Tiers and pods of switches.

use std::collections::VecDeque;

use crate::node::Node;

/// The tier and the pod of every switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// 0 for switches with hosts, else the number of links down to the nearest of them.
    pub tier: Vec<usize>,
    /// Switches connected below the top tier; with a single tier, each switch is a pod.
    pub pod: Vec<usize>,
}

impl Tiers {
    /// `cables` are named from the switch that they leave.
    pub(crate) fn new(switches: usize, cables: impl Iterator<Item = (usize, Node)>) -> Self {
        let mut out = vec![Vec::new(); switches];
        let mut tier = vec![usize::MAX; switches];
        for (from, to) in cables {
            match to {
                Node::Switch(to) => out[from].push(to),
                Node::Host(_) => tier[from] = 0,
            }
        }
        let mut queue: VecDeque<usize> = (0..switches).filter(|switch| tier[*switch] == 0).collect();
        while let Some(from) = queue.pop_front() {
            for to in &out[from] {
                if tier[*to] == usize::MAX {
                    tier[*to] = tier[from] + 1;
                    queue.push_back(*to);
                }
            }
        }
        let top = tier.iter().copied().filter(|tier| *tier != usize::MAX).max().unwrap_or(0);
        let mut pod = vec![usize::MAX; switches];
        for start in 0..switches {
            let mut stack = if pod[start] == usize::MAX { vec![start] } else { Vec::new() };
            while let Some(switch) = stack.pop() {
                pod[switch] = start;
                if tier[switch] < top {
                    stack.extend(out[switch].iter().filter(|to| tier[**to] < top && pod[**to] == usize::MAX));
                }
            }
        }
        Self { tier, pod }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FatTree, LeafSpine};

    #[test]
    fn a_fat_tree_has_pods_below_its_cores() {
        let network = FatTree::uniform([4, 2, 2, 4, 2], 100_000_000_000, 1).network();
        let Tiers { tier, pod } = network.tiers();
        let of = |name: &str| network.switches.iter().position(|switch| switch.name == name).unwrap();
        assert_eq!([tier[of("tor0")], tier[of("agg7")], tier[of("core3")]], [0, 1, 2]);
        for (tor, agg) in [(0, 0), (1, 1), (2, 3), (7, 6)] {
            assert_eq!(pod[of(&format!("tor{tor}"))], pod[of(&format!("agg{agg}"))], "tor{tor}, agg{agg}");
        }
        assert_ne!(pod[of("tor0")], pod[of("tor2")]);
        assert_ne!(pod[of("core0")], pod[of("core1")]);
    }

    #[test]
    fn a_leaf_below_spines_is_a_pod() {
        let network = LeafSpine::uniform([3, 2, 2], 100_000_000_000, 1).network();
        let Tiers { tier, pod } = network.tiers();
        assert_eq!(tier, [0, 0, 0, 1, 1]);
        assert_eq!(pod.iter().collect::<std::collections::HashSet<_>>().len(), 5);
    }
}
