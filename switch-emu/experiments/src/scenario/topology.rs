//! `[topology]`: hosts, switches and cables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Gbps, Micros};
use spray_settings::{Document, Mistake};

use super::{in_file, list};
use spray_fabric::{Dragonfly, FatTree, LeafSpine, Network, TopoFile};

/// Most hosts of a scenario: each has an address, and the tables of routes must fit into memory.
const MAX_HOSTS: usize = 65_536;

/// How the fabric is described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Topology {
    /// Two tiers of switches; every leaf has cables to every spine.
    LeafSpine(LeafSpineSettings),
    /// Three tiers of switches in pods.
    FatTree(FatTreeSettings),
    /// Groups of routers: every two routers of a group, and every two groups, are joined.
    Dragonfly(DragonflySettings),
    /// Any fabric, listed cable by cable.
    Graph {
        /// Names of the hosts: 1 to 11 letters, digits, `.` or `_`.
        #[schemars(length(min = 1))]
        hosts: Vec<String>,
        /// Names of the switches.
        #[schemars(length(min = 1))]
        switches: Vec<String>,
        /// A cable. The table may be repeated.
        #[schemars(length(min = 1))]
        link: Vec<GraphLink>,
    },
    /// As a `.topo` file says.
    File {
        /// A `.topo` file of two or three tiers; a relative path starts at the scenario's folder.
        file: String,
    },
}

/// The cables of a topology that is given by counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cables {
    /// Rate of the hosts' cables.
    #[schemars(range(min = 0.01, max = 1_000))]
    pub host_gbps: Gbps,
    /// Propagation time of a cable, unless another setting says otherwise.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_us: Micros,
    /// Propagation time of the hosts' cables. By default `latency_us`.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub host_latency_us: Option<Micros>,
    /// Time through a switch, in addition to cables and queues.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub switch_latency_us: Micros,
}

impl Default for Cables {
    fn default() -> Self {
        Self { host_gbps: GBPS, latency_us: LATENCY_US, host_latency_us: None, switch_latency_us: Micros::new(0) }
    }
}

/// Default rate of a cable.
const GBPS: Gbps = Gbps::new(100);
/// Default propagation time of a cable.
const LATENCY_US: Micros = Micros::new(1);

/// Two tiers by counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeafSpineSettings {
    /// Number of leaves, `leaf0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub leaves: usize,
    /// Number of spines, `spine0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub spines: usize,
    /// Hosts on each leaf, `h0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub hosts_per_leaf: usize,
    /// Parallel cables between two switches.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub bundle: usize,
    /// Rate of the cables between the two lowest tiers of switches. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub uplink_gbps: Option<Gbps>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

/// Three tiers by counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FatTreeSettings {
    /// Number of pods.
    #[schemars(range(min = 1, max = 256))]
    pub pods: usize,
    /// ToRs of a pod, `tor0` and on.
    #[schemars(range(min = 1, max = 128))]
    pub tors_per_pod: usize,
    /// Aggregation switches of a pod, `agg0` and on; every ToR of the pod has cables to each.
    #[schemars(range(min = 1, max = 128))]
    pub aggs_per_pod: usize,
    /// Number of cores, `core0` and on, a multiple of `aggs_per_pod`. Core c has cables to aggregation switch c modulo
    /// `aggs_per_pod` of each pod.
    #[schemars(range(min = 1, max = 4_096))]
    pub cores: usize,
    /// Hosts on each ToR, `h0` and on.
    #[schemars(range(min = 1, max = 1_024))]
    pub hosts_per_tor: usize,
    /// Parallel cables between two switches.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub bundle: usize,
    /// Rate of the cables between the two lowest tiers of switches. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub uplink_gbps: Option<Gbps>,
    /// Rate of the cables to cores. By default `uplink_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub core_gbps: Option<Gbps>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

/// A dragonfly by counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DragonflySettings {
    /// Number of groups.
    #[schemars(range(min = 2, max = 1_024))]
    pub groups: usize,
    /// Routers of a group, `g0r0` and on; every two of them have a cable.
    #[schemars(range(min = 1, max = 128))]
    pub routers_per_group: usize,
    /// Hosts on each router, `h0` and on.
    #[schemars(range(min = 1, max = 128))]
    pub hosts_per_router: usize,
    /// Cables of each router to other groups. The number of all such cables of a group must be a multiple of the number of other
    /// groups.
    #[schemars(range(min = 1, max = 128))]
    pub global_cables: usize,
    /// Rate of the cables within a group. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub local_gbps: Option<Gbps>,
    /// Rate of the cables between groups. By default `host_gbps`.
    #[serde(default)]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub global_gbps: Option<Gbps>,
    /// Propagation time of the cables between groups. By default `latency_us`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub global_latency_us: Option<Micros>,
    /// Cables.
    #[serde(flatten)]
    pub cables: Cables,
}

/// A cable of a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphLink {
    /// One end: a host or a switch. A host has exactly one cable.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Rate of either direction.
    #[serde(default = "gbps")]
    #[schemars(range(min = 0.01, max = 1_000))]
    pub gbps: Gbps,
    /// Propagation time.
    #[serde(default = "latency_us")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_us: Micros,
}

fn one() -> usize {
    1
}

fn gbps() -> Gbps {
    GBPS
}

fn latency_us() -> Micros {
    LATENCY_US
}

