//! Namespaces of hosts and switches, and the veth pairs that join them.

use std::collections::HashMap;
use std::path::PathBuf;

use nix::net::if_::if_nametoindex;
use spray_fabric::{Fabric, Network, Node};
use spray_nic::sys::check_open_files;
use tracing::debug_span;

use crate::error::RunError;
use crate::links::{self, End};
use crate::netns::{Namespace, sysctl};
use crate::program::SwitchProgram;
use crate::registry;
use crate::spec::FabricSpec;

/// A switch program and the switches that it runs.
#[derive(Debug)]
pub struct Chassis {
    /// The program, loaded and attached.
    pub program: SwitchProgram,
    /// The only switch; `None`: all.
    pub switch: Option<usize>,
}

impl Chassis {
    /// Returns whether it runs this switch.
    pub fn runs(&self, switch: usize) -> bool {
        self.switch.is_none_or(|own| own == switch)
    }
}

/// An existing namespace of another program, for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalNetns {
    /// The host's name in the fabric.
    pub host: String,
    /// A file of the namespace, such as `/proc/PID/ns/net`.
    pub namespace: PathBuf,
}

/// A namespace and its interfaces.
#[derive(Debug)]
pub struct NetnsNode {
    /// The namespace.
    pub namespace: Namespace,
    /// Its interfaces, in the order of the cables.
    pub interfaces: Vec<Interface>,
}

/// An interface in a namespace.
#[derive(Debug)]
pub struct Interface {
    /// The name.
    pub name: String,
    /// The index in the namespace.
    pub index: u32,
    /// Of a switch: the switch that received frames enter, and the port that sends by it.
    pub switch: Option<(usize, usize)>,
}

/// Maximum number of veth pairs of a testbed; with more, set-up takes minutes.
pub const MAX_CABLES: usize = 512;
/// Maximum number of neighbours configured per host: only tools need them.
pub const MAX_NEIGHBOURS: usize = 64;

/// Checks that this process may create namespaces.
pub fn check_root() -> Result<(), RunError> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(RunError::NotRoot) }
}

/// Creates the namespaces, hosts first, and the cables of `spec`, with `fabric`'s addresses, and
/// brings everything up. Hosts of `external` are in the existing namespaces.
pub fn create(spec: &FabricSpec<'_>, fabric: &Fabric, external: &[ExternalNetns]) -> Result<Vec<NetnsNode>, RunError> {
    check_root()?;
    let plan = Plan::new(spec.network, fabric, spec.per_switch)?;
    // Sockets, programs and maps per host, and a program's link at each cable end, with a margin.
    let files = 128 + 8 * plan.names.len() + 4 * plan.cables.len();
    check_open_files(files as u64).map_err(|error| RunError::Unsupported(error.to_string()))?;
    let named = debug_span!("namespaces", count = plan.names.len());
    let mut nodes = named.in_scope(|| plan.namespaces(&registry::prefix(), external))?;
    debug_span!("veth pairs", count = plan.cables.len()).in_scope(|| plan.make_pairs(&mut nodes))?;
    debug_span!("bring up").in_scope(|| bring_up(&mut nodes))?;
    debug_span!("addresses").in_scope(|| add_addresses(&nodes[..fabric.hosts.len()], fabric))?;
    Ok(nodes)
}

/// Attaches the program to the interfaces of its switches.
pub fn attach_switch(program: &mut SwitchProgram, interfaces: &[Interface]) -> Result<(), RunError> {
    for interface in interfaces {
        if let Some((switch, port)) = interface.switch {
            program.egress(port, interface.index)?;
            program.attach(interface.index, switch)?;
        }
    }
    Ok(())
}

/// Names of the namespaces, and the ends of all cables.
struct Plan {
    hosts: usize,
    names: Vec<String>,
    cables: Vec<Cable>,
}

struct Cable {
    /// Node and interface name of each end; a host's end comes second.
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
        let node = |node| match node {
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
                ends: [(node(out.from), format!("{}{parallel}", network.node_name(out.to))), (node(out.to), far_name)],
                macs: [switch_mac(number, 0), far_mac],
                switches: [Some((near, port_of[out.name.as_str()])), far_switch],
            });
        }
        if cables.len() > MAX_CABLES {
            let message = format!("it needs {} veth pairs; allowed: at most {MAX_CABLES}", cables.len());
            return Err(RunError::Unsupported(message));
        }
        Ok(Self { hosts, names, cables })
    }

    fn namespaces(&self, prefix: &str, external: &[ExternalNetns]) -> Result<Vec<NetnsNode>, RunError> {
        let mut nodes = Vec::with_capacity(self.names.len());
        for (number, name) in self.names.iter().enumerate() {
            let is_host = number < self.hosts;
            let namespace = match external.iter().find(|external| is_host && external.host == *name) {
                Some(external) => Namespace::open_external(&external.namespace)?,
                None => Namespace::create(format!("{prefix}{name}"))?,
            };
            if !namespace.is_external() {
                namespace.run(|| disable_autoconfiguration(&NEW_INTERFACES, is_host))?;
            }
            nodes.push(NetnsNode { namespace, interfaces: Vec::new() });
        }
        Ok(nodes)
    }

    fn make_pairs(&self, nodes: &mut [NetnsNode]) -> Result<(), RunError> {
        for cable in &self.cables {
            let end = |side: usize| End {
                namespace: &nodes[cable.ends[side].0].namespace,
                name: cable.ends[side].1.clone(),
                mac: cable.macs[side],
            };
            let (near, far) = (end(0), end(1));
            if far.namespace.is_external() && far.namespace.run(|| if_nametoindex(far.name.as_str()))?.is_ok() {
                return Err(RunError::Port(format!(
                    "{} already has an interface {}; start the container with `--network none`",
                    far.namespace.name(),
                    far.name
                )));
            }
            // One queue: a host's socket must see every frame.
            links::in_namespace(near.namespace, async |handle| links::add_pair(&handle, &near, &far, 1).await)?;
            if far.namespace.is_external() {
                far.namespace.run(|| disable_autoconfiguration(&[&far.name], true))?;
            }
        }
        for cable in &self.cables {
            for side in 0..2 {
                let (node, name) = cable.ends[side].clone();
                nodes[node].interfaces.push(Interface { name, index: 0, switch: cable.switches[side] });
            }
        }
        Ok(())
    }
}

fn switch_mac(cable: usize, end: u8) -> [u8; 6] {
    let [.., high, low] = (cable as u32).to_be_bytes();
    [0x02, 0x53, 0x57, end, high, low]
}

/// The scopes of [`disable_autoconfiguration`] for all interfaces still to be created.
pub const NEW_INTERFACES: [&str; 2] = ["all", "default"];

/// Stops the kernel from sending anything by itself on these interfaces of this thread's namespace.
pub fn disable_autoconfiguration(scopes: &[&str], host: bool) {
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

fn bring_up(nodes: &mut [NetnsNode]) -> Result<(), RunError> {
    for node in nodes {
        let interfaces = &mut node.interfaces;
        links::in_namespace(&node.namespace, async |handle| {
            for interface in interfaces.iter_mut() {
                interface.index = links::index(&handle, &interface.name).await?;
                links::up(&handle, &interface.name, interface.index).await?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds every host's addresses and, for tools, its neighbours: the endpoints know them anyway.
fn add_addresses(nodes: &[NetnsNode], fabric: &Fabric) -> Result<(), RunError> {
    let with_v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    for (node, own) in nodes.iter().zip(&fabric.hosts) {
        let index = node.interfaces[0].index;
        links::in_namespace(&node.namespace, async |handle| {
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
