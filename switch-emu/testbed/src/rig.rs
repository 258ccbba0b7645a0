//! The machine's side of a fabric: namespaces, veth pairs, programs and sockets.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use nix::net::if_::if_nametoindex;
use spray_nic::device::{Device, XskConfig, XskDevice};
use spray_nic::sys::check_open_files;
use tracing::debug_span;

use super::hosts::Running;
use super::links::{self, End};
use super::netns::{Namespace, sysctl};
use super::registry;
use super::{FabricSpec, RunError};
use crate::program::{HostProgram, KernelClock, SwitchProgram};
use spray_fabric::{ChassisSpec, Fabric, Host, LinkChange, Network, Node, Scale};

/// Everything that is there while a testbed is. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub(super) struct Rig {
    /// The hosts' sockets; lent out during a run.
    pub devices: Vec<Option<XskDevice>>,
    /// The switches' programs.
    pub chassis: Vec<Chassis>,
    /// How many series of bins its programs have room for: of every port in each.
    pub series: usize,
    _programs: Vec<HostProgram>,
    sites: Vec<Site>,
}

/// One switch program and the switches that it plays.
#[derive(Debug)]
pub(super) struct Chassis {
    pub program: SwitchProgram,
    /// `None`: all.
    pub switch: Option<usize>,
}

impl Chassis {
    /// Whether it runs this switch.
    pub fn plays(&self, switch: usize) -> bool {
        self.switch.is_none_or(|own| own == switch)
    }
}

/// A namespace that somebody else has made, and that a host is to be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The host's name in the fabric.
    pub host: String,
    /// A file of the namespace, such as `/proc/PID/ns/net`.
    pub namespace: PathBuf,
}

/// A namespace and its interfaces.
#[derive(Debug)]
pub(super) struct Site {
    pub namespace: Namespace,
    pub interfaces: Vec<Interface>,
}

/// An interface.
#[derive(Debug)]
pub(super) struct Interface {
    pub name: String,
    pub index: u32,
    /// For a switch's: the switch that frames enter, and the port that leads out of it.
    pub switch: Option<(usize, usize)>,
}

/// Frames of a host's socket: 16 MiB each, and less where many hosts share the memory.
const FRAMES: u32 = 4096;
const FRAMES_OF_MANY: u32 = 1024;
const MANY_HOSTS: usize = 32;

/// Frames of each host's socket in a fabric of this number of hosts.
pub(crate) const fn frames(hosts: usize) -> u32 {
    if hosts > MANY_HOSTS { FRAMES_OF_MANY } else { FRAMES }
}

/// Most interfaces that one testbed makes; beyond it set-up takes minutes.
pub const MAX_CABLES: usize = 512;
/// How long nothing must arrive before the fabric counts as empty: softirq never waits so long for a core.
const QUIET_LOOKS: u32 = 4;
const QUIET_LOOK: Duration = Duration::from_millis(2);
/// Most hosts whose Ethernet addresses a host is told: only tools need them.
pub(super) const MAX_NEIGHBOURS: usize = 64;

impl Rig {
    /// Sets up what `spec` needs, with `fabric`'s addresses.
    pub fn new(spec: &FabricSpec<'_>, fabric: &Fabric) -> Result<Self, RunError> {
        Self::with_frames(spec, fabric, frames(fabric.hosts.len()))
    }

