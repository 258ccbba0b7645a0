//! The graph of hosts, switches and directed links.

use std::collections::{HashMap, HashSet};

use spray_core::link::serialisation_floor_ps;

use crate::node::Node;
use crate::{Groups, LinkPattern, Switching, Tiers};

/// A switch of a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSwitch {
    /// Name, such as `leaf0`.
    pub name: String,
    /// Latency from ingress to egress queue in ps, in addition to the links'.
    pub latency_ps: u64,
}

/// One direction of a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name: `from->to`, and `from->to#2` for the second of parallel cables.
    pub name: String,
    /// Source.
    pub from: Node,
    /// Destination.
    pub to: Node,
    /// Rate in bits per second.
    pub rate_bps: u64,
    /// Propagation time in ps.
    pub latency_ps: u64,
    /// Routing cost. If all are 1, shortest paths have the fewest links.
    pub cost: u32,
}

/// Hosts, switches and links. Links `2k` and `2k + 1` are the two directions of cable `k`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// The switches.
    pub switches: Vec<NetworkSwitch>,
    /// The directed links.
    pub links: Vec<Link>,
    /// How switches choose among equal-cost ports.
    pub switching: Switching,
    /// A dragonfly's groups.
    pub groups: Groups,
    /// Links that leave each host.
    host_links: Vec<Vec<u32>>,
    /// If several nodes share a name, the first.
    by_name: HashMap<String, Node>,
    /// Number of cables between two nodes.
    parallel: HashMap<(Node, Node), u32>,
}

/// A reason why a graph is not a valid fabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

/// Invalid as name of an interface, a sysctl folder or a namespace of a host.
const RESERVED: [&str; 6] = ["all", "default", "lo", ".", "..", "sw"];

fn fail(message: String) -> Result<(), NetworkError> {
    Err(NetworkError(message))
}

impl Link {
    /// Whether it joins two switches.
    pub fn is_uplink(&self) -> bool {
        self.switches().is_some()
    }

    /// Returns the switches at both ends; `None` if one end is a host.
    pub fn switches(&self) -> Option<(usize, usize)> {
        self.from.switch().zip(self.to.switch())
    }
}

impl Network {
    /// Adds a host; returns its node.
    pub fn add_host(&mut self, name: impl Into<String>) -> Node {
        let node = Node::Host(self.hosts.len());
        let name = name.into();
        self.by_name.entry(name.clone()).or_insert(node);
        self.hosts.push(name);
        self.host_links.push(Vec::new());
        node
    }

    /// Adds a switch with `latency_ps` from ingress to egress queue; returns its node.
    pub fn add_switch(&mut self, name: impl Into<String>, latency_ps: u64) -> Node {
        let node = Node::Switch(self.switches.len());
        let name = name.into();
        self.by_name.entry(name.clone()).or_insert(node);
        self.switches.push(NetworkSwitch { name, latency_ps });
        node
    }

    /// Adds a cable, which is two links. Parallel cables are numbered from `#2`.
    pub fn add_cable(&mut self, a: Node, b: Node, rate_bps: u64, latency_ps: u64) {
        let parallel = self.parallel.entry((a, b)).or_default();
        *parallel += 1;
        let suffix = if *parallel == 1 { String::new() } else { format!("#{parallel}") };
        for (from, to) in [(a, b), (b, a)] {
            if let Node::Host(host) = from {
                self.host_links[host].push(self.links.len() as u32);
            }
            let name = format!("{}->{}{suffix}", self.node_name(from), self.node_name(to));
            self.links.push(Link { name, from, to, rate_bps, latency_ps, cost: 1 });
        }
    }

