//! A deployed fabric, in real time. Its hosts are namespaces of this machine, whose interfaces are the kernel's, or
//! whatever is behind interfaces that the user gives.
//!
//! | file | content |
//! |---|---|
//! | `opening` | attaches to interfaces, and opens sockets on them |
//! | `hold` | holds frames until they are due |
//! | `expired` | what switches tell senders of packets whose TTL ran out |
//! | `failures` | what happens to links, when somebody says so |
//! | `between`, `edge`, `given` | interfaces of the user's, and how they are |
//! | `bridge`, `stations`, `claim` | what hosts behind these ask each other, which host is where, and who keeps an address that two use |
//! | `boxes`, `message` | other machines that run the other switches |
//! | `speed` | whether the machine is fast enough |
//! | `checksum` | checksums that veth leaves out |

mod between;
mod boxes;
mod bridge;
mod checksum;
mod claim;
mod edge;
mod expired;
mod failures;
mod given;
mod hold;
mod host;
mod message;
mod opening;
mod speed;
mod stations;

use std::fmt::Write as _;
use std::net::IpAddr;

use spray_fabric::{
    ChassisCounters, ChassisSpec, Fabric, LinkChange, LinkState, Network, NetworkSwitch, Port, PortCounters,
    host_ports, ports, reroute, switch_addresses,
};
use spray_nic::net::ethtool::Ethtool;
use spray_pipeline::config::NEVER;
use spray_pipeline::impairment::Impairment;

pub use self::between::{Between, Cable};
pub use self::boxes::CableState;
use self::edge::Edge;
use self::failures::Failures;
pub use self::failures::Order;
pub use self::given::GivenPort;
use self::hold::Holder;
pub use self::host::{DeployedHost, HostLocation};
use self::opening::Opening;
use crate::program::{KernelClock, SwitchProgram};
use crate::sites::{self, Chassis, Lent, Site};
use crate::{FabricSpec, RunError, links};

/// Hosts, links and switches that are there until this is dropped, which removes them. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub struct Deployment {
    holder: Holder,
    chassis: Vec<Chassis>,
    sites: Vec<Site>,
    /// Interfaces that are given, where the fabric has made none.
    edge: Option<Edge>,
    network: Network,
    fabric: Fabric,
    /// The hosts' own links, behind the fabric's ports.
    own: Vec<Port>,
    /// The network's links by port.
    links: Vec<usize>,
    failures: Failures,
    clock: KernelClock,
    /// Since when it is up.
    since_ps: u64,
    history: Vec<Event>,
    frame_bytes: u32,
}

/// What a deployment is made of.
struct Parts {
    fabric: Fabric,
    clock: KernelClock,
    own: Vec<Port>,
    chassis: Vec<Chassis>,
    holder: Holder,
    sites: Vec<Site>,
}

/// A link, and what it has carried.
#[derive(Clone, Debug, PartialEq)]
pub struct DeployedLink {
    /// Its name.
    pub name: String,
    /// Its full rate.
    pub rate_bps: u64,
    /// What it does with frames.
    pub state: LinkState,
    /// What it does to those that get over it.
    pub impairment: Impairment,
    /// What its port has counted.
    pub counters: PortCounters,
}

/// What happened to links while the fabric was up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ps since it is up.
    pub at_ps: u64,
    /// The links, by a name that means them.
    pub links: String,
    /// What.
    pub what: LinkNews,
}

/// What happens to links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// Somebody ordered it.
    Ordered(Vec<Order>),
    /// The interface has no carrier, or nobody is heard at the cable's other end.
    Lost,
    /// The carrier, or the box at the other end, is back.
    Found,
    /// The host there has taken an address of a host that no longer answered.
    Took(IpAddr, String),
    /// The host there has used an address of a host that keeps it.
    Claimed(IpAddr, String),
}

/// Most events that are kept; those after are forgotten.
const MOST_EVENTS: usize = 10_000;

