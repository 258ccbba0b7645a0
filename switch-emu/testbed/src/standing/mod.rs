//! A fabric that stands for anybody's traffic, in real time. Its hosts are namespaces of this machine, whose interfaces are the kernel's, or
//! whatever is behind interfaces that the user gives.
//!
//! | file | content |
//! |---|---|
//! | `opening` | attaches to interfaces, and opens sockets on them |
//! | `hold` | holds frames until they are due |
//! | `failures` | what befalls links, when somebody says so |
//! | `given` | interfaces of the user's |
//! | `bridge`, `stations` | what hosts behind these ask each other, and which host is where |
//! | `checksum` | checksums that veth leaves out |

mod bridge;
mod checksum;
mod failures;
mod given;
mod hold;
mod opening;
mod stations;

use std::fmt::Write as _;
use std::net::IpAddr;

use spray_fabric::{
    ChassisCounters, ChassisSpec, Fabric, LinkChange, LinkState, Network, Node, Port, PortCounters, host_ports, ports,
    reroute,
};
use spray_nic::net::Interface;
use spray_nic::sys::monotonic_ns;

use self::bridge::Bridge;
use self::failures::Failures;
pub use self::failures::Order;
use self::given::Given;
pub use self::given::GivenPort;
use self::hold::Holder;
use self::opening::Opening;
use self::stations::Stations;
use super::program::SwitchProgram;
use super::rig::{self, Site};
use super::{FabricSpec, RunError, links, offloads};

/// Hosts, links and switches that stand until this is dropped, which removes them. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub struct Standing {
    holder: Holder,
    chassis: Vec<Chassis>,
    sites: Vec<Site>,
    given: Vec<GivenState>,
    bridge: Option<Bridge>,
    /// When these are looked at again.
    look_ps: u64,
    at_once: bool,
    network: Network,
    fabric: Fabric,
    /// The hosts' own links, behind the fabric's ports.
    own: Vec<Port>,
    /// The network's links by port.
    links: Vec<usize>,
    failures: Failures,
    frame_bytes: u32,
}

#[derive(Debug)]
struct Chassis {
    program: SwitchProgram,
    switch: Option<usize>,
}

/// An interface that was given, and how it was when it was last looked at.
#[derive(Debug)]
struct GivenState {
    given: Given,
    has_carrier: bool,
    is_up: bool,
}

/// A host, as programs in it and around it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingHost {
    /// Its name in the fabric.
    pub name: String,
    /// Its addresses: those of a host behind a given interface as they are learned.
    pub addresses: Vec<IpAddr>,
    /// Where it is.
    pub place: Place,
}

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a namespace of this name, as for `ip netns`.
    Namespace(String),
    /// Behind a given interface.
    Behind(GivenPort),
}

/// A link, and what it has carried.
#[derive(Clone, Debug, PartialEq)]
pub struct StandingLink {
    /// Its name.
    pub name: String,
    /// Its full rate.
    pub rate_bps: u64,
    /// What it does with frames.
    pub state: LinkState,
    /// What its port has counted.
    pub counters: PortCounters,
}

/// What hosts' links may have in all for their frames to be held: a thread carries more, if hardly.
const HELD_BPS: u64 = 3_000_000_000;

/// How often interfaces that are given are looked at.
const LOOK_PS: u64 = 500_000_000_000;

/// Addresses of the machine's own on an interface that is given, that are told from hosts'.
const OWN_ADDRESSES: usize = 32;

