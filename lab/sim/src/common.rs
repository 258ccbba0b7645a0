//! State shared by all parts of a run; it changes only between windows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spray_fabric::{BinScale, EvPaths, Network, Node, RouteTable, Thresholds};
use spray_pipeline::routes::Routes;
use spray_pipeline::word::Word;

use super::partition::Partition;
use super::shared::Shared;
use super::spec::SimSpec;

pub(super) struct Common<'a> {
    pub spec: &'a SimSpec<'a>,
    pub partition: Partition,
    pub routes: RouteTable,
    /// Registers and state of the schemes. Each word belongs to one switch, and so to one part.
    pub words: Vec<LocalWord>,
    /// Whether a scheme is stateful; frames then have trails.
    pub uses_trail: bool,
    /// Whether frames at a switch may cause further events: pauses, notices, releases.
    pub has_more: bool,
    /// First host of each switch; empty if no scheme sends notices.
    pub first_host: Vec<u32>,
    /// By link.
    pub queues: Vec<Thresholds>,
    /// `None` with PFC, which accounts memory by the incoming link.
    pub shared: Option<Shared>,
    pub trimmed_len: u16,
    /// Computed when a balancer first needs it.
    pub ev_paths: OnceLock<EvPaths<'a>>,
    /// Port of each link: switches' by part, in the order of links, then hosts' own links.
    pub port_of_link: Vec<u32>,
    /// First port of each part; the last entry is the first of the hosts' own links.
    pub first_port: Vec<u32>,
    /// Bins of a switch port, and of delivered payload.
    pub bins: BinScale,
    pub arrived: BinScale,
}

/// Memory limit of the ports' bins, exceeded only if the least number of bins takes more. A run
/// allocates only those that it reaches: a sixth, if it is no longer than the first bins.
const BINS_BYTES: usize = 256 << 20;

/// A port's part and its index in that part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortPlace {
    pub part: usize,
    pub place: usize,
}

impl<'a> Common<'a> {
    pub(super) fn new(spec: &'a SimSpec<'a>) -> Self {
        let network = spec.network;
        let partition = Partition::new(spec);
        let (port_of_link, first_port) = number_ports(spec, &partition);
        let (queues, ports) = (spec.queues(), network.links.len() - network.hosts.len());
        let routes = RouteTable::new(network, spec.events, spec.seed, |link| port_of_link[link]);
        let mut switches = (0..network.switches.len() as u32).filter_map(|switch| routes.switch(switch));
        Self {
            spec,
            words: routes.words.iter().map(|word| LocalWord(AtomicU64::new(*word))).collect(),
            uses_trail: switches.any(|config| config.uses_trail != 0),
            has_more: spec.pfc.is_some() || network.switching.has_notices(),
            first_host: first_hosts(network),
            shared: if spec.pfc.is_some() { None } else { Shared::new(network, &queues, &port_of_link) },
            queues,
            trimmed_len: spec.frames.trimmed.clamp(1, u32::from(u16::MAX)) as u16,
            ev_paths: OnceLock::new(),
            partition,
            routes,
            bins: BinScale::new(0, spec.sample_ps, spec.until_ps, ports, BINS_BYTES),
            arrived: BinScale::single(0, spec.sample_ps, spec.until_ps),
            port_of_link,
            first_port,
        }
    }

    pub(super) fn part_of_host(&self, host: usize) -> u32 {
        self.partition.of_switch[self.spec.network.leaf_of(host)]
    }

    pub(super) fn locate(&self, link: usize) -> PortPlace {
        match self.spec.network.links[link].from {
            Node::Switch(switch) => {
                let part = self.partition.of_switch[switch] as usize;
                PortPlace { part, place: (self.port_of_link[link] - self.first_port[part]) as usize }
            }
            Node::Host(host) => {
                let part = self.part_of_host(host) as usize;
                let own = (self.first_port[part + 1] - self.first_port[part]) as usize;
                PortPlace { part, place: own + self.partition.place_of_host[host] as usize }
            }
        }
    }
}

/// Returns the port of each link and the first port of each part.
fn number_ports(spec: &SimSpec<'_>, partition: &Partition) -> (Vec<u32>, Vec<u32>) {
    let network = spec.network;
    let mut of_part = vec![Vec::new(); partition.len()];
    for (index, link) in network.links.iter().enumerate() {
        if let Some(switch) = link.from.switch() {
            of_part[partition.of_switch[switch] as usize].push(index);
        }
    }
    let (mut port_of_link, mut first_port, mut next) = (vec![0; network.links.len()], vec![0], 0);
    for links in of_part {
        links.into_iter().for_each(|link| {
            port_of_link[link] = next;
            next += 1;
        });
        first_port.push(next);
    }
    (0..network.hosts.len()).for_each(|host| port_of_link[network.uplink(host)] = next + host as u32);
    (port_of_link, first_port)
}

fn first_hosts(network: &Network) -> Vec<u32> {
    if !network.switching.has_notices() {
        return Vec::new();
    }
    let mut first = vec![u32::MAX; network.switches.len()];
    (0..network.hosts.len()).rev().for_each(|host| first[network.leaf_of(host)] = host as u32);
    first
}

/// A word that only one part reads and writes, so that its updates need not be atomic.
#[derive(Debug)]
pub(super) struct LocalWord(AtomicU64);

impl Word for LocalWord {
    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}