impl Deployment {
    /// Sets up the hosts, links and switches of `spec`, all of them healthy; hosts in the namespaces that are lent for them. Routing learns of links
    /// that go down `convergence_ps` late. Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been made by then is removed.
    pub fn new(spec: &FabricSpec<'_>, convergence_ps: u64, lent: &[Lent]) -> Result<Self, RunError> {
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        if let Some(strange) = lent.iter().find(|lent| fabric.hosts.iter().all(|host| host.name != lent.host)) {
            let hosts: Vec<&str> = fabric.hosts.iter().map(|host| host.name.as_str()).take(8).collect();
            return Err(RunError::Port(format!("there is no host {}; hosts are {}", strange.host, hosts.join(", "))));
        }
        let sites = sites::sites(spec, &fabric, lent)?;
        let (hosts, switches) = sites.split_at(fabric.hosts.len());
        for site in hosts {
            give_to_kernel(site, &fabric, &spec.network.switches)?;
        }
        let own = host_ports(spec.network, spec.queue);
        let sockets = switches.iter().map(|site| site.interfaces.len()).sum();
        let mut opening = Opening::new(&fabric, sockets);
        let clock = KernelClock::new()?;
        let mut chassis = Vec::with_capacity(switches.len());
        for (number, site) in switches.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let spec = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
            let mut program = SwitchProgram::load_standing(&spec, &clock, &own, None)?;
            site.namespace.run(|| opening.open_made(&mut program, site))??;
            chassis.push(Chassis { program, switch });
        }
        let switches = fabric.ports.iter().map(|port| port.switch).collect();
        let holder = Holder::new(clock, opening.entries, opening.exits, None, switches)?;
        Ok(Self::of(spec, Parts { fabric, clock, own, chassis, holder, sites }, convergence_ps))
    }

    fn of(spec: &FabricSpec<'_>, parts: Parts, convergence_ps: u64) -> Self {
        let Parts { fabric, clock, own, chassis, holder, sites } = parts;
        Self {
            holder,
            chassis,
            sites,
            edge: None,
            network: spec.network.clone(),
            links: ports(spec.network).collect(),
            fabric,
            own,
            failures: Failures::new(convergence_ps),
            since_ps: clock.now_ps(),
            clock,
            history: Vec::new(),
            frame_bytes: spec.packet_bytes,
        }
    }

    /// The hosts, in the fabric's order.
    pub fn hosts(&self) -> Vec<DeployedHost> {
        let made = |(host, site): (&spray_fabric::FabricHost, &Site)| DeployedHost {
            name: host.name.clone(),
            addresses: vec![host.v4.into(), host.v6.into()],
            place: HostLocation::Namespace(site.namespace.name().to_string()),
        };
        match &self.edge {
            None => self.fabric.hosts.iter().zip(&self.sites).map(made).collect(),
            Some(edge) => edge.hosts(&self.network),
        }
    }

    /// The names of all namespaces that it has made.
    pub fn namespaces(&self) -> Vec<String> {
        self.sites
            .iter()
            .filter(|site| !site.namespace.is_lent())
            .map(|site| site.namespace.name().to_string())
            .collect()
    }

    /// The links that `name` means, or all of them, as far as they are run here; `None` where it means none.
    ///
    /// # Errors
    /// [`RunError::Port`] when others run all of them, and when a counter cannot be read.
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

    /// Has `orders` be the whole state of the links that `name` means; false where it means none. Routing learns of it as in a scenario.
    ///
    /// # Errors
    /// [`RunError::Unsupported`] when links go up and down too often for the switches' tables, [`RunError::Port`] when others run all of them;
    /// others when the kernel refuses.
    pub fn order(&mut self, name: &str, orders: &[Order]) -> Result<bool, RunError> {
        let Some(named) = self.local(Some(name))? else { return Ok(false) };
        Failures::check(orders)?;
        self.change(|failures, now_ps| failures.order(&named, orders, now_ps))?;
        for link in named {
            let Some((port, chassis)) = self.port_of(link) else { continue };
            self.chassis[chassis].program.impair(port, &self.failures.impairment(link))?;
        }
        self.note(name.into(), LinkNews::Ordered(orders.to_vec()));
        Ok(true)
    }

    fn note(&mut self, links: String, what: LinkNews) {
        if self.history.len() < MOST_EVENTS {
            self.history.push(Event { at_ps: self.up_ps(), links, what });
        }
    }

    /// How long it has been up, in ps.
    pub fn up_ps(&self) -> u64 {
        self.clock.now_ps() - self.since_ps
    }

    /// What happened to links since it is up, the first 10,000 times.
    pub fn history(&self) -> &[Event] {
        &self.history
    }

    /// The links that `name` means, or all, without those that others run.
    fn local(&self, name: Option<&str>) -> Result<Option<Vec<usize>>, RunError> {
        let all = || Some((0..self.network.links.len()).collect());
        let Some(mut links) = name.map_or_else(all, |name| self.network.links_named(name)) else { return Ok(None) };
        links.retain(|link| self.port_of(*link).is_some());
        if links.is_empty() {
            let name = name.unwrap_or("*");
            return Err(RunError::Port(format!("`{name}` is of switches that other boxes run: ask there")));
        }
        Ok(Some(links))
    }

    /// Has the links be as they are after `happens`, which gets what happened to them until now.
    fn change(&mut self, happens: impl FnOnce(&mut Failures, u64)) -> Result<(), RunError> {
        let now_ps = self.clock.now_ps();
        let all = self.network.links.len();
        let before = self.failures.states(all, now_ps);
        happens(&mut self.failures, now_ps);
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
            return Err(RunError::Unsupported(format!(
                "{error}; wait until routing has learned of the changes before"
            )));
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

    /// What the switches have counted of all frames.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn counters(&self) -> Result<ChassisCounters, RunError> {
        let mut sum = ChassisCounters::default();
        for chassis in &self.chassis {
            sum.add(&chassis.program.chassis_counters()?);
        }
        Ok(sum)
    }

    /// Frames that this machine did not send on, or not in time.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn lost(&self) -> Result<u64, RunError> {
        let mut lost = self.holder.lost();
        for chassis in &self.chassis {
            lost += chassis.program.missed()?.unwrap_or(0);
        }
        Ok(lost)
    }

    /// Whether it has been up for 105 days, the most that its switches count.
    //= docs/specs/switch.md#SW-31 one clock
    pub fn is_too_old(&self) -> bool {
        is_too_old(self.clock.now_ps())
    }

    /// Whether nobody passes frames on any more.
    pub fn is_broken(&self) -> bool {
        self.holder.is_gone()
    }

    /// The port of a link, and the number of the chassis that runs it; `None` where others do.
    fn port_of(&self, link: usize) -> Option<(usize, usize)> {
        let port = self.links.iter().position(|other| *other == link)?;
        let switch = self.fabric.ports.get(port).unwrap_or_else(|| &self.own[port - self.fabric.ports.len()]).switch;
        Some((port, self.chassis.iter().position(|chassis| chassis.plays(switch))?))
    }
}

