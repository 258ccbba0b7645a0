//! `.topo` files: fat trees of two or three tiers, in the format of the REPS artifact's simulator.
//!
//! Lines of `Key Value`, case-insensitive, `#` starts a comment. `Nodes`, `Tiers` and `Podsize`
//! first, then for each `Tier n` from the hosts up `Downlink_speed_Gbps`, `Radix_Down`, `Radix_Up`,
//! `Downlink_Latency_ns`, `Switch_Latency_ns`, and optionally `Oversubscribed` and `Bundle`
//! (parallel cables to a switch of the tier below).

use super::limits::{MAX_HOSTS, Size};
use super::{FileError, Network};
use crate::fabric::MAX_RATE_BPS;
use crate::node::Node;

/// A tier of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopoTier {
    /// Rate of a cable to the tier below, in bits per second.
    pub downlink_bps: u64,
    /// Ports down.
    pub radix_down: usize,
    /// Ports up; 0 at the top.
    pub radix_up: usize,
    /// Propagation time of a cable to the tier below, in ps.
    pub downlink_latency_ps: u64,
    /// Latency from ingress to egress queue, in ps.
    pub switch_latency_ps: u64,
    /// Ports down over ports up.
    pub oversubscribed: usize,
    /// Parallel cables to each switch of the tier below.
    pub bundle: usize,
}

/// A parsed and consistent `.topo` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopoFile {
    /// Number of hosts.
    pub nodes: usize,
    /// Hosts of a pod.
    pub podsize: usize,
    /// Two or three tiers, from the hosts up.
    pub tiers: Vec<TopoTier>,
}

#[derive(Default)]
struct RawTier {
    line: usize,
    values: [Option<u64>; TIER_KEYS.len()],
}

const TIER_KEYS: [&str; 7] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
];
const HEAD_KEYS: [&str; 4] = ["nodes", "tiers", "podsize", "tier"];