    /// As [`new`](Self::new), with so many frames for each host's socket.
    pub fn with_frames(spec: &FabricSpec<'_>, fabric: &Fabric, frames: u32) -> Result<Self, RunError> {
        let hosts = fabric.hosts.len();
        let sites = sites(spec, fabric, &[])?;
        let (host_sites, switch_sites) = sites.split_at(hosts);
        let span = debug_span!("switch programs", count = switch_sites.len()).entered();
        let mut chassis = Vec::with_capacity(switch_sites.len());
        let series = fabric.ports.len() * switch_sites.len();
        let (frame_bytes, bins) = (spec.packet_bytes, bins(series, 0, (1, 1)));
        let clock = KernelClock::new()?;
        for (number, site) in switch_sites.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let mut program =
                SwitchProgram::load(&ChassisSpec { fabric, switch, frame_bytes, hop_by_hop: true, bins }, &clock)?;
            site.namespace.run(|| attach_switch(&mut program, &site.interfaces))??;
            chassis.push(Chassis { program, switch });
        }
        drop(span);
        let _span = debug_span!("sockets", count = hosts).entered();
        let mut devices = Vec::with_capacity(hosts);
        let mut programs = Vec::with_capacity(hosts);
        for (site, host) in host_sites.iter().zip(&fabric.hosts) {
            let (device, program) = open_host(site, host, frames)?;
            devices.push(Some(device));
            programs.push(program);
        }
        Ok(Self { devices, chassis, series, _programs: programs, sites })
    }

    /// Loads `fabric`, of the same shape, into all switches and clears their queues and counters.
    pub fn configure(&mut self, fabric: &Fabric, frame_bytes: u32, bins: Scale) -> Result<(), RunError> {
        for chassis in &mut self.chassis {
            chassis.program.configure(&ChassisSpec {
                fabric,
                switch: chassis.switch,
                frame_bytes,
                hop_by_hop: true,
                bins,
            })?;
        }
        Ok(())
    }

    /// The bins into which ports count from `begin_ps` on, of a length that is asked for, over a span.
    pub fn bins(&self, begin_ps: u64, times_ps: (u64, u64)) -> Scale {
        bins(self.series, begin_ps, times_ps)
    }

    /// Takes the sockets of a run's hosts back.
    pub fn take_back(&mut self, hosts: Vec<Running>) {
        for running in hosts {
            self.devices[running.host] = Some(running.endpoint.into_device().into_inner());
        }
    }

    /// Throws away what still arrives of an earlier run, until nothing has arrived for a while.
    pub fn drain(&mut self) -> Result<(), RunError> {
        let mut arrivals = Vec::with_capacity(64);
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            std::thread::sleep(QUIET_LOOK);
            quiet += 1;
            for device in self.devices.iter_mut().flatten() {
                let doing = "draining a host's socket";
                while device.receive(&mut arrivals, 64).map_err(|error| RunError::io(doing, error))? > 0 {
                    arrivals.drain(..).for_each(|arrival| device.release(arrival.frame));
                    quiet = 0;
                }
                device.flush().map_err(|error| RunError::io(doing, error))?;
            }
        }
        Ok(())
    }

    /// The chassis that plays `switch`, by its place.
    pub fn chassis_of(&self, switch: usize) -> usize {
        let chassis = self.chassis.iter().position(|chassis| chassis.plays(switch));
        chassis.expect("every switch is in a chassis")
    }

    /// The program that plays `switch`.
    pub fn program(&self, switch: usize) -> &SwitchProgram {
        &self.chassis[self.chassis_of(switch)].program
    }

    /// Has the link behind a switch's port be in these states, the first of which begins now.
    pub fn change_link(
        &mut self,
        switch: usize,
        (port, rate_bps): (usize, u64),
        changes: &[LinkChange],
    ) -> Result<(), RunError> {
        let chassis = self.chassis_of(switch);
        let program = &mut self.chassis[chassis].program;
        Ok(program.change_link(port, rate_bps, changes)?)
    }

    /// Frames that the interfaces say they dropped since they were made.
    pub fn interface_drops(&self) -> Result<u64, RunError> {
        let mut drops = 0;
        for site in &self.sites {
            let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
            let text = site.namespace.run(read)?.map_err(|error| RunError::io("reading interface counters", error))?;
            drops += site.interfaces.iter().map(|interface| drops_of(&text, &interface.name)).sum::<u64>();
        }
        Ok(drops)
    }
}

/// Most memory of the bins in all programs, as long as no series gets less than the least.
const BINS_BYTES: usize = 64 << 20;

fn bins(series: usize, begin_ps: u64, times_ps: (u64, u64)) -> Scale {
    Scale::new(begin_ps, times_ps, (series, BINS_BYTES))
}

/// Checks that this process may make namespaces.
///
/// # Errors
/// [`RunError::NotRoot`].
pub fn check_root() -> Result<(), RunError> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(RunError::NotRoot) }
}

