//! From a network and its timed events to the fabric that the switch program runs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::event::{changes, known_down, reroutes};
use super::{LinkEvent, Network, groups};
use crate::fabric::{Fabric, Host, MAX_CHANGES, MAX_EPOCHS, Node, Port, QueueConfig, RouteEpoch, Switch};

/// A fabric, and which port each link became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// What the engines run.
    pub fabric: Fabric,
    /// Per link of the network its egress port; `None` for links that leave a host.
    pub port_of_link: Vec<Option<usize>>,
}

/// Why events cannot be preloaded into switches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// An event names a link that leaves a host.
    #[error("link `{0}` leaves a host; allowed: links that leave a switch")]
    HostLink(String),
    /// One link changes too often.
    #[error("link `{link}` changes {changes} times; allowed: at most {MAX_CHANGES}")]
    Changes {
        /// The link's name.
        link: String,
        /// How often.
        changes: usize,
    },
    /// Routing changes too often.
    #[error("routing changes {0} times; allowed: at most {max}", max = MAX_EPOCHS - 1)]
    Reroutes(usize),
}

/// Compiles `network`: addresses, salts drawn from `seed`, one port per link that leaves a switch with the queue that
/// `queue` gives for its rate, and one routing epoch per change that routing learns of.
///
/// A switch's latency is added to each of its ports. Errors name what cannot be preloaded.
pub fn compile(
    network: &Network,
    seed: u64,
    queue: impl Fn(u64) -> QueueConfig,
    events: &[LinkEvent],
) -> Result<Compiled, CompileError> {
    let mut fabric = Fabric { seed, hosts: hosts(network), switches: switches(network, seed), ..Fabric::default() };
    let mut port_of_link = vec![None; network.links.len()];
    for (index, link) in network.links.iter().enumerate() {
        let changes = changes(events, index);
        let Node::Switch(switch) = link.from else {
            if !changes.is_empty() {
                return Err(CompileError::HostLink(link.name.clone()));
            }
            continue;
        };
        if changes.len() > MAX_CHANGES {
            return Err(CompileError::Changes { link: link.name.clone(), changes: changes.len() });
        }
        port_of_link[index] = Some(fabric.ports.len());
        fabric.ports.push(Port {
            name: link.name.clone(),
            switch,
            to: link.to,
            rate_bps: link.rate_bps,
            latency_ps: link.latency_ps + network.switches[switch].latency_ps,
            queue: queue(link.rate_bps),
            changes,
        });
    }
    fabric.routes = epochs(network, events, &port_of_link)?;
    Ok(Compiled { fabric, port_of_link })
}

fn epochs(network: &Network, events: &[LinkEvent], ports: &[Option<usize>]) -> Result<Vec<RouteEpoch>, CompileError> {
    let mut times = reroutes(events);
    if times.first() != Some(&0) {
        times.insert(0, 0);
    }
    if times.len() > MAX_EPOCHS {
        return Err(CompileError::Reroutes(times.len() - 1));
    }
    let epoch = |valid_from_ps| {
        let mut groups = groups(network, |link| !known_down(events, link, valid_from_ps));
        // Only links that leave a switch are in a group, and each of those is a port.
        groups.iter_mut().flatten().flatten().for_each(|link| *link = ports[*link].unwrap_or_default());
        RouteEpoch { valid_from_ps, groups }
    };
    Ok(times.into_iter().map(epoch).collect())
}

fn hosts(network: &Network) -> Vec<Host> {
    let host = |(index, name): (usize, &String)| {
        let id = index as u32 + 1;
        let [_, high, middle, low] = id.to_be_bytes();
        Host {
            name: name.clone(),
            v4: Ipv4Addr::new(10, high, middle, low),
            v6: Ipv6Addr::new(0xfd53, 0x5052, 0x4159, 0, 0, 0, (id >> 16) as u16, id as u16),
            // Locally administered, unicast.
            mac: [0x02, 0x53, 0x50, high, middle, low],
        }
    };
    network.hosts.iter().enumerate().map(host).collect()
}

fn switches(network: &Network, seed: u64) -> Vec<Switch> {
    let salt = |index: usize| mix(seed ^ mix(index as u64 + 1)) as u32;
    let switch =
        |(index, switch): (usize, &super::NetworkSwitch)| Switch { name: switch.name.clone(), salt: salt(index) };
    network.switches.iter().enumerate().map(switch).collect()
}

/// A bijection that spreads every input bit over the output (the finaliser of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
