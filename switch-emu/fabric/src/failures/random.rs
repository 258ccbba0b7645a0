//! Random failures: a share of the links or switches of a tier or pattern, or with a probability.

use rand_core::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::rng::stream;

use super::outages::{Candidate, FailureContext, Outages, draw_one};
use crate::names::globs;
use crate::node::Node;
use crate::{Link, LinkAction, LinkEvent, LinkPattern, Network};

/// Devices of one kind that fail at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomFailure {
    /// The devices that may fail.
    pub what: FailureTarget,
    /// The number of devices that fail.
    pub how_many: FailureCount,
    /// Start of the failure.
    pub at_ps: u64,
    /// End of the failure; `None` is never.
    pub until_ps: Option<u64>,
    /// Effect on their links.
    pub action: LinkAction,
    /// Whether hosts may be disconnected.
    pub disconnect: bool,
    /// Seed of the draw; `None` is the run's.
    pub seed: Option<u64>,
}

/// A set of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureTarget {
    /// The devices of a tier.
    Kind(DeviceKind),
    /// Nodes, cables (both directions) or links (one direction) that match a [`LinkPattern`].
    Named(String),
}

/// Links or switches of a tier; a link is both directions of a cable between switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum DeviceKind {
    /// All links between switches.
    Links,
    /// Links between switches with hosts and the tier above (aggregation switches, spines).
    TorAgg,
    /// Links between aggregation switches and cores.
    AggCore,
    /// Links within a group of a dragonfly.
    Local,
    /// Links between groups of a dragonfly.
    Global,
    /// All switches without hosts.
    Switches,
    /// Switches with hosts, which are disconnected; requires `disconnect`.
    Tor,
    /// Switches one tier above: aggregation switches, spines.
    Agg,
    /// Switches two tiers above.
    Core,
}

/// The number of devices that fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailureCount {
    /// The least number that reaches this share.
    Share(f64),
    /// Each independently with this probability.
    Probability(f64),
}

/// RNG stream of the first random failure; the others follow.
const STREAM: u64 = (1 << 34) + (1 << 20);

impl RandomFailure {
    /// Draws the events of failure number `index`. Fails if too few devices may fail.
    pub(super) fn events(
        &self,
        context: &FailureContext<'_>,
        index: u64,
        outages: &mut Outages<'_>,
    ) -> Result<Vec<LinkEvent>, String> {
        let network = context.network;
        let devices = self.what.devices(network);
        if devices.is_empty() {
            return Err(format!("the fabric has no {}; allowed: {}", self.what.label(), DeviceKind::of(network)));
        }
        if self.at_ps >= context.until_ps {
            return Ok(Vec::new());
        }
        let mut rng = stream(self.seed.unwrap_or(context.seed), STREAM + index);
        // Slow links still are paths.
        let removes = !matches!(self.action, LinkAction::Rate { .. });
        outages.begin();
        let working = removes.then(|| outages.paths(self.at_ps, self.until_ps));
        let works = |device: &Candidate| {
            working.as_ref().is_none_or(|paths| device.links.iter().any(|link| !paths.dead[*link]))
        };
        let mut paths = if self.disconnect { None } else { working.clone() };
        let failing: Vec<Candidate> = match self.how_many {
            //= docs/specs/switching.md#SWC-20 selection of failures
            FailureCount::Probability(probability) => {
                let threshold = (probability * 2f64.powi(32)) as u64;
                let lots: Vec<_> = devices.into_iter().map(|device| (u64::from(rng.next_u32()), device)).collect();
                let drawn = lots.into_iter().filter(|(lot, _)| *lot < threshold).map(|(_, device)| device);
                //= docs/specs/switching.md#SWC-21 no host is cut off
                drawn.filter(|device| paths.as_mut().is_none_or(|paths| paths.remove(&device.links))).collect()
            }
            FailureCount::Share(share) => {
                let (all, mut needed) = (devices.len(), Vec::new());
                let mut left = devices.into_iter().filter(works).collect();
                let wanted = (share * all as f64 - 1e-9).ceil().max(1.0) as usize;
                let one = |_| draw_one(&mut rng, &mut left, &mut needed, paths.as_mut());
                let failing: Vec<_> = (0..wanted).map_while(one).collect();
                if failing.len() < wanted {
                    let (words, most) = (self.what.label(), failing.len());
                    return Err(format!(
                        "{wanted} of {all} {words} are to fail, but only {most} working ones can without disconnecting hosts; \
                         allowed: fewer, or `disconnect = true`"
                    ));
                }
                failing
            }
        };
        if removes {
            failing.iter().for_each(|device| outages.add(&device.links, self.at_ps, self.until_ps));
        }
        Ok(failing.iter().map(|device| device.event(self.at_ps, self.until_ps, self.action)).collect())
    }
}

