//! The topology of a fabric as needed for drawing it.

use spray_fabric::{Network, Node};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub switches: Vec<ShapeSwitch>,
    pub links: Vec<ShapeLink>,
}

/// A switch of a [`Shape`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeSwitch {
    pub name: String,
    /// Tier; 0 with hosts.
    pub tier: usize,
    pub hosts: usize,
}

/// A directed link of a [`Shape`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeLink {
    /// Name of the link and of its egress port.
    pub name: String,
    /// Index of the sending switch.
    pub from: usize,
    /// Index of the receiving switch.
    pub to: usize,
}

impl Shape {
    /// Returns the shape of `network`.
    pub fn of(network: &Network) -> Self {
        let tiers = network.tiers().tier;
        // Switches that no host can be reached from have no tier.
        let top = tiers.iter().copied().filter(|tier| *tier != usize::MAX).max().unwrap_or(0);
        let switch = |(name, tier): (&spray_fabric::NetworkSwitch, usize)| ShapeSwitch {
            name: name.name.clone(),
            tier: if tier == usize::MAX { top } else { tier },
            hosts: 0,
        };
        let mut switches: Vec<ShapeSwitch> = network.switches.iter().zip(tiers).map(switch).collect();
        (0..network.hosts.len()).for_each(|host| switches[network.leaf_of(host)].hosts += 1);
        let link = |link: &spray_fabric::Link| match (link.from, link.to) {
            (Node::Switch(from), Node::Switch(to)) => Some(ShapeLink { name: link.name.clone(), from, to }),
            _ => None,
        };
        Self { switches, links: network.links.iter().filter_map(link).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spray_fabric::LeafSpine;

    #[test]
    fn a_shape_has_tiers_hosts_and_both_directions() {
        let shape = Shape::of(&LeafSpine::uniform([2, 4, 3], 100_000_000_000, 1).network());
        let of = |tier: usize| shape.switches.iter().filter(|switch| switch.tier == tier).collect::<Vec<_>>();
        assert_eq!((of(0).len(), of(1).len(), of(0)[0].hosts, of(1)[0].hosts), (2, 4, 3, 0));
        assert_eq!(shape.links.len(), 2 * 2 * 4);
        let ShapeLink { name, from, to } = &shape.links[0];
        assert_eq!(*name, format!("{}->{}", shape.switches[*from].name, shape.switches[*to].name));
    }
}