    /// Returns the name of a node.
    pub fn node_name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.hosts[host],
            Node::Switch(switch) => &self.switches[switch].name,
        }
    }

    /// Returns the node with this name.
    pub fn node(&self, name: &str) -> Option<Node> {
        self.by_name.get(name).copied()
    }

    /// Returns the index of the link that leaves `host`.
    pub fn uplink(&self, host: usize) -> usize {
        // `check` ensures that there is one.
        self.host_links[host][0] as usize
    }

    /// Returns the index of the link that ends at `host`.
    pub fn downlink(&self, host: usize) -> usize {
        self.uplink(host) ^ 1
    }

    /// Returns the switch of `host`.
    pub fn leaf_of(&self, host: usize) -> usize {
        self.links[self.uplink(host)].to.switch().expect("a checked host's link ends at a switch")
    }

    /// Returns the latency in ps of a link's switch and cable, without serialisation.
    pub fn latency_ps(&self, link: usize) -> u64 {
        let Link { from, latency_ps, .. } = self.links[link];
        latency_ps + from.switch().map_or(0, |switch| self.switches[switch].latency_ps)
    }

    /// Returns [`Self::latency_ps`] plus the serialisation time of a frame of `bytes`.
    pub fn transit_ps(&self, link: usize, bytes: u64) -> u64 {
        self.latency_ps(link) + serialisation_floor_ps(bytes, self.links[link].rate_bps)
    }

    /// Returns the tier and the pod of every switch.
    pub fn tiers(&self) -> Tiers {
        let leaving = |link: &Link| Some((link.from.switch()?, link.to));
        Tiers::new(self.switches.len(), self.links.iter().filter_map(leaving))
    }

    /// Returns the directed links that match `name`, ascending; `None` if there are none.
    pub fn links_named(&self, name: &str) -> Option<Vec<usize>> {
        let pattern = LinkPattern::new(name);
        let links = self.links.iter().enumerate().filter(|(_, link)| pattern.matches(&link.name));
        Some(links.map(|(index, _)| index).collect::<Vec<_>>()).filter(|links| !links.is_empty())
    }

    /// Checks names, that every host has one link, and that all hosts are connected.
    pub fn check(&self) -> Result<(), NetworkError> {
        if self.hosts.len() < 2 {
            return fail(format!("{} hosts; a fabric has at least two", self.hosts.len()));
        }
        self.check_names()?;
        for link in &self.links {
            let hosts = [link.from, link.to].iter().filter(|node| matches!(node, Node::Host(_))).count();
            if hosts == 2 || link.from == link.to {
                return fail(format!("link `{}` joins neither two switches nor a switch and a host", link.name));
            }
        }
        for (host, name) in self.hosts.iter().enumerate() {
            let links = self.host_links[host].len();
            if links != 1 {
                return fail(format!("host `{name}` has {links} links; a host has exactly one, to a switch"));
            }
        }
        self.check_paths()
    }

    fn check_names(&self) -> Result<(), NetworkError> {
        let mut seen = HashSet::new();
        for name in self.hosts.iter().chain(self.switches.iter().map(|switch| &switch.name)) {
            let fits = !name.is_empty() && name.len() <= 11;
            if !fits || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
                return fail(format!("the name `{name}` is not one to eleven letters, digits, `.` or `_`"));
            }
            if RESERVED.contains(&name.as_str()) {
                let names = RESERVED.join(", ");
                return fail(format!("the name `{name}` is reserved by the kernel or the testbed; reserved: {names}"));
            }
            if !seen.insert(name) {
                return fail(format!("the name `{name}` is used twice"));
            }
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), NetworkError> {
        let id = |node| match node {
            Node::Host(host) => host,
            Node::Switch(switch) => self.hosts.len() + switch,
        };
        let mut out = vec![Vec::new(); self.hosts.len() + self.switches.len()];
        self.links.iter().for_each(|link| out[id(link.from)].push(id(link.to)));
        let mut seen = vec![false; out.len()];
        let mut stack = vec![0];
        seen[0] = true;
        while let Some(node) = stack.pop() {
            for next in &out[node] {
                if !std::mem::replace(&mut seen[*next], true) {
                    stack.push(*next);
                }
            }
        }
        // Cables run both ways, so host 0 reaching a host implies the reverse.
        match (0..self.hosts.len()).find(|host| !seen[*host]) {
            Some(host) => {
                fail(format!("there is no path from host `{}` to host `{}`", self.hosts[0], self.hosts[host]))
            }
            None => Ok(()),
        }
    }
}
