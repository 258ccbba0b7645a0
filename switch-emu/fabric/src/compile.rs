//! Compiles a network and its timed events into a fabric.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::event::{changes, epoch_starts, known_down};
use super::{LinkEvent, Network, groups};
use crate::fabric::{
    Fabric, FabricHost, LinkChange, MAX_CHANGES, MAX_EPOCHS, MIN_RATE_PPM, Port, RouteEpoch, Thresholds,
};
use crate::node::Node;
use crate::salt::salt;

/// A reason why events cannot be preloaded into switches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A link changes too often.
    #[error("link `{link}` changes {changes} times; allowed: at most {MAX_CHANGES}")]
    Changes {
        /// The link's name.
        link: String,
        /// The number of changes.
        changes: usize,
    },
    /// An event drops every n-th frame.
    #[error("link `{0}` loses frames periodically; allowed: on the simulator only")]
    Periodic(String),
    /// Overlapping events leave too little of a link's rate.
    #[error("events reduce link `{link}` to {ppm} millionths of its rate; allowed: at least {MIN_RATE_PPM}")]
    Rate {
        /// The link's name.
        link: String,
        /// The remaining rate in millionths.
        ppm: u32,
    },
    /// Routing changes too often.
    #[error("routing changes {0} times; allowed: at most {max}", max = MAX_EPOCHS - 1)]
    Reroutes(usize),
}

/// Compiles `network` into addresses, salts drawn from `seed`, schemes, one port per link that
/// leaves a switch, and one routing epoch per change that routing learns of. `queue` returns the
/// thresholds for a rate. A switch's latency is added to each of its ports.
///
/// # Errors
/// As [`preload`].
pub fn compile(
    network: &Network,
    seed: u64,
    queue: impl Fn(u64) -> Thresholds,
    events: &[LinkEvent],
) -> Result<Fabric, CompileError> {
    let changes = preload(network, events)?;
    let salts = (0..network.switches.len()).map(|switch| salt(seed, switch)).collect();
    let (hosts, switching, groups) = (hosts(network, &changes), network.switching.clone(), network.groups);
    let mut fabric = Fabric { seed, hosts, salts, switching, groups, ..Fabric::default() };
    for ((index, link), changes) in network.links.iter().enumerate().zip(changes) {
        let Some(switch) = link.from.switch() else { continue };
        fabric.ports.push(Port {
            name: link.name.clone(),
            switch,
            to: link.to,
            rate_bps: link.rate_bps,
            latency_ps: network.latency_ps(index),
            queue: queue(link.rate_bps),
            changes,
        });
    }
    fabric.routes = epochs(network, events);
    Ok(fabric)
}

/// Returns the links in the order of ports: those that leave a switch, then those of the hosts.
pub fn ports(network: &Network) -> impl Iterator<Item = usize> + '_ {
    let leaves_switch = |link: &usize| network.links[*link].from.switch().is_some();
    let of_switches = (0..network.links.len()).filter(leaves_switch);
    of_switches.chain((0..network.hosts.len()).map(|host| network.uplink(host)))
}

/// Returns the hosts' links as ports to their switches, for hosts that do not emulate them.
pub fn host_ports(network: &Network, queue: impl Fn(u64) -> Thresholds) -> Vec<Port> {
    let port = |host: usize| {
        let link = &network.links[network.uplink(host)];
        let switch = network.leaf_of(host);
        Port {
            name: link.name.clone(),
            switch,
            to: Node::Switch(switch),
            rate_bps: link.rate_bps,
            latency_ps: network.latency_ps(network.uplink(host)),
            queue: queue(link.rate_bps),
            changes: Vec::new(),
        }
    };
    (0..network.hosts.len()).map(port).collect()
}

/// Replaces the routes and link changes of a fabric compiled from `network`; fails as [`preload`].
pub fn reroute(fabric: &mut Fabric, network: &Network, events: &[LinkEvent]) -> Result<(), CompileError> {
    let mut changes = preload(network, events)?;
    for (port, link) in ports(network).enumerate() {
        let of = match fabric.ports.get_mut(port) {
            Some(port) => &mut port.changes,
            None => &mut fabric.hosts[port - fabric.ports.len()].changes,
        };
        *of = std::mem::take(&mut changes[link]);
    }
    fabric.routes = epochs(network, events);
    Ok(())
}