/// Makes the namespaces and cables that `spec` needs, those of hosts first, with `fabric`'s addresses. Everything is up. Hosts are in the namespaces
/// that are lent for them.
pub(super) fn sites(spec: &FabricSpec<'_>, fabric: &Fabric, lent: &[Lent]) -> Result<Vec<Site>, RunError> {
    check_root()?;
    let plan = Plan::new(spec.network, fabric, spec.per_switch)?;
    // Sockets, programs and their maps of each host, and a program's link at each end of a cable, with some to spare.
    let files = 128 + 8 * plan.names.len() + 4 * plan.cables.len();
    check_open_files(files as u64).map_err(|error| RunError::Unsupported(error.to_string()))?;
    let named = debug_span!("namespaces", count = plan.names.len());
    let mut sites = named.in_scope(|| plan.namespaces(&registry::prefix(), lent))?;
    debug_span!("veth pairs", count = plan.cables.len()).in_scope(|| plan.make_pairs(&mut sites))?;
    debug_span!("bring up").in_scope(|| bring_up(&mut sites))?;
    debug_span!("addresses").in_scope(|| add_addresses(&sites[..fabric.hosts.len()], fabric))?;
    Ok(sites)
}

/// Receive and send drops of interface `name` in the text of `/proc/net/dev`.
fn drops_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    let columns: Vec<u64> = line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Eight columns each way; the fourth are drops.
    [3, 11].iter().filter_map(|column| columns.get(*column)).sum()
}

fn attach_switch(program: &mut SwitchProgram, interfaces: &[Interface]) -> Result<(), RunError> {
    for interface in interfaces {
        if let Some((switch, port)) = interface.switch {
            program.egress(port, interface.index)?;
            program.attach(interface.index, switch)?;
        }
    }
    Ok(())
}

fn open_host(site: &Site, host: &Host, frames: u32) -> Result<(XskDevice, HostProgram), RunError> {
    let mut program = HostProgram::load()?;
    let interface = &site.interfaces[0];
    let config = XskConfig::with_frames(interface.name.clone(), 0, frames);
    site.namespace.run(|| {
        program.attach(interface.index)?;
        let device = XskDevice::open(&config).map_err(RunError::host(&host.name))?;
        // SAFETY: the device is alive, and so is its descriptor for the length of this call.
        program.register(unsafe { BorrowedFd::borrow_raw(device.fd()) })?;
        Ok((device, program))
    })?
}

/// Which cable ends where.
struct Plan {
    hosts: usize,
    names: Vec<String>,
    cables: Vec<Cable>,
}

struct Cable {
    /// Site and interface name of either end; a host's end comes second.
    ends: [(usize, String); 2],
    macs: [[u8; 6]; 2],
    switches: [Option<(usize, usize)>; 2],
}

impl Plan {
    fn new(network: &Network, fabric: &Fabric, per_switch: bool) -> Result<Self, RunError> {
        let hosts = fabric.hosts.len();
        let mut names: Vec<_> = network.hosts.clone();
        match per_switch {
            true => names.extend(network.switches.iter().map(|switch| switch.name.clone())),
            false => names.push("sw".into()),
        }
        let port_of: HashMap<&str, usize> =
            fabric.ports.iter().enumerate().map(|(port, config)| (config.name.as_str(), port)).collect();
        let site = |node| match node {
            Node::Host(host) => host,
            Node::Switch(switch) => hosts + if per_switch { switch } else { 0 },
        };
        let mut cables = Vec::new();
        for pair in network.links.chunks(2) {
            // `out` begins at a switch.
            let out = if matches!(pair[0].from, Node::Host(_)) { &pair[1] } else { &pair[0] };
            let back = if std::ptr::eq(out, &pair[0]) { &pair[1] } else { &pair[0] };
            let to_host = matches!(out.to, Node::Host(_));
            if !to_host && !per_switch {
                continue;
            }
            let Node::Switch(near) = out.from else { continue };
            let number = cables.len();
            let parallel = out.name.split_once('#').map_or(String::new(), |(_, number)| format!(".{number}"));
            let far_name = if to_host { "eth0".into() } else { format!("{}{parallel}", network.node_name(out.from)) };
            let (far_mac, far_switch) = match out.to {
                Node::Host(host) => (fabric.hosts[host].mac, None),
                Node::Switch(far) => (switch_mac(number, 1), Some((far, port_of[back.name.as_str()]))),
            };
            cables.push(Cable {
                ends: [(site(out.from), format!("{}{parallel}", network.node_name(out.to))), (site(out.to), far_name)],
                macs: [switch_mac(number, 0), far_mac],
                switches: [Some((near, port_of[out.name.as_str()])), far_switch],
            });
        }
        if cables.len() > MAX_CABLES {
            let message = format!("it needs {} veth pairs; the most is {MAX_CABLES}", cables.len());
            return Err(RunError::Unsupported(message));
        }
        Ok(Self { hosts, names, cables })
    }