impl TopoFile {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut head = [None; 3];
        let mut tiers: Vec<RawTier> = Vec::new();
        for (index, full) in text.lines().enumerate() {
            let line = index + 1;
            let mut words = full.split('#').next().unwrap_or_default().split_whitespace();
            let Some(key) = words.next() else { continue };
            let column = 1 + full.find(key).unwrap_or(0);
            let fail = |message| FileError { line, column, message };
            let value = words.next().and_then(|word| word.parse::<u64>().ok());
            let (Some(value), None) = (value, words.next()) else {
                return Err(fail(format!("`{key}` needs one integer")));
            };
            let key = key.to_ascii_lowercase();
            if key == "tier" {
                if value != tiers.len() as u64 {
                    return Err(fail(format!("tier {value} out of order; expected tier {}", tiers.len())));
                }
                tiers.push(RawTier { line, ..RawTier::default() });
            } else if let Some(slot) = HEAD_KEYS.iter().position(|name| *name == key) {
                set(&mut head[slot], value).map_err(|()| fail(format!("`{key}` is given twice")))?;
            } else if let Some(slot) = TIER_KEYS.iter().position(|name| *name == key) {
                let tier = tiers.last_mut().ok_or_else(|| fail(format!("`{key}` before the first `Tier`")))?;
                set(&mut tier.values[slot], value).map_err(|()| fail(format!("`{key}` is given twice in one tier")))?;
            } else {
                let allowed = HEAD_KEYS.iter().chain(&TIER_KEYS).copied().collect::<Vec<_>>().join(", ");
                return Err(fail(format!("unknown key `{key}`; allowed: {allowed}")));
            }
        }
        Self::from_raw(head, &tiers)
    }

    fn from_raw(head: [Option<u64>; 3], raw: &[RawTier]) -> Result<Self, FileError> {
        let top = |message: String| FileError { line: 1, column: 1, message };
        let need = |slot: usize| head[slot].ok_or_else(|| top(format!("`{}` is missing", HEAD_KEYS[slot])));
        let (nodes, count, podsize) = (need(0)?, need(1)?, need(2)?);
        if !(2..=MAX_HOSTS as u64).contains(&nodes) {
            return Err(top(format!("`nodes` is {nodes}; allowed: 2 to {MAX_HOSTS}")));
        }
        if !(2..=3).contains(&count) || raw.len() as u64 != count {
            return Err(top(format!("{count} tiers, {} described; allowed: 2 or 3, each with a `Tier`", raw.len())));
        }
        let mut tiers = Vec::with_capacity(raw.len());
        for (index, tier) in raw.iter().enumerate() {
            tiers.push(tier.build(index + 1 == raw.len())?);
        }
        let file = Self { nodes: nodes as usize, podsize: podsize as usize, tiers };
        file.check().map_err(|(tier, message)| FileError { line: raw[tier].line, column: 1, message })?;
        Ok(file)
    }

    /// Checks that the counts of ports and switches match; errors have the index of the tier.
    fn check(&self) -> Result<(), (usize, String)> {
        let [leaf, spine] = [&self.tiers[0], &self.tiers[1]];
        if self.podsize == 0
            || !self.nodes.is_multiple_of(self.podsize)
            || (self.tiers.len() == 2 && self.podsize != self.nodes)
        {
            let rule = "a divisor of `nodes`, and `nodes` itself with two tiers";
            return Err((0, format!("`podsize` is {}; allowed: {rule}", self.podsize)));
        }
        if !self.podsize.is_multiple_of(leaf.radix_down) {
            return Err((0, format!("`radix_down` {} does not divide the podsize {}", leaf.radix_down, self.podsize)));
        }
        if leaf.bundle != 1 {
            return Err((0, "hosts have one cable; allowed: `bundle` 1".into()));
        }
        for index in 0..self.tiers.len() - 1 {
            let (tier, above) = (&self.tiers[index], &self.tiers[index + 1]);
            if !tier.radix_up.is_multiple_of(above.bundle) {
                let (up, bundle) = (tier.radix_up, above.bundle);
                return Err((index, format!("`radix_up` {up} is no multiple of the next `bundle` {bundle}")));
            }
            // 1 also stands for more ports up than down.
            let is_none = tier.oversubscribed == 1 && tier.radix_up > tier.radix_down;
            if tier.oversubscribed != 0 && !is_none && tier.radix_up * tier.oversubscribed != tier.radix_down {
                let is = format!("{} down and {} up", tier.radix_down, tier.radix_up);
                return Err((index, format!("`oversubscribed` {} does not fit {is}", tier.oversubscribed)));
            }
        }
        let leaves_of_pod = self.podsize / leaf.radix_down;
        if spine.radix_down != leaves_of_pod * spine.bundle {
            let need = leaves_of_pod * spine.bundle;
            return Err((1, format!("`radix_down` is {}; this tree needs {need}", spine.radix_down)));
        }
        if let Some(core) = self.tiers.get(2)
            && core.radix_down != self.pods() * core.bundle
        {
            let need = self.pods() * core.bundle;
            return Err((2, format!("`radix_down` is {}; this tree needs {need}", core.radix_down)));
        }
        // Uplink ports make a tree large.
        let widest = (0..self.tiers.len()).max_by_key(|index| self.tiers[*index].radix_up).unwrap_or(0);
        self.size().check().map_err(|message| (widest, message))
    }

    /// Returns the counts of the network.
    pub fn size(&self) -> Size {
        let tier = &self.tiers;
        let leaves = self.nodes / tier[0].radix_down;
        let spines_of_pod = tier[0].radix_up / tier[1].bundle;
        let spines = self.pods().saturating_mul(spines_of_pod);
        let planes = tier.get(2).map_or(0, |core| tier[1].radix_up / core.bundle);
        let cables = leaves.saturating_mul(spines_of_pod * tier[1].bundle);
        let upper = spines.saturating_mul(tier.get(2).map_or(0, |core| planes * core.bundle));
        Size {
            hosts: self.nodes,
            switches: (leaves + spines).saturating_add(spines_of_pod.saturating_mul(planes)),
            leaves,
            cables: self.nodes.saturating_add(cables).saturating_add(upper),
        }
    }

    fn pods(&self) -> usize {
        self.nodes / self.podsize
    }

    /// Returns the names of the tiers from the hosts up.
    pub fn tier_names(&self) -> &'static [&'static str] {
        if self.tiers.len() == 2 { &["leaf", "spine"] } else { &["tor", "agg", "core"] }
    }

    /// Builds the network: hosts `h0..`, switches by [`TopoFile::tier_names`] and number.
    pub fn network(&self) -> Network {
        let mut network = Network::default();
        let tier = &self.tiers;
        let leaves_of_pod = self.podsize / tier[0].radix_down;
        let spines_of_pod = tier[0].radix_up / tier[1].bundle;
        let mut add = |prefix: &str, count: usize, tier: &TopoTier| -> Vec<_> {
            (0..count).map(|index| network.add_switch(format!("{prefix}{index}"), tier.switch_latency_ps)).collect()
        };
        let names = self.tier_names();
        let leaves = add(names[0], self.pods() * leaves_of_pod, &tier[0]);
        let spines = add(names[1], self.pods() * spines_of_pod, &tier[1]);
        let planes = tier.get(2).map_or(0, |core| tier[1].radix_up / core.bundle);
        let cores = tier.get(2).map_or_else(Vec::new, |core| add(names[2], spines_of_pod * planes, core));
        for index in 0..self.nodes {
            let host = network.add_host(format!("h{index}"));
            tier[0].join(&mut network, host, leaves[index / tier[0].radix_down]);
        }
        for (index, leaf) in leaves.iter().enumerate() {
            let pod = index / leaves_of_pod;
            for spine in &spines[pod * spines_of_pod..(pod + 1) * spines_of_pod] {
                tier[1].join(&mut network, *leaf, *spine);
            }
        }
        for (index, spine) in spines.iter().enumerate() {
            for plane in 0..planes {
                tier[2].join(&mut network, *spine, cores[index % spines_of_pod + spines_of_pod * plane]);
            }
        }
        network
    }
}

