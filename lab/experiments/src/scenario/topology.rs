//! `[topology]`: hosts, switches and cables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Gbps, Micros};
use spray_settings::{Document, Error};

use super::mistake::{allow, list, read_file};
use crate::memory::fits_memory;
use spray_fabric::limits::Size;
use spray_fabric::{Cables, Dragonfly, FatTree, LeafSpine, Network, TopoFile};

/// Description of the fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Topology {
    /// Two tiers of switches; every leaf has cables to every spine.
    LeafSpine(LeafSpine),
    /// Three tiers of switches in pods.
    FatTree(FatTree),
    /// Groups of routers: all routers of a group, and all groups, are pairwise connected.
    Dragonfly(Dragonfly),
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
    /// The fabric of a `.topo` file.
    File {
        /// A `.topo` file of two or three tiers; a relative path starts at the scenario's folder.
        #[schemars(extend("x-file" = true))]
        file: String,
    },
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
    #[schemars(range(min = 0.01, max = 100_000))]
    pub gbps: Gbps,
    /// Propagation time.
    #[serde(default = "latency_us")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_us: Micros,
}

fn gbps() -> Gbps {
    Cables::default().host_gbps
}

fn latency_us() -> Micros {
    Cables::default().latency_us
}

impl Topology {
    pub(super) fn network(&self, document: &Document) -> Result<Network, Error> {
        let of_size = |size: Size| check_size(document, "topology.kind", &size);
        let network = match self {
            Self::LeafSpine(settings) => of_size(settings.size()).map(|()| settings.network())?,
            Self::FatTree(settings) => {
                check_fat_tree(document, settings)?;
                of_size(settings.size()).map(|()| settings.network())?
            }
            Self::Dragonfly(settings) => {
                check_dragonfly(document, settings)?;
                of_size(settings.size()).map(|()| settings.network())?
            }
            Self::Graph { hosts, switches, link } => graph(document, hosts, switches, link)?,
            Self::File { file } => {
                let (file, _) = read_file(document, "topology.file", file, "a .topo file", TopoFile::parse)?;
                check_size(document, "topology.file", &file.size())?;
                file.network()
            }
        };
        network.check().map_err(|error| document.error("topology.kind", error.to_string()))?;
        Ok(network)
    }
}

fn check_fat_tree(document: &Document, tree: &FatTree) -> Result<(), Error> {
    let FatTree { aggs_per_pod, cores, .. } = *tree;
    allow(document, cores.is_multiple_of(aggs_per_pod), "topology.cores", || {
        format!("`cores` is {cores}; allowed: multiples of `aggs_per_pod`, here {aggs_per_pod}")
    })
}

fn check_dragonfly(document: &Document, dragonfly: &Dragonfly) -> Result<(), Error> {
    let Dragonfly { groups, routers_per_group, global_cables, .. } = *dragonfly;
    let (cables, others) = (routers_per_group * global_cables, groups - 1);
    allow(document, cables.is_multiple_of(others), "topology.global_cables", || {
        format!("a group has {cables} cables to {others} others; allowed: multiples of {others}")
    })
}

/// Returns an error at `path` for a fabric that is too large for its tables or for memory.
fn check_size(document: &Document, path: &str, size: &Size) -> Result<(), Error> {
    size.check().map_err(|message| document.error(path, message))?;
    fits_memory("the fabric and its routes", size.memory_bytes(), "fewer hosts, switches or cables")
        .map_err(|message| document.error(path, message))
}

fn graph(document: &Document, hosts: &[String], switches: &[String], links: &[GraphLink]) -> Result<Network, Error> {
    let leaves = hosts.len().min(switches.len());
    let size = Size { hosts: hosts.len(), switches: switches.len(), leaves, cables: links.len() };
    check_size(document, "topology.kind", &size)?;
    let mut network = Network::default();
    for name in hosts {
        network.add_host(name);
    }
    for name in switches {
        network.add_switch(name, 0);
    }
    for (index, link) in links.iter().enumerate() {
        let end = |field: &str, name: &str| {
            network.node(name).ok_or_else(|| {
                let message = format!("there is no node `{name}`; allowed: {}", list(hosts.iter().chain(switches)));
                document.error(&format!("topology.link.{index}.{field}"), message)
            })
        };
        let (a, b) = (end("a", &link.a)?, end("b", &link.b)?);
        network.add_cable(a, b, link.gbps.bps(), link.latency_us.ps());
    }
    Ok(network)
}
