//! A fabric that forwards in real time. Its hosts are network namespaces of this machine, or
//! whatever is behind external interfaces.
//!
//! | file | content |
//! |---|---|
//! | `interface_sockets` | attaches to interfaces, and opens sockets on them |
//! | `delay_queue` | holds frames until they are due |
//! | `time_exceeded` | ICMP time-exceeded replies |
//! | `failures` | set and detected changes of links |
//! | `external`, `edge`, `interface` | external interfaces and their state |
//! | `bridge`, `fdb`, `claim` | forwarding of ARP and ND, MAC learning, and address conflicts |
//! | `link_state`, `message` | the machines that run the other switches |
//! | `capacity` | whether the machine is fast enough |
//! | `checksum` | completion of partial checksums |

mod bridge;
mod capacity;
mod checksum;
mod claim;
mod delay_queue;
mod edge;
mod external;
mod failures;
mod fdb;
mod host;
mod interface;
mod interface_sockets;
mod link_state;
mod message;
mod time_exceeded;

use std::fmt::Write as _;
use std::net::IpAddr;

use spray_fabric::{
    ChassisCounters, ChassisSpec, Fabric, LinkChange, LinkState, Network, NetworkSwitch, Port, PortCounters,
    host_ports, ports, reroute, switch_addresses,
};
use spray_nic::net::ethtool::Ethtool;
use spray_pipeline::config::NEVER;
use spray_pipeline::impairment::Impairment;

use self::delay_queue::DelayQueue;
use self::edge::Edge;
pub use self::external::{ExternalInterfaces, RemoteCable};
use self::failures::Failures;
pub use self::failures::LinkSetting;
pub use self::host::{DeployedHost, HostLocation};
pub use self::interface::PortSpec;
use self::interface_sockets::InterfaceSockets;
pub use self::link_state::CableState;
use crate::netns_nodes::{self, Chassis, ExternalNetns, NetnsNode};
use crate::program::{KernelClock, SwitchProgram};
use crate::{FabricSpec, RunError, links};

/// A running fabric; dropping it removes it. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub struct Deployment {
    delay_queue: DelayQueue,
    chassis: Vec<Chassis>,
    nodes: Vec<NetnsNode>,
    /// `None` where the fabric has made its own interfaces.
    edge: Option<Edge>,
    network: Network,
    fabric: Fabric,
    /// The hosts' own links, behind the fabric's ports.
    own: Vec<Port>,
    /// The number of the link behind each port.
    links: Vec<usize>,
    failures: Failures,
    clock: KernelClock,
    since_ps: u64,
    link_log: Vec<LinkLogEntry>,
    frame_bytes: u32,
}

struct Parts {
    fabric: Fabric,
    clock: KernelClock,
    own: Vec<Port>,
    chassis: Vec<Chassis>,
    delay_queue: DelayQueue,
    nodes: Vec<NetnsNode>,
}

/// A link, its state and its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct DeployedLink {
    /// The name.
    pub name: String,
    /// The full rate, in bits per second.
    pub rate_bps: u64,
    /// Up, down, silently dropping, slow or lossy.
    pub state: LinkState,
    /// Delay, reordering, corruption and duplication.
    pub impairment: Impairment,
    /// The counters of its port.
    pub counters: PortCounters,
}

/// A change of links while the fabric was up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLogEntry {
    /// Time since the fabric is up, in ps.
    pub at_ps: u64,
    /// A name that matches the links, such as `leaf0->spine*`.
    pub links: String,
    /// The change.
    pub event: LinkLogEvent,
}

/// A change of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkLogEvent {
    /// Set by [`Deployment::set_links`].
    Set(Vec<LinkSetting>),
    /// The carrier is lost, or the machine at the other end is silent or not the right one.
    Down,
    /// The carrier, or the machine at the other end, is back.
    Up,
    /// The host there took over an address of this host, which no longer answered probes.
    AddressMoved(IpAddr, String),
    /// The host there used an address that this host keeps.
    AddressConflict(IpAddr, String),
}

const MAX_EVENTS: usize = 10_000;

