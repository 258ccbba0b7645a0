//! A fabric that stands for anybody's traffic: hosts' interfaces are the kernel's, and time is real.
//!
//! | file | content |
//! |---|---|
//! | `hold` | holds frames until they are due |
//! | `failures` | what befalls links, when somebody says so |

mod failures;
mod hold;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::fd::AsFd;

use spray_fabric::{
    ChassisCounters, ChassisSpec, Fabric, LinkChange, LinkState, Network, Node, Port, PortCounters, host_ports, ports,
    reroute,
};
use spray_nic::device::{XskConfig, XskDevice};
use spray_nic::sys::monotonic_ns;
use spray_pipeline::scheme::NO_PORT;
use spray_pipeline::standing::Door;

use self::failures::Failures;
pub use self::failures::Order;
use self::hold::{Exit, Holder};
use super::program::SwitchProgram;
use super::rig::{self, Site};
use super::{FabricSpec, RunError, links, offloads};

/// Hosts, links and switches that stand until this is dropped, which removes them. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub struct Standing {
    holder: Holder,
    chassis: Vec<Chassis>,
    sites: Vec<Site>,
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

/// A host, as programs in it and around it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingHost {
    /// Its name in the fabric.
    pub name: String,
    /// Its addresses.
    pub addresses: [IpAddr; 2],
    /// Its namespace, as for `ip netns`.
    pub namespace: String,
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

/// Frames of a socket, and of each of many: 8 MiB and 2 MiB.
const FRAMES: u32 = 2048;
const FRAMES_OF_MANY: u32 = 512;
const MANY: usize = 64;

impl Standing {
    /// Sets up the hosts, links and switches of `spec`, all of them healthy. Routing learns of links that go down `convergence_ps` late.
    /// Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been made by then is removed.
    pub fn new(spec: &FabricSpec<'_>, convergence_ps: u64) -> Result<Self, RunError> {
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        let own = host_ports(spec.network, spec.queue);
        let sites = rig::sites(spec, &fabric)?;
        let (hosts, switches) = sites.split_at(fabric.hosts.len());
        for site in hosts {
            give_to_kernel(site, &fabric)?;
        }
        let mut opening = Opening { fabric: &fabric, sockets: Vec::new(), exits: vec![None; fabric.ports.len()] };
        let many = switches.iter().map(|site| site.doors.len()).sum::<usize>() > MANY;
        let mut chassis = Vec::with_capacity(switches.len());
        for (number, site) in switches.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let spec = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
            let mut program = SwitchProgram::load_standing(&spec, &own)?;
            let frames = if many { FRAMES_OF_MANY } else { FRAMES };
            site.namespace.run(|| opening.open(&mut program, site, frames))??;
            chassis.push(Chassis { program, switch });
        }
        let holder = Holder::new(opening.sockets, opening.exits)?;
        Ok(Self {
            holder,
            chassis,
            sites,
            network: spec.network.clone(),
            links: ports(spec.network).collect(),
            fabric,
            own,
            failures: Failures::new(convergence_ps),
            frame_bytes: spec.packet_bytes,
        })
    }

    /// The hosts, in the fabric's order.
    pub fn hosts(&self) -> Vec<StandingHost> {
        let host = |(host, site): (&spray_fabric::Host, &Site)| StandingHost {
            name: host.name.clone(),
            addresses: [host.v4.into(), host.v6.into()],
            namespace: site.namespace.name().to_string(),
        };
        self.fabric.hosts.iter().zip(&self.sites).map(host).collect()
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
        let now_ps = now_ps();
        let all = self.network.links.len();
        let before = self.failures.states(all, now_ps);
        orders.iter().for_each(|order| self.failures.order(&named, *order, now_ps));
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
        if old != self.fabric.routes {
            self.reroute()?;
        }
        Ok(true)
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

    /// Frames that this machine did not send on in time.
    pub fn lost(&self) -> u64 {
        self.holder.lost()
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

/// The sockets of all interfaces of switches.
struct Opening<'a> {
    fabric: &'a Fabric,
    sockets: Vec<XskDevice>,
    exits: Vec<Option<Exit>>,
}

impl Opening<'_> {
    /// Opens a socket on every interface of a chassis, and attaches its program there. Runs in its namespace.
    fn open(&mut self, program: &mut SwitchProgram, site: &Site, frames: u32) -> Result<(), RunError> {
        for door in &site.doors {
            let Some((switch, port)) = door.switch else { continue };
            let config = XskConfig::with_frames(door.name.clone(), 0, frames);
            let socket = XskDevice::open(&config).map_err(RunError::host(&door.name))?;
            let holder = self.sockets.len();
            let (own, to) = match self.fabric.ports[port].to {
                Node::Host(host) => ((self.fabric.ports.len() + host) as u32, self.fabric.hosts[host].mac),
                Node::Switch(_) => (NO_PORT, [0xff; 6]),
            };
            program.open_door(
                door.index,
                &Door { switch: switch as u32, own, holder: holder as u32 },
                socket.as_fd(),
            )?;
            self.exits[port] = Some(Exit { socket: holder, to });
            self.sockets.push(socket);
        }
        Ok(())
    }
}