impl Standing {
    /// Sets up the hosts, links and switches of `spec`, all of them healthy. Routing learns of links that go down `convergence_ps` late.
    /// Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been made by then is removed.
    pub fn new(spec: &FabricSpec<'_>, convergence_ps: u64) -> Result<Self, RunError> {
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        let sites = rig::sites(spec, &fabric)?;
        let (hosts, switches) = sites.split_at(fabric.hosts.len());
        for site in hosts {
            give_to_kernel(site, &fabric)?;
        }
        let own = host_ports(spec.network, spec.queue);
        let sockets = switches.iter().map(|site| site.doors.len()).sum();
        let mut opening = Opening::new(&fabric, sockets);
        let mut chassis = Vec::with_capacity(switches.len());
        for (number, site) in switches.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let spec = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
            let mut program = SwitchProgram::load_standing(&spec, &own, None)?;
            site.namespace.run(|| opening.open_made(&mut program, site))??;
            chassis.push(Chassis { program, switch });
        }
        let holder = Holder::new(opening.entries, opening.exits, None)?;
        Ok(Self::of(spec, fabric, (own, chassis, holder), convergence_ps, sites))
    }

    /// As [`Standing::new`], but the hosts are whatever is behind `ports`, interfaces that exist, and all switches are of one program. Everything
    /// but packets to hosts goes to this machine's kernel as before.
    ///
    /// # Errors
    /// [`RunError::Port`] when an interface is missing, in use or too slow; others as for [`Standing::new`].
    pub fn between(spec: &FabricSpec<'_>, convergence_ps: u64, ports: &[GivenPort]) -> Result<Self, RunError> {
        rig::check_root()?;
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        let given = Given::all(ports, spec.network)?;
        let own = host_ports(spec.network, spec.queue);
        let chassis = ChassisSpec { switch: None, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
        let room = given.len() * (Stations::ADDRESSES + OWN_ADDRESSES);
        let mut program = SwitchProgram::load_standing(&chassis, &own, Some(room))?;
        let mut opening = Opening::new(&fabric, given.iter().map(|given| given.queues as usize).sum());
        let at_once = spec.network.links.iter().filter(|link| matches!(link.from, Node::Host(_)));
        let at_once = at_once.map(|link| link.rate_bps).sum::<u64>() > HELD_BPS;
        let mut ways = Vec::with_capacity(given.len());
        for port in &given {
            ways.push(port.run(|| opening.open_given(&mut program, port, at_once))??);
        }
        if at_once {
            // Without tracefs nobody counts them, which is told.
            let _ = program.count_missed();
        }
        let bridge = Bridge::new(ways, program.hosts()?);
        let holder = Holder::new(opening.entries, opening.exits, Some(bridge.clone()))?;
        let chassis = vec![Chassis { program, switch: None }];
        let mut this = Self::of(spec, fabric, (own, chassis, holder), convergence_ps, Vec::new());
        this.given = given.into_iter().map(|given| GivenState { given, has_carrier: true, is_up: true }).collect();
        this.bridge = Some(bridge);
        this.at_once = at_once;
        this.look()?;
        Ok(this)
    }

    fn of(
        spec: &FabricSpec<'_>,
        fabric: Fabric,
        (own, chassis, holder): (Vec<Port>, Vec<Chassis>, Holder),
        convergence_ps: u64,
        sites: Vec<Site>,
    ) -> Self {
        Self {
            holder,
            chassis,
            sites,
            given: Vec::new(),
            bridge: None,
            look_ps: 0,
            at_once: false,
            network: spec.network.clone(),
            links: ports(spec.network).collect(),
            fabric,
            own,
            failures: Failures::new(convergence_ps),
            frame_bytes: spec.packet_bytes,
        }
    }

    /// Looks how the interfaces are that were given, twice a second at most. A link whose interface has no carrier is down until it has one.
    ///
    /// # Errors
    /// As [`Standing::order`].
    pub fn look(&mut self) -> Result<(), RunError> {
        let Some(bridge) = self.bridge.clone() else { return Ok(()) };
        if now_ps() < self.look_ps {
            return Ok(());
        }
        self.look_ps = now_ps() + LOOK_PS;
        let now: Vec<Option<Interface>> = self.given.iter().map(|state| state.given.now()).collect();
        bridge.set_own(given::addresses(now.iter().flatten()));
        for place in 0..now.len() {
            let found = now[place].as_ref();
            let GivenState { given, has_carrier, is_up } = &mut self.given[place];
            let was_up = std::mem::replace(is_up, found.is_some_and(|found| found.up));
            let had_carrier = std::mem::replace(has_carrier, found.is_some_and(|found| found.up && found.carrier));
            let (came_up, changed) = (!was_up && *is_up, had_carrier != *has_carrier);
            let (host, index, carrier) = (given.host, given.index, *has_carrier);
            let neighbours = found.map(|now| given.neighbours(now)).unwrap_or_default();
            neighbours.into_iter().for_each(|(address, mac)| bridge.learn(host, address, mac));
            if came_up {
                // Drivers such as vmxnet3 forget what sat on them.
                let program = &mut self.chassis[0].program;
                self.given[place].given.run(|| program.open_again(index))??;
            }
            if changed {
                let links = &self.network.links;
                let ends = |link: &usize| [links[*link].from, links[*link].to].contains(&Node::Host(host));
                let links: Vec<usize> = (0..links.len()).filter(ends).collect();
                self.change(|failures, now_ps| failures.set_carrier(&links, carrier, now_ps))?;
            }
        }
        Ok(())
    }

    /// The hosts, in the fabric's order.
    pub fn hosts(&self) -> Vec<StandingHost> {
        let made = |(host, site): (&spray_fabric::Host, &Site)| StandingHost {
            name: host.name.clone(),
            addresses: vec![host.v4.into(), host.v6.into()],
            place: Place::Namespace(site.namespace.name().to_string()),
        };
        let behind = |given: &Given, bridge: &Bridge| StandingHost {
            name: self.fabric.hosts[given.host].name.clone(),
            addresses: bridge.addresses(given.host),
            place: Place::Behind(given.port.clone()),
        };
        match &self.bridge {
            None => self.fabric.hosts.iter().zip(&self.sites).map(made).collect(),
            Some(bridge) => self.given.iter().map(|state| behind(&state.given, bridge)).collect(),
        }
    }

    /// The names of all namespaces.
    pub fn namespaces(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.namespace.name().to_string()).collect()
    }

    /// The links that `name` means, or all of them; `None` where it means none.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn links(&self, name: Option<&str>) -> Result<Option<Vec<StandingLink>>, RunError> {
        let Some(named) =
            name.map_or(Some((0..self.network.links.len()).collect()), |name| self.network.links_named(name))
        else {
            return Ok(None);
        };
        let now_ps = now_ps();
        let states = self.failures.states(self.network.links.len(), now_ps);
        let mut rows = Vec::with_capacity(named.len());
        for link in named {
            let Some(port) = self.links.iter().position(|other| *other == link) else { continue };
            let program = &self.chassis[self.chassis_of(port)].program;
            rows.push(StandingLink {
                name: self.network.links[link].name.clone(),
                rate_bps: self.network.links[link].rate_bps,
                state: states[link],
                counters: program.counters(port)?,
            });
        }
        Ok(Some(rows))
    }

    /// Carries orders out on the links that `name` means; false where it means none. Routing learns of it as in a scenario.
    ///
    /// # Errors
    /// [`RunError::Unsupported`] when links go up and down too often for the switches' tables; others when the kernel refuses.
    pub fn order(&mut self, name: &str, orders: &[Order]) -> Result<bool, RunError> {
        let Some(named) = self.network.links_named(name) else { return Ok(false) };
        self.change(|failures, now_ps| orders.iter().for_each(|order| failures.order(&named, *order, now_ps)))?;
        Ok(true)
    }

    /// Has the links be as they are after `happens`, which gets what has befallen them until now.
    fn change(&mut self, happens: impl FnOnce(&mut Failures, u64)) -> Result<(), RunError> {
        let now_ps = now_ps();
        let all = self.network.links.len();
        let before = self.failures.states(all, now_ps);
        happens(&mut self.failures, now_ps);
        let after = self.failures.states(all, now_ps);
        for port in 0..self.links.len() {
            let link = self.links[port];
            if before[link] != after[link] {
                let change = LinkChange { at_ps: now_ps, state: after[link] };
                let rate_bps = self.network.links[link].rate_bps;
                self.played_by(port).change_link(port, rate_bps, &[change])?;
            }
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

    /// Whether frames are sent on at once instead of being held, since no thread holds as many: latencies are then none of the fabric's.
    pub fn sends_at_once(&self) -> bool {
        self.at_once
    }

    /// Whether frames may leave with checksums that their sender's kernel has only begun: of veth, which nobody holds.
    pub fn leaves_checksums(&self) -> bool {
        self.at_once && self.given.iter().any(|state| state.given.is_software)
    }

    /// Whether nobody passes frames on any more.
    pub fn is_broken(&self) -> bool {
        self.holder.is_gone()
    }

    /// The number of the chassis that plays a port.
    fn chassis_of(&self, port: usize) -> usize {
        let switch = self.fabric.ports.get(port).unwrap_or_else(|| &self.own[port - self.fabric.ports.len()]).switch;
        let plays = |chassis: &Chassis| chassis.switch.is_none_or(|own| own == switch);
        self.chassis.iter().position(plays).expect("every switch is in a chassis")
    }

    /// The program that plays a port.
    fn played_by(&mut self, port: usize) -> &mut SwitchProgram {
        let number = self.chassis_of(port);
        &mut self.chassis[number].program
    }
}

/// Now by the clock of the switches.
fn now_ps() -> u64 {
    monotonic_ns().saturating_mul(1000)
}

/// Has the kernel use a host's interface as any other.
fn give_to_kernel(site: &Site, fabric: &Fabric) -> Result<(), RunError> {
    let door = &site.doors[0];
    links::in_namespace(&site.namespace, async |handle| {
        let loopback = links::index(&handle, "lo").await?;
        links::up(&handle, "lo", loopback).await?;
        if fabric.hosts.len() > rig::MAX_NEIGHBOURS {
            // A neighbour's address is no matter: frames get it as they leave the last switch.
            links::without_neighbours(&handle, &door.name, door.index).await?;
        }
        Ok(())
    })?;
    // A program that redirects a frame knows nothing of a checksum that is yet to be written.
    let checksums = site.namespace.run(|| offloads::set_tx_checksums(&door.name, false))?;
    checksums.map_err(|error| RunError::io("having the kernel write checksums", error))?;
    let mut names = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for host in &fabric.hosts {
        let _ = writeln!(names, "{} {}\n{} {}", host.v4, host.name, host.v6, host.name);
    }
    site.namespace.put_names(&names)
}