impl TopoTier {
    /// Adds the cables from a node `below` to a switch of this tier.
    fn join(&self, network: &mut Network, below: Node, switch: Node) {
        (0..self.bundle).for_each(|_| network.add_cable(below, switch, self.downlink_bps, self.downlink_latency_ps));
    }
}

impl RawTier {
    fn build(&self, top: bool) -> Result<TopoTier, FileError> {
        let fail = |message: String| FileError { line: self.line, column: 1, message };
        let need = |slot: usize| {
            self.values[slot]
                .filter(|value| *value > 0)
                .ok_or_else(|| fail(format!("`{}` is missing or 0", TIER_KEYS[slot])))
        };
        let radix_up = if top { self.values[2].unwrap_or(0) } else { need(2)? };
        if top && radix_up != 0 {
            return Err(fail("the top tier has no `radix_up`".into()));
        }
        if let Some(slot) = (0..TIER_KEYS.len()).find(|slot| self.values[*slot].is_some_and(|value| value > 1_000_000))
        {
            return Err(fail(format!("`{}` is above 1000000", TIER_KEYS[slot])));
        }
        let downlink_bps = need(0)? * 1_000_000_000;
        if downlink_bps > MAX_RATE_BPS {
            let (gbps, most) = (downlink_bps / 1_000_000_000, MAX_RATE_BPS / 1_000_000_000);
            return Err(fail(format!("`{}` is {gbps}; allowed: 1 to {most}", TIER_KEYS[0])));
        }
        if self.values[6] == Some(0) {
            return Err(fail(format!("`{}` is 0; allowed: from 1", TIER_KEYS[6])));
        }
        Ok(TopoTier {
            downlink_bps,
            radix_down: need(1)? as usize,
            radix_up: radix_up as usize,
            downlink_latency_ps: self.values[3].unwrap_or(0) * 1_000,
            switch_latency_ps: self.values[4].unwrap_or(0) * 1_000,
            oversubscribed: self.values[5].unwrap_or(0) as usize,
            bundle: self.values[6].unwrap_or(1) as usize,
        })
    }
}

fn set(slot: &mut Option<u64>, value: u64) -> Result<(), ()> {
    if slot.replace(value).is_some() { Err(()) } else { Ok(()) }
}