impl FailureTarget {
    /// Returns the name of its devices, for messages.
    pub fn label(&self) -> String {
        match self {
            Self::Kind(level) => level.label().into(),
            Self::Named(name) => name.clone(),
        }
    }

    fn devices(&self, network: &Network) -> Vec<Candidate> {
        let name = match self {
            Self::Kind(level) => return level.devices(network),
            Self::Named(name) => name,
        };
        let pattern = LinkPattern::new(name);
        if pattern.is_node() {
            let hosts = (0..network.hosts.len()).filter(|host| globs(name, &network.hosts[*host]));
            let hosts = hosts.map(|host| Candidate::host(network, host));
            let switches = (0..network.switches.len()).filter(|switch| globs(name, &network.switches[*switch].name));
            return hosts.chain(switches.map(|switch| switch_of(network, switch))).collect();
        }
        let links = network.links.iter().enumerate();
        if pattern.both {
            let cables = links.step_by(2).filter(|(_, link)| pattern.matches(&link.name));
            return cables.map(|(index, link)| cable(index, link)).collect();
        }
        let alone = |(index, link): (usize, &Link)| Candidate { name: link.name.clone(), links: vec![index] };
        links.filter(|(_, link)| pattern.matches(&link.name)).map(alone).collect()
    }
}

impl DeviceKind {
    /// Name in a scenario, and name of the devices in messages.
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Links, "links", "links"),
        (Self::TorAgg, "tor-agg", "links between ToRs and aggregation switches"),
        (Self::AggCore, "agg-core", "links between aggregation switches and cores"),
        (Self::Local, "local", "links within groups"),
        (Self::Global, "global", "links between groups"),
        (Self::Switches, "switches", "switches without hosts"),
        (Self::Tor, "tor", "switches with hosts"),
        (Self::Agg, "agg", "aggregation switches"),
        (Self::Core, "core", "cores"),
    ];

    /// Returns the name of its devices, for messages.
    pub fn label(self) -> &'static str {
        Self::ALL.iter().find(|(level, ..)| *level == self).map_or("", |(.., words)| words)
    }

    /// Returns the names of those that `network` has.
    fn of(network: &Network) -> String {
        let has = Self::ALL.iter().filter(|(level, ..)| !level.devices(network).is_empty());
        has.map(|(_, name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    fn devices(self, network: &Network) -> Vec<Candidate> {
        let tier = network.tiers().tier;
        let switch = |above: &dyn Fn(usize) -> bool| {
            let those = (0..network.switches.len()).filter(|switch| above(tier[*switch]));
            those.map(|switch| switch_of(network, switch)).collect()
        };
        let between = |[one, other]: [usize; 2], link: &Link| (tier_pair(&tier, link) == Some([one, other]), link.cost);
        let links = |fits: &dyn Fn(&Link) -> bool| {
            let cables = network.links.iter().enumerate().step_by(2);
            let those = cables.filter(|(_, link)| link.is_uplink() && fits(link));
            those.map(|(index, link)| cable(index, link)).collect()
        };
        match self {
            Self::Links => links(&|_| true),
            Self::TorAgg => links(&|link| between([0, 1], link).0),
            Self::AggCore => links(&|link| between([1, 2], link).0),
            Self::Local => links(&|link| between([0, 0], link) == (true, 1)),
            Self::Global => links(&|link| matches!(between([0, 0], link), (true, 2..))),
            Self::Switches => switch(&|tier| tier > 0),
            Self::Tor => switch(&|tier| tier == 0),
            Self::Agg => switch(&|tier| tier == 1),
            Self::Core => switch(&|tier| tier == 2),
        }
    }
}

/// Both directions of a cable; `index` is that of the first.
fn cable(index: usize, link: &Link) -> Candidate {
    Candidate { name: link.name.replacen("->", "-", 1), links: vec![index, index + 1] }
}

/// The tiers of both ends of a link between switches, the lower one first.
pub(super) fn tier_pair(tier: &[usize], link: &Link) -> Option<[usize; 2]> {
    let (from, to) = link.switches()?;
    Some([tier[from].min(tier[to]), tier[from].max(tier[to])])
}

/// A switch with its outgoing links and those from other switches. Hosts' links keep working.
fn switch_of(network: &Network, switch: usize) -> Candidate {
    let node = Node::Switch(switch);
    let with_it = |link: &Link| link.from == node || (link.to == node && link.from.switch().is_some());
    let links = network.links.iter().enumerate().filter(|(_, link)| with_it(link)).map(|(index, _)| index).collect();
    Candidate { name: network.switches[switch].name.clone(), links }
}

#[cfg(test)]
mod tests;