impl Topology {
    /// Builds the network.
    ///
    /// # Errors
    /// Settings that do not fit together, with their place in `document`.
    pub(super) fn network(&self, document: &Document) -> Result<Network, Mistake> {
        let network = match self {
            Self::LeafSpine(settings) => {
                check_hosts(document, &[settings.leaves, settings.hosts_per_leaf])?;
                settings.counts().network()
            }
            Self::FatTree(settings) => {
                settings.check(document)?;
                settings.counts().network()
            }
            Self::Dragonfly(settings) => {
                settings.check(document)?;
                settings.counts().network()
            }
            Self::Graph { hosts, switches, link } => graph(document, hosts, switches, link)?,
            Self::File { file } => topo_file(document, file)?,
        };
        check_hosts(document, &[network.hosts.len()])?;
        network.check().map_err(|error| document.mistake("topology.kind", error.to_string()))?;
        Ok(network)
    }
}

/// Refuses a product of `factors` that is more hosts than a scenario may have.
fn check_hosts(document: &Document, factors: &[usize]) -> Result<(), Mistake> {
    let hosts: usize = factors.iter().product();
    if hosts > MAX_HOSTS {
        return Err(document.mistake("topology.kind", format!("{hosts} hosts; allowed: at most {MAX_HOSTS}")));
    }
    Ok(())
}

impl LeafSpineSettings {
    fn counts(&self) -> LeafSpine {
        let cables = &self.cables;
        LeafSpine {
            leaves: self.leaves,
            spines: self.spines,
            hosts_per_leaf: self.hosts_per_leaf,
            bundle: self.bundle,
            host_bps: cables.host_gbps.bps(),
            uplink_bps: self.uplink_gbps.unwrap_or(cables.host_gbps).bps(),
            host_latency_ps: cables.host_latency_us.unwrap_or(cables.latency_us).ps(),
            uplink_latency_ps: cables.latency_us.ps(),
            switch_latency_ps: cables.switch_latency_us.ps(),
        }
    }
}

impl FatTreeSettings {
    fn counts(&self) -> FatTree {
        let cables = &self.cables;
        let uplink_gbps = self.uplink_gbps.unwrap_or(cables.host_gbps);
        FatTree {
            pods: self.pods,
            tors_per_pod: self.tors_per_pod,
            aggs_per_pod: self.aggs_per_pod,
            cores: self.cores,
            hosts_per_tor: self.hosts_per_tor,
            bundle: self.bundle,
            host_bps: cables.host_gbps.bps(),
            uplink_bps: uplink_gbps.bps(),
            core_bps: self.core_gbps.unwrap_or(uplink_gbps).bps(),
            host_latency_ps: cables.host_latency_us.unwrap_or(cables.latency_us).ps(),
            uplink_latency_ps: cables.latency_us.ps(),
            switch_latency_ps: cables.switch_latency_us.ps(),
        }
    }

    fn check(&self, document: &Document) -> Result<(), Mistake> {
        let (cores, aggs) = (self.cores, self.aggs_per_pod);
        if !cores.is_multiple_of(aggs) {
            let message = format!("`cores` is {cores}; allowed: multiples of `aggs_per_pod`, here {aggs}");
            return Err(document.mistake("topology.cores", message));
        }
        check_hosts(document, &[self.pods, self.tors_per_pod, self.hosts_per_tor])
    }
}

impl DragonflySettings {
    fn counts(&self) -> Dragonfly {
        let cables = &self.cables;
        Dragonfly {
            groups: self.groups,
            routers_per_group: self.routers_per_group,
            hosts_per_router: self.hosts_per_router,
            global_cables: self.global_cables,
            host_bps: cables.host_gbps.bps(),
            local_bps: self.local_gbps.unwrap_or(cables.host_gbps).bps(),
            global_bps: self.global_gbps.unwrap_or(cables.host_gbps).bps(),
            host_latency_ps: cables.host_latency_us.unwrap_or(cables.latency_us).ps(),
            local_latency_ps: cables.latency_us.ps(),
            global_latency_ps: self.global_latency_us.unwrap_or(cables.latency_us).ps(),
            switch_latency_ps: cables.switch_latency_us.ps(),
        }
    }

    fn check(&self, document: &Document) -> Result<(), Mistake> {
        let (cables, others) = (self.routers_per_group * self.global_cables, self.groups - 1);
        if !cables.is_multiple_of(others) {
            let message = format!("a group has {cables} cables to {others} others; allowed: multiples of {others}");
            return Err(document.mistake("topology.global_cables", message));
        }
        check_hosts(document, &[self.groups, self.routers_per_group, self.hosts_per_router])
    }
}

fn graph(document: &Document, hosts: &[String], switches: &[String], links: &[GraphLink]) -> Result<Network, Mistake> {
    let mut network = Network::default();
    for name in hosts {
        network.add_host(name);
    }
    for name in switches {
        network.add_switch(name, 0);
    }
    for (index, link) in links.iter().enumerate() {
        let end = |field: &str, name: &str| {
            let unknown = || {
                let message = format!("there is no node `{name}`; allowed: {}", list(hosts.iter().chain(switches)));
                document.mistake(&format!("topology.link.{index}.{field}"), message)
            };
            network.node(name).ok_or_else(unknown)
        };
        let (a, b) = (end("a", &link.a)?, end("b", &link.b)?);
        network.add_cable(a, b, link.gbps.bps(), link.latency_us.ps());
    }
    Ok(network)
}

fn topo_file(document: &Document, name: &str) -> Result<Network, Mistake> {
    let file = document.folder("topology.file").join(name);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let message = format!("`{}` cannot be read: {error}; allowed: a .topo file", file.display());
        document.mistake("topology.file", message)
    })?;
    let topo = TopoFile::parse(&text).map_err(|error| in_file(&file, error.line, error.column, error.message))?;
    Ok(topo.network())
}