impl Deployment {
    /// Sets up the hosts, links and switches of `spec`, all links up; hosts of `external` in the
    /// existing namespaces. Routing sees link failures `convergence_ps` late. Needs root.
    ///
    /// # Errors
    /// [`RunError`]; everything made until then is removed.
    pub fn new(spec: &FabricSpec<'_>, convergence_ps: u64, external: &[ExternalNetns]) -> Result<Self, RunError> {
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        if let Some(strange) = external.iter().find(|of| fabric.hosts.iter().all(|host| host.name != of.host)) {
            let hosts: Vec<&str> = fabric.hosts.iter().map(|host| host.name.as_str()).take(8).collect();
            return Err(RunError::Port(format!("there is no host {}; hosts are {}", strange.host, hosts.join(", "))));
        }
        let nodes = netns_nodes::create(spec, &fabric, external)?;
        let (hosts, switches) = nodes.split_at(fabric.hosts.len());
        for node in hosts {
            configure_kernel_interface(node, &fabric, &spec.network.switches)?;
        }
        let own = host_ports(spec.network, spec.queue);
        let sockets = switches.iter().map(|node| node.interfaces.len()).sum();
        let mut opened = InterfaceSockets::new(&fabric, sockets);
        let clock = KernelClock::new()?;
        let mut chassis = Vec::with_capacity(switches.len());
        for (number, node) in switches.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let spec = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
            let mut program = SwitchProgram::load_deployed(&spec, &clock, &own, None)?;
            node.namespace.run(|| opened.open_veths(&mut program, node))??;
            chassis.push(Chassis { program, switch });
        }
        let switches = fabric.ports.iter().map(|port| port.switch).collect();
        let delay_queue = DelayQueue::new(clock, opened.sockets, opened.egress, None, switches)?;
        Ok(Self::of(spec, Parts { fabric, clock, own, chassis, delay_queue, nodes }, convergence_ps))
    }

    fn of(spec: &FabricSpec<'_>, parts: Parts, convergence_ps: u64) -> Self {
        let Parts { fabric, clock, own, chassis, delay_queue, nodes } = parts;
        Self {
            delay_queue,
            chassis,
            nodes,
            edge: None,
            network: spec.network.clone(),
            links: ports(spec.network).collect(),
            fabric,
            own,
            failures: Failures::new(convergence_ps),
            since_ps: clock.now_ps(),
            clock,
            link_log: Vec::new(),
            frame_bytes: spec.packet_bytes,
        }
    }

    /// Returns the hosts, in the fabric's order.
    pub fn hosts(&self) -> Vec<DeployedHost> {
        let made = |(host, node): (&spray_fabric::FabricHost, &NetnsNode)| DeployedHost {
            name: host.name.clone(),
            addresses: vec![host.v4.into(), host.v6.into()],
            place: HostLocation::Namespace(node.namespace.name().to_string()),
        };
        match &self.edge {
            None => self.fabric.hosts.iter().zip(&self.nodes).map(made).collect(),
            Some(edge) => edge.hosts(&self.network),
        }
    }

    /// Returns the names of the namespaces that this has created.
    pub fn namespaces(&self) -> Vec<String> {
        let own = self.nodes.iter().map(|node| &node.namespace).filter(|namespace| !namespace.is_external());
        own.map(|namespace| namespace.name().to_string()).collect()
    }

    /// Returns the matching links, or all, without other machines'; `None` where none matches.
    ///
    /// # Errors
    /// [`RunError::Port`] when all matching links are of other machines.
    pub fn links(&self, name: Option<&str>) -> Result<Option<Vec<DeployedLink>>, RunError> {
        let Some(named) = self.local(name)? else { return Ok(None) };
        let now_ps = self.clock.now_ps();
        let states = self.failures.states(self.network.links.len(), now_ps);
        let mut rows = Vec::with_capacity(named.len());
        for link in named {
            let Some((port, chassis)) = self.port_of(link) else { continue };
            let program = &self.chassis[chassis].program;
            rows.push(DeployedLink {
                name: self.network.links[link].name.clone(),
                rate_bps: self.network.links[link].rate_bps,
                state: states[link],
                impairment: self.failures.impairment(link),
                counters: program.counters(port)?,
            });
        }
        Ok(Some(rows))
    }

    /// Replaces the state of the links that `name` matches by `settings`; returns false where it
    /// matches none. Routing sees failures with the delay of a scenario.
    ///
    /// # Errors
    /// [`RunError::Unsupported`] when links change too often for the switches' tables,
    /// [`RunError::Port`] when all matching links are of other machines; else kernel errors.
    pub fn set_links(&mut self, name: &str, settings: &[LinkSetting]) -> Result<bool, RunError> {
        let Some(named) = self.local(Some(name))? else { return Ok(false) };
        Failures::check(settings)?;
        self.change(|failures, now_ps| failures.order(&named, settings, now_ps))?;
        for link in named {
            let Some((port, chassis)) = self.port_of(link) else { continue };
            self.chassis[chassis].program.impair(port, &self.failures.impairment(link))?;
        }
        self.note(name.into(), LinkLogEvent::Set(settings.to_vec()));
        Ok(true)
    }

    fn note(&mut self, links: String, event: LinkLogEvent) {
        if self.link_log.len() < MAX_EVENTS {
            self.link_log.push(LinkLogEntry { at_ps: self.up_ps(), links, event });
        }
    }

    /// Returns the time since the fabric is up, in ps.
    pub fn up_ps(&self) -> u64 {
        self.clock.now_ps() - self.since_ps
    }

    /// Returns the first 10,000 changes of links since the fabric is up.
    pub fn link_log(&self) -> &[LinkLogEntry] {
        &self.link_log
    }

    fn local(&self, name: Option<&str>) -> Result<Option<Vec<usize>>, RunError> {
        let all = || Some((0..self.network.links.len()).collect());
        let Some(mut links) = name.map_or_else(all, |name| self.network.links_named(name)) else { return Ok(None) };
        links.retain(|link| self.port_of(*link).is_some());
        if links.is_empty() {
            let name = name.unwrap_or("*");
            return Err(RunError::Port(format!(
                "`{name}` belongs to switches of other machines: use the command there"
            )));
        }
        Ok(Some(links))
    }

    /// Applies `update` now, and writes the changed link states and routes to the switches.
    fn change(&mut self, update: impl FnOnce(&mut Failures, u64)) -> Result<(), RunError> {
        let now_ps = self.clock.now_ps();
        let all = self.network.links.len();
        let before = self.failures.states(all, now_ps);
        update(&mut self.failures, now_ps);
        let after = self.failures.states(all, now_ps);
        for link in (0..all).filter(|link| before[*link] != after[*link]) {
            let Some((port, chassis)) = self.port_of(link) else { continue };
            let change = LinkChange { at_ps: now_ps, state: after[link] };
            let rate_bps = self.network.links[link].rate_bps;
            self.chassis[chassis].program.change_link(port, rate_bps, &change)?;
        }
        let old = std::mem::take(&mut self.fabric.routes);
        let outcome = reroute(&mut self.fabric, &self.network, self.failures.events());
        if let Err(error) = outcome {
            self.fabric.routes = old;
            return Err(RunError::Unsupported(format!("{error}; wait until routing has seen the previous changes")));
        }
        if old == self.fabric.routes { Ok(()) } else { self.reroute() }
    }

    fn reroute(&mut self) -> Result<(), RunError> {
        for chassis in &mut self.chassis {
            let spec = ChassisSpec {
                switch: chassis.switch,
                frame_bytes: self.frame_bytes,
                ..ChassisSpec::whole(&self.fabric)
            };
            chassis.program.reroute(&spec)?;
        }
        Ok(())
    }

    /// Returns the sum of all switches' counters.
    pub fn counters(&self) -> Result<ChassisCounters, RunError> {
        let mut sum = ChassisCounters::default();
        for chassis in &self.chassis {
            sum.add(&chassis.program.chassis_counters()?);
        }
        Ok(sum)
    }

    /// Returns the number of frames that this machine dropped for lack of capacity.
    pub fn overload_drops(&self) -> Result<u64, RunError> {
        let mut lost = self.delay_queue.lost();
        for chassis in &self.chassis {
            lost += chassis.program.driver_drops()?.unwrap_or(0);
        }
        Ok(lost)
    }

    /// Returns whether the fabric's clock is at its limit, after 105 days.
    //= docs/specs/switch.md#SW-31 one clock
    pub fn nears_clock_limit(&self) -> bool {
        nears_clock_limit(self.clock.now_ps())
    }

    /// Returns whether the forwarding thread has ended.
    pub fn has_stopped(&self) -> bool {
        self.delay_queue.is_gone()
    }

    /// The port of a link, and the index of its chassis; `None` where another machine runs it.
    fn port_of(&self, link: usize) -> Option<(usize, usize)> {
        let port = self.links.iter().position(|other| *other == link)?;
        let switch = self.fabric.ports.get(port).unwrap_or_else(|| &self.own[port - self.fabric.ports.len()]).switch;
        Some((port, self.chassis.iter().position(|chassis| chassis.runs(switch))?))
    }
}