/// Switches decide ahead, for when a frame leaves them: a day remains until the largest time of their tables.
fn is_too_old(now_ps: u64) -> bool {
    const DAY_PS: u64 = 86_400_000_000_000_000;
    now_ps >= NEVER - DAY_PS
}

/// Has the kernel use a host's interface as any other.
fn give_to_kernel(site: &Site, fabric: &Fabric, switches: &[NetworkSwitch]) -> Result<(), RunError> {
    let interface = &site.interfaces[0];
    links::in_namespace(&site.namespace, async |handle| {
        if !site.namespace.is_lent() {
            let loopback = links::index(&handle, "lo").await?;
            links::up(&handle, "lo", loopback).await?;
        }
        if fabric.hosts.len() > sites::MAX_NEIGHBOURS {
            // A neighbour's address is no matter: frames get it as they leave the last switch.
            links::without_neighbours(&handle, &interface.name, interface.index).await?;
        }
        Ok(())
    })?;
    // A program that redirects a frame knows nothing of a checksum that is yet to be written.
    let checksums = site.namespace.run(|| Ethtool::open(&interface.name)?.set_tx_checksums(false))?;
    checksums.map_err(|error| RunError::io("having the kernel write checksums", error))?;
    if site.namespace.is_lent() {
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
    site.namespace.put_names(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/switch.md#SW-31 one clock
    #[test]
    fn a_fabric_is_too_old_after_105_days() {
        let days = |days: u64| days * 86_400_000_000_000_000;
        assert_eq!([0, 105, 106].map(|age| is_too_old(days(age))), [false, false, true]);
    }
}
