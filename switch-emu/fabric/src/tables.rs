//! The tables of the switch program, compiled from a [`Fabric`].

use crate::fabric::{Fabric, Port};
use crate::node::Node;
use crate::switching::{LeafPaths, Locations, Plan};
use crate::{Scheme, Switching, Tiers, reunion};
use spray_pipeline::bins::BinScale;
use spray_pipeline::config::{self as table, Globals, PortConfig};
use spray_pipeline::routes::{Group, SwitchConfig};
use spray_pipeline::scheme::MAX_IN_KERNEL;
use std::net::Ipv6Addr;

/// Default size of a full frame: 3,000 bytes of payload and headers. Determines queue slots.
pub const DEFAULT_FRAME_BYTES: u32 = 3_106;

/// The fabric exceeds the tables of a chassis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fabric does not fit the switches' tables: {0}")]
pub struct TablesError(pub String);

/// The part of a fabric that one program emulates.
#[derive(Clone, Debug)]
pub struct ChassisSpec<'a> {
    /// The whole fabric, which numbers ports and hosts.
    pub fabric: &'a Fabric,
    /// The only switch of this chassis; `None` = all.
    pub switch: Option<usize>,
    /// Size of a full data frame on the wire; a queue slot covers about three.
    pub frame_bytes: u32,
    /// See [`Globals::hop_by_hop`].
    pub hop_by_hop: bool,
    /// Scale of the ports' time series.
    pub bins: BinScale,
}

impl<'a> ChassisSpec<'a> {
    /// Returns a chassis that emulates the whole fabric.
    pub fn whole(fabric: &'a Fabric) -> Self {
        Self { fabric, switch: None, frame_bytes: DEFAULT_FRAME_BYTES, hop_by_hop: false, bins: BinScale::default() }
    }

    /// Whether a switch is in this chassis.
    pub fn contains(&self, switch: usize) -> bool {
        self.switch.is_none_or(|own| own == switch)
    }

    /// Returns the ports with a cable to a host or to another chassis.
    pub fn external_ports(&self) -> impl Iterator<Item = usize> + '_ {
        let leaves = |port: &Port| port.to.switch().is_none_or(|to| !self.contains(to));
        let ports = self.fabric.ports.iter().enumerate();
        ports.filter(move |(_, port)| self.contains(port.switch) && leaves(port)).map(|(number, _)| number)
    }

    /// Returns a port as the pipeline's configuration.
    pub fn port(&self, port: &Port) -> PortConfig {
        let next = match port.to {
            Node::Switch(to) if self.contains(to) => to as u32,
            Node::Switch(_) => table::OUTSIDE,
            Node::Host(_) => table::HOST,
        };
        let mut compiled = PortConfig::new(port.rate_bps, port.latency_ps, &port.queue, next, self.frame_bytes);
        compiled.counts = self.bins.is_on().into();
        for change in &port.changes {
            compiled.push(port.rate_bps, change);
        }
        compiled
    }
}

/// The tables of a chassis.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Constants.
    pub globals: Globals,
    /// Host numbers by address; IPv4 is mapped into IPv6.
    pub hosts: Vec<([u8; 16], u32)>,
    /// By switch number.
    pub switches: Vec<SwitchConfig>,
    /// By [`Globals::group_index`].
    pub groups: Vec<Group>,
    /// Port numbers; groups are ranges of these.
    pub members: Vec<u32>,
    /// Initial memory of the switches.
    pub words: Vec<u64>,
    /// Maximum number of these words for any scheme.
    pub most_words: usize,
    /// By port number.
    pub ports: Vec<PortConfig>,
}

impl Tables {
    /// Compiles the tables.
    ///
    /// # Errors
    /// [`TablesError`] if a number is outside the fabric or a table is too small.
    pub fn compile(spec: &ChassisSpec<'_>) -> Result<Self, TablesError> {
        let fabric = spec.fabric;
        check(fabric)?;
        //= docs/specs/switching.md#SWC-2a notes between switches
        if spec.switch.is_some() && fabric.switching.uses_trail() {
            let scheme = &fabric.switching;
            return Err(TablesError(format!("`{scheme}` in a chassis of one switch; allowed: one of all switches")));
        }
        let globals = Globals { bins: spec.bins, hop_by_hop: spec.hop_by_hop.into(), ..globals(fabric) };
        let mut tables = Self { globals, ..Self::default() };
        for (number, host) in (0..).zip(&fabric.hosts) {
            tables.hosts.push((host.v4.to_ipv6_mapped().octets(), number));
            tables.hosts.push((host.v6.octets(), number));
        }
        tables.hosts.retain(|(address, _)| *address != Ipv6Addr::UNSPECIFIED.octets());
        tables.ports = fabric.ports.iter().map(|port| spec.port(port)).collect();
        tables.compile_routes(fabric);
        check_groups(&tables)?;
        Ok(tables)
    }