/// Checks that every link keeps at least [`MIN_RATE_PPM`]; else fails with [`CompileError::Rate`].
pub fn check_rates(network: &Network, changes: &[Vec<LinkChange>]) -> Result<(), CompileError> {
    let slowest = |changes: &Vec<LinkChange>| changes.iter().map(|change| change.state.rate_ppm).min();
    let mut slow = network.links.iter().zip(changes).filter_map(|(link, changes)| Some((link, slowest(changes)?)));
    match slow.find(|(_, ppm)| *ppm < MIN_RATE_PPM) {
        Some((link, ppm)) => Err(CompileError::Rate { link: link.name.clone(), ppm }),
        None => Ok(()),
    }
}

/// Checks that `events` can be preloaded into switches and hosts; returns the changes of each link.
///
/// # Errors
/// [`CompileError`] for the first link, or for routing, whose changes switches do not support.
pub fn preload(network: &Network, events: &[LinkEvent]) -> Result<Vec<Vec<LinkChange>>, CompileError> {
    let changes = changes(events, network.links.len());
    check_rates(network, &changes)?;
    for (link, changes) in network.links.iter().zip(&changes) {
        let periodic = changes.iter().any(|change| change.state.drop_every.is_some());
        if periodic {
            return Err(CompileError::Periodic(link.name.clone()));
        }
        if changes.len() > MAX_CHANGES {
            return Err(CompileError::Changes { link: link.name.clone(), changes: changes.len() });
        }
    }
    let reroutes = epoch_starts(events).len() - 1;
    if reroutes >= MAX_EPOCHS { Err(CompileError::Reroutes(reroutes)) } else { Ok(changes) }
}

fn epochs(network: &Network, events: &[LinkEvent]) -> Vec<RouteEpoch> {
    let mut ports_of = vec![0; network.links.len()];
    ports(network).enumerate().for_each(|(port, link)| ports_of[link] = port);
    let epoch = |valid_from_ps| {
        let mut groups = groups(network, |link| !known_down(events, link, valid_from_ps));
        // Groups only have links that leave a switch, which are ports.
        groups.iter_mut().flatten().flatten().for_each(|link| *link = ports_of[*link]);
        RouteEpoch { valid_from_ps, groups }
    };
    epoch_starts(events).into_iter().map(epoch).collect()
}

fn hosts(network: &Network, changes: &[Vec<LinkChange>]) -> Vec<FabricHost> {
    let host = |(index, name): (usize, &String)| FabricHost {
        name: name.clone(),
        v4: v4(index),
        v6: v6(index),
        mac: mac(index),
        changes: changes[network.uplink(index)].clone(),
    };
    network.hosts.iter().enumerate().map(host).collect()
}

/// Returns the MAC address of a host.
pub fn mac(host: usize) -> [u8; 6] {
    let [_, high, middle, low] = (host as u32 + 1).to_be_bytes();
    // Locally administered, unicast.
    [0x02, 0x53, 0x50, high, middle, low]
}

/// Returns the IP address of a host.
pub fn address(host: usize, v6: bool) -> IpAddr {
    if v6 { self::v6(host).into() } else { v4(host).into() }
}

fn v4(host: usize) -> Ipv4Addr {
    let [_, high, middle, low] = (host as u32 + 1).to_be_bytes();
    Ipv4Addr::new(10, high, middle, low)
}

fn v6(host: usize) -> Ipv6Addr {
    let id = host as u32 + 1;
    Ipv6Addr::new(0xfd53, 0x5052, 0x4159, 0, 0, 0, (id >> 16) as u16, id as u16)
}

/// Returns the addresses of a switch below number 65,535, above those of all hosts.
pub fn switch_addresses(switch: usize) -> (Ipv4Addr, Ipv6Addr) {
    let id = switch as u16 + 1;
    let [high, low] = id.to_be_bytes();
    (Ipv4Addr::new(10, 255, high, low), Ipv6Addr::new(0xfd53, 0x5052, 0x4159, 0, 0, 1, 0, id))
}