    fn namespaces(&self, prefix: &str, lent: &[Lent]) -> Result<Vec<Site>, RunError> {
        let mut sites = Vec::with_capacity(self.names.len());
        for (number, name) in self.names.iter().enumerate() {
            let is_host = number < self.hosts;
            let namespace = match lent.iter().find(|lent| is_host && lent.host == *name) {
                Some(lent) => Namespace::borrow(&lent.namespace)?,
                None => Namespace::create(format!("{prefix}{name}"))?,
            };
            if !namespace.is_lent() {
                namespace.run(|| quiet(&NEW_INTERFACES, is_host))?;
            }
            sites.push(Site { namespace, interfaces: Vec::new() });
        }
        Ok(sites)
    }

    fn make_pairs(&self, sites: &mut [Site]) -> Result<(), RunError> {
        for cable in &self.cables {
            let end = |side: usize| End {
                namespace: &sites[cable.ends[side].0].namespace,
                name: cable.ends[side].1.clone(),
                mac: cable.macs[side],
            };
            let (near, far) = (end(0), end(1));
            if far.namespace.is_lent() && far.namespace.run(|| if_nametoindex(far.name.as_str()))?.is_ok() {
                return Err(RunError::Port(format!(
                    "{} has an interface {} already; a container gets none with `--network none`",
                    far.namespace.name(),
                    far.name
                )));
            }
            // One queue: a host's socket must see every frame.
            links::in_namespace(near.namespace, async |handle| links::add_pair(&handle, &near, &far, 1).await)?;
            if far.namespace.is_lent() {
                far.namespace.run(|| quiet(&[&far.name], true))?;
            }
        }
        for cable in &self.cables {
            for side in 0..2 {
                let (site, name) = cable.ends[side].clone();
                sites[site].interfaces.push(Interface { name, index: 0, switch: cable.switches[side] });
            }
        }
        Ok(())
    }
}

fn switch_mac(cable: usize, end: u8) -> [u8; 6] {
    let [.., high, low] = (cable as u32).to_be_bytes();
    [0x02, 0x53, 0x57, end, high, low]
}

/// What [`quiet`] names to mean all interfaces that are yet to be made.
pub(super) const NEW_INTERFACES: [&str; 2] = ["all", "default"];

/// Keeps the kernel from sending anything of its own on these interfaces of this thread's namespace.
pub(super) fn quiet(scopes: &[&str], host: bool) {
    for scope in scopes {
        let set = |name: &str, value: &str| sysctl(&format!("ipv6/conf/{scope}/{name}"), value);
        if !host {
            set("disable_ipv6", "1");
        }
        set("accept_dad", "0");
        set("dad_transmits", "0");
        set("router_solicitations", "0");
        set("accept_ra", "0");
        set("autoconf", "0");
        // No link-local addresses.
        set("addr_gen_mode", "1");
    }
}

fn bring_up(sites: &mut [Site]) -> Result<(), RunError> {
    for site in sites {
        let interfaces = &mut site.interfaces;
        links::in_namespace(&site.namespace, async |handle| {
            for interface in interfaces.iter_mut() {
                interface.index = links::index(&handle, &interface.name).await?;
                links::up(&handle, &interface.name, interface.index).await?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Gives every host its addresses and tells it the others', for tools: the endpoints know them anyway.
fn add_addresses(sites: &[Site], fabric: &Fabric) -> Result<(), RunError> {
    let with_v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    for (site, own) in sites.iter().zip(&fabric.hosts) {
        let index = site.interfaces[0].index;
        links::in_namespace(&site.namespace, async |handle| {
            links::add_address(&handle, index, own.v4.into()).await?;
            if with_v6 {
                links::add_address(&handle, index, own.v6.into()).await?;
            }
            let others = fabric.hosts.iter().filter(|other| other.mac != own.mac);
            for other in others.take(MAX_NEIGHBOURS) {
                links::add_neighbour(&handle, index, other.v4.into(), other.mac).await?;
                if with_v6 {
                    links::add_neighbour(&handle, index, other.v6.into(), other.mac).await?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::drops_of;

    #[test]
    fn drops_are_read_from_both_directions() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n\
                    eth0: 1 2 3 40 5 6 7 8 9 10 11 200 13 14 15 16\n    lo: 0 0 0 7 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!((drops_of(text, "eth0"), drops_of(text, "lo"), drops_of(text, "eth")), (240, 7, 0));
    }
}
