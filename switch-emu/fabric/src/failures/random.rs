//! Links and switches that fail together: a share of those of a tier or of a name, or each with a probability.

use rand_core::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::rng::stream;

use super::outages::{Candidate, FailureContext, Outages, draw_one};
use crate::names::fits;
use crate::node::Node;
use crate::{Link, LinkAction, LinkEvent, LinkPattern, Network, ShortestPaths};

/// Devices of one kind that fail at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomFailure {
    /// Which devices may fail.
    pub what: Which,
    /// How many of them do.
    pub how_many: HowMany,
    /// When they fail.
    pub at_ps: u64,
    /// When they are back; `None` is never.
    pub until_ps: Option<u64>,
    /// What happens to their links.
    pub action: LinkAction,
    /// Whether devices may fail without which some host cannot reach another.
    pub disconnect: bool,
    /// Root of the draw; `None` is the run's.
    pub seed: Option<u64>,
}

/// Which devices may fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The devices of a tier.
    Level(Level),
    /// Those of a name, see [`LinkPattern`]: nodes, cables for both directions, or links for one.
    Named(String),
}

/// Which links or switches: a link is both directions of a cable between two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Level {
    /// All links between switches.
    Links,
    /// Links between the switches that have hosts and those above: ToRs and aggregation switches, leaves and spines.
    TorAgg,
    /// Links between aggregation switches and cores.
    AggCore,
    /// Links within a group of a dragonfly.
    Local,
    /// Links between groups of a dragonfly.
    Global,
    /// All switches without hosts.
    Switches,
    /// Switches that have hosts. They cut these off, and need `disconnect`.
    Tor,
    /// Switches above these: aggregation switches, spines.
    Agg,
    /// Switches above these.
    Core,
}

/// How many devices fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HowMany {
    /// The least number that reaches this share.
    Share(f64),
    /// Each by itself with this probability.
    Probability(f64),
}

/// Stream of the first random failure; the others follow.
const STREAM: u64 = (1 << 34) + (1 << 20);