    fn compile_routes(&mut self, fabric: &Fabric) {
        let leaf_of = leaves(fabric);
        let tiers = Tiers::new(fabric.salts.len(), fabric.ports.iter().map(|port| (port.switch, port.to)));
        let ports = fabric.ports.iter().map(|port| Some((port.switch, port.to))).collect();
        let latencies_ps = fabric.ports.iter().map(|port| port.latency_ps).collect();
        let places = Locations::new(leaf_of.clone(), ports, latencies_ps);
        // A chassis creates no frames.
        //= docs/specs/reunion.md#REU-18 piggybacked notifications
        let reunion = reunion::Settings { piggyback: true, ..fabric.switching.reunion };
        let switching = Switching { reunion, ..fabric.switching.clone() };
        let mut plan = Plan::new(fabric.seed, tiers, &fabric.salts, &switching, fabric.groups, &places);
        let port = |port: u32| {
            let port = &fabric.ports[port as usize];
            (port.to, port.rate_bps)
        };
        for epoch in &fabric.routes {
            plan.begin_epoch();
            for switch in 0..epoch.groups.len() {
                for (host, leaf) in leaf_of.iter().enumerate() {
                    let next = |switch: usize| epoch.groups[switch][host].iter().map(|port| *port as u32).collect();
                    self.groups.push(plan.group(switch, *leaf, &LeafPaths { next: &next, port: &port }));
                }
            }
        }
        (self.switches, self.members, self.words) = (plan.switches, plan.members, plan.words);
        self.most_words = places.most_words(fabric.salts.len());
    }
}

/// Checks the group size of schemes that compare queues.
fn check_groups(tables: &Tables) -> Result<(), TablesError> {
    let Globals { switches, hosts, .. } = tables.globals;
    for (group, switch) in tables.groups.chunks(hosts.max(1) as usize).zip((0..switches as usize).cycle()) {
        let most = group.iter().map(|group| group.count).max().unwrap_or(0);
        let scheme = Scheme::from_number(tables.switches[switch].scheme);
        if scheme.looks_at_queues() && u32::from(most) > MAX_IN_KERNEL {
            let message = format!("a group of {most} ports, at most {MAX_IN_KERNEL} are possible with `{scheme}`");
            return Err(TablesError(message));
        }
    }
    Ok(())
}

fn leaves(fabric: &Fabric) -> Vec<usize> {
    let mut leaf_of = vec![0; fabric.hosts.len()];
    for port in &fabric.ports {
        if let Node::Host(host) = port.to {
            leaf_of[host] = port.switch;
        }
    }
    leaf_of
}

fn globals(fabric: &Fabric) -> Globals {
    let mut epoch_from_ps = [table::NEVER; table::MAX_EPOCHS];
    for (slot, epoch) in epoch_from_ps.iter_mut().zip(&fabric.routes) {
        *slot = epoch.valid_from_ps.min(table::NEVER);
    }
    let (switches, hosts) = (fabric.salts.len() as u32, fabric.hosts.len() as u32);
    Globals { seed: fabric.seed, epoch_from_ps, switches, hosts, ..Globals::default() }
}

fn check(fabric: &Fabric) -> Result<(), TablesError> {
    let fail = |text: String| Err(TablesError(text));
    fabric.switching.check(fabric.groups).map_err(|error| TablesError(error.to_string()))?;
    if fabric.routes.is_empty() || fabric.routes.len() > table::MAX_EPOCHS {
        return fail(format!(
            "{} routing epochs, between 1 and {} are possible",
            fabric.routes.len(),
            table::MAX_EPOCHS
        ));
    }
    for epoch in &fabric.routes {
        let shape = epoch.groups.len() == fabric.salts.len()
            && epoch.groups.iter().all(|hosts| hosts.len() == fabric.hosts.len());
        if !shape {
            return fail("a routing epoch must have one group per switch and host".to_owned());
        }
        if epoch.groups.iter().flatten().flatten().any(|port| *port >= fabric.ports.len()) {
            return fail("a route names a port that does not exist".to_owned());
        }
    }
    fabric.ports.iter().try_for_each(|port| check_port(fabric, port))
}

fn check_port(fabric: &Fabric, port: &Port) -> Result<(), TablesError> {
    let fail = |text: String| Err(TablesError(format!("port {}: {text}", port.name)));
    let far_end = match port.to {
        Node::Host(host) => host < fabric.hosts.len(),
        Node::Switch(switch) => switch < fabric.salts.len(),
    };
    if port.switch >= fabric.salts.len() || !far_end {
        return fail("an end does not exist".to_owned());
    }
    if !(table::MIN_RATE_BPS..=table::MAX_RATE_BPS).contains(&port.rate_bps) {
        return fail(format!("{} b/s, between 10 Mb/s and 100 Tb/s are possible", port.rate_bps));
    }
    if port.changes.len() > table::MAX_CHANGES {
        return fail(format!("{} timed changes, at most {} are possible", port.changes.len(), table::MAX_CHANGES));
    }
    if !port.changes.is_sorted_by_key(|change| change.at_ps) {
        return fail("its timed changes are not in order".to_owned());
    }
    let limits = [port.queue.limit_bytes, port.queue.control_limit_bytes];
    if limits.iter().any(|limit| *limit > table::MAX_LIMIT_BYTES) {
        return fail(format!("queue limits may be at most {} bytes", table::MAX_LIMIT_BYTES));
    }
    Ok(())
}