/// Switches compute departures ahead: a day remains until the largest time of their tables.
fn nears_clock_limit(now_ps: u64) -> bool {
    const DAY_PS: u64 = 86_400_000_000_000_000;
    now_ps >= NEVER - DAY_PS
}

/// Configures a host's interface for programs that use the kernel's network stack.
fn configure_kernel_interface(node: &NetnsNode, fabric: &Fabric, switches: &[NetworkSwitch]) -> Result<(), RunError> {
    let interface = &node.interfaces[0];
    links::in_namespace(&node.namespace, async |handle| {
        if !node.namespace.is_external() {
            let loopback = links::index(&handle, "lo").await?;
            links::up(&handle, "lo", loopback).await?;
        }
        if fabric.hosts.len() > netns_nodes::MAX_NEIGHBOURS {
            // The last switch overwrites the destination MAC.
            links::without_neighbours(&handle, &interface.name, interface.index).await?;
        }
        Ok(())
    })?;
    // Redirected frames bypass checksum offload.
    let checksums = node.namespace.run(|| Ethtool::open(&interface.name)?.set_tx_checksums(false))?;
    checksums.map_err(|error| RunError::io("disabling checksum offload", error))?;
    if node.namespace.is_external() {
        return Ok(());
    }
    let mut names = String::from("127.0.0.1 localhost\n::1 localhost\n");
    let hosts = fabric.hosts.iter().map(|host| (host.v4, host.v6, host.name.as_str()));
    let switches = (0..).zip(switches).map(|(number, switch)| {
        let (v4, v6) = switch_addresses(number);
        (v4, v6, switch.name.as_str())
    });
    for (v4, v6, name) in hosts.chain(switches) {
        let _ = writeln!(names, "{v4} {name}\n{v6} {name}");
    }
    node.namespace.put_names(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/switch.md#SW-31 one clock
    #[test]
    fn a_fabric_is_too_old_after_105_days() {
        let days = |days: u64| days * 86_400_000_000_000_000;
        assert_eq!([0, 105, 106].map(|age| nears_clock_limit(days(age))), [false, false, true]);
    }
}