impl RandomFailure {
    /// The events of this failure, number `index` of its scenario.
    ///
    /// # Errors
    /// Says that there are no such devices, or too few that may fail.
    pub(super) fn events(
        &self,
        context: &FailureContext<'_>,
        index: u64,
        routes: &ShortestPaths,
        outages: &mut Outages,
    ) -> Result<Vec<LinkEvent>, String> {
        let network = context.network;
        let devices = self.what.devices(network);
        if devices.is_empty() {
            return Err(format!("the fabric has no {}; allowed: {}", self.what.words(), Level::of(network)));
        }
        if self.at_ps >= context.until_ps {
            return Ok(Vec::new());
        }
        let mut rng = stream(self.seed.unwrap_or(context.seed), STREAM + index);
        // A slow link is still a way.
        let removes = !matches!(self.action, LinkAction::Rate { .. });
        outages.begin();
        let working = removes.then(|| outages.ways(network, routes, self.at_ps, self.until_ps));
        let works = |device: &Candidate| working.as_ref().is_none_or(|ways| !ways.are_dead(&device.links));
        let mut ways = if self.disconnect { None } else { working.clone() };
        let failing: Vec<Candidate> = match self.how_many {
            //= docs/specs/switching.md#SWC-20 selection of failures
            HowMany::Probability(probability) => {
                let threshold = (probability * 2f64.powi(32)) as u64;
                let lots: Vec<_> = devices.into_iter().map(|device| (u64::from(rng.next_u32()), device)).collect();
                let struck = lots.into_iter().filter(|(lot, _)| *lot < threshold).map(|(_, device)| device);
                //= docs/specs/switching.md#SWC-21 no host is cut off
                struck.filter(|device| ways.as_mut().is_none_or(|ways| ways.remove(&device.links))).collect()
            }
            HowMany::Share(share) => {
                let (all, mut needed) = (devices.len(), Vec::new());
                let mut left = devices.into_iter().filter(works).collect();
                let wanted = (share * all as f64 - 1e-9).ceil().max(1.0) as usize;
                let one = |_| draw_one(&mut rng, &mut left, &mut needed, ways.as_mut());
                let failing: Vec<_> = (0..wanted).map_while(one).collect();
                if failing.len() < wanted {
                    let (words, most) = (self.what.words(), failing.len());
                    return Err(format!(
                        "{wanted} of {all} {words} are to fail, but of those that work only {most} can without cutting off hosts; \
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

impl Which {
    /// What people call its devices.
    pub fn words(&self) -> String {
        match self {
            Self::Level(level) => level.words().into(),
            Self::Named(name) => name.clone(),
        }
    }

    fn devices(&self, network: &Network) -> Vec<Candidate> {
        let name = match self {
            Self::Level(level) => return level.devices(network),
            Self::Named(name) => name,
        };
        let pattern = LinkPattern::new(name);
        if pattern.is_node() {
            let hosts = network.hosts.iter().enumerate().filter(|(_, host)| fits(name, host));
            let host = |(host, its): (usize, &String)| Candidate {
                name: its.clone(),
                links: vec![network.uplink(host), network.downlink(host)],
            };
            let switches = (0..network.switches.len()).filter(|switch| fits(name, &network.switches[*switch].name));
            return hosts.map(host).chain(switches.map(|switch| switch_of(network, switch))).collect();
        }
        let links = network.links.iter().enumerate();
        if pattern.is_both() {
            return links
                .step_by(2)
                .filter(|(_, link)| pattern.means(&link.name))
                .map(|(index, link)| cable(index, link))
                .collect();
        }
        let alone = |(index, link): (usize, &Link)| Candidate { name: link.name.clone(), links: vec![index] };
        links.filter(|(_, link)| pattern.means(&link.name)).map(alone).collect()
    }
}

impl Level {
    /// What people call its devices.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::TorAgg => "links between ToRs and aggregation switches",
            Self::AggCore => "links between aggregation switches and cores",
            Self::Local => "links within groups",
            Self::Global => "links between groups",
            Self::Switches => "switches without hosts",
            Self::Tor => "switches with hosts",
            Self::Agg => "aggregation switches",
            Self::Core => "cores",
        }
    }

    const ALL: [(Self, &'static str); 9] = [
        (Self::Links, "links"),
        (Self::TorAgg, "tor-agg"),
        (Self::AggCore, "agg-core"),
        (Self::Local, "local"),
        (Self::Global, "global"),
        (Self::Switches, "switches"),
        (Self::Tor, "tor"),
        (Self::Agg, "agg"),
        (Self::Core, "core"),
    ];

    /// The names of those that `network` has.
    fn of(network: &Network) -> String {
        let has = Self::ALL.iter().filter(|(level, _)| !level.devices(network).is_empty());
        has.map(|(_, name)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
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

/// Both directions of the cable whose first is this one.
fn cable(index: usize, link: &Link) -> Candidate {
    Candidate { name: link.name.replacen("->", "-", 1), links: vec![index, index + 1] }
}

/// The tiers of both ends of a link between switches, the lower one first.
fn tier_pair(tier: &[usize], link: &Link) -> Option<[usize; 2]> {
    let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to) else { return None };
    let (a, b) = (tier[from], tier[to]);
    Some([a.min(b), a.max(b)])
}

/// A switch, and the links that work no more without it: all that leave it, and those to it from other switches. A host's link may
/// go on, since nothing leaves the switch.
fn switch_of(network: &Network, switch: usize) -> Candidate {
    let node = Node::Switch(switch);
    let with_it = |link: &Link| link.from == node || (link.to == node && matches!(link.from, Node::Switch(_)));
    let links = network.links.iter().enumerate().filter(|(_, link)| with_it(link)).map(|(index, _)| index).collect();
    Candidate { name: network.switches[switch].name.clone(), links }
}

#[cfg(test)]
mod tests;
