//! Layers of links, by the tiers of their ends.

use crate::{Link, Network, Node};

impl Network {
    /// Returns the layer of every link: `tor->agg`, `spine->leaf`, `leaf->host`.
    ///
    /// A tier is named by the common prefix of its switches' names before their numbers, if no
    /// other tier has it; otherwise `switch` if it is the only tier, else `tier0` and so on. Links
    /// of a dragonfly are `local` within a group and `global` between groups.
    //= docs/specs/switch.md#SW-18 length of the queue over time
    pub fn layers(&self) -> Vec<String> {
        let tiers = self.tiers().tier;
        let names = self.tier_names(&tiers);
        let name = |node: Node| match node {
            Node::Host(_) => "host",
            // A switch that reaches no host has no tier.
            Node::Switch(switch) => names.get(tiers[switch]).map_or("switch", String::as_str),
        };
        let layer = |link: &Link| match link.switches().filter(|_| self.groups.exist()) {
            Some((from, to)) if self.groups.of_switch(from) == self.groups.of_switch(to) => "local".into(),
            Some(_) => "global".into(),
            None => format!("{}->{}", name(link.from), name(link.to)),
        };
        self.links.iter().map(layer).collect()
    }

    fn tier_names(&self, tiers: &[usize]) -> Vec<String> {
        let highest = tiers.iter().copied().filter(|tier| *tier != usize::MAX).max().unwrap_or(0);
        let stem = |switch: usize| self.switches[switch].name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem_of = |tier: usize| {
            let mut stems = (0..tiers.len()).filter(|switch| tiers[*switch] == tier).map(stem);
            let first = stems.next()?;
            (!first.is_empty() && stems.all(|other| other == first)).then(|| first.to_string())
        };
        let stems: Vec<Option<String>> = (0..=highest).map(stem_of).collect();
        let name = |(tier, stem): (usize, &Option<String>)| match stem {
            Some(own) if stems.iter().filter(|other| *other == stem).count() == 1 => own.clone(),
            _ if highest == 0 => "switch".into(),
            _ => format!("tier{tier}"),
        };
        stems.iter().enumerate().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FatTree, LeafSpine};
    use std::collections::BTreeSet;

    fn layers(network: &Network) -> Vec<String> {
        network.layers().into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn layers_are_named_after_their_switches() {
        let tree = FatTree::uniform([4, 2, 2, 4, 2], 100_000_000_000, 1).network();
        let expected = ["agg->core", "agg->tor", "core->agg", "host->tor", "tor->agg", "tor->host"];
        assert_eq!(layers(&tree), expected);
        let two = LeafSpine::uniform([3, 2, 2], 100_000_000_000, 1).network();
        assert_eq!(layers(&two), ["host->leaf", "leaf->host", "leaf->spine", "spine->leaf"]);
        for (link, layer) in two.links.iter().zip(two.layers()) {
            let plain: String = link.name.chars().filter(|c| !c.is_ascii_digit()).collect();
            assert_eq!(plain.replace('h', "host"), layer, "{}", link.name);
        }
    }

    #[test]
    fn names_without_a_common_part_become_numbers() {
        let mut network = LeafSpine::uniform([2, 2, 1], 100_000_000_000, 1).network();
        network.switches.iter_mut().enumerate().for_each(|(number, switch)| switch.name = format!("s{number}"));
        assert_eq!(layers(&network), ["host->tier0", "tier0->host", "tier0->tier1", "tier1->tier0"]);
    }
}
