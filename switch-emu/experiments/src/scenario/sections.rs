//! The tables of a scenario other than the workload's and the transport's.

use super::error::ScenarioError;
use super::reader::Table;
use super::units::QueueLength;
use super::{Chassis, Emulation, Queue, fields};
use spray_fabric::{Dragonfly, FatTree, LeafSpine, LinkAction, LinkEvent, Network, TopoFile};

/// Default rate of a cable.
const RATE_BPS: u64 = 100_000_000_000;
/// Default propagation time of a cable.
const LATENCY_PS: u64 = 1_000_000;
/// Default time until routing knows that a link is down.
const CONVERGENCE_PS: u64 = 50_000_000;
/// Most hosts that a scenario takes: an address for each, and tables of routes that fit into memory.
const MAX_HOSTS: usize = 65_536;

pub(super) fn network(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let kind = table.choice("kind")?.ok_or_else(|| table.missing("kind"))?;
    table.check_kind("kind", kind)?;
    let network = match kind {
        "leaf-spine" => leaf_spine(table)?,
        "fat-tree" => fat_tree(table)?,
        "dragonfly" => dragonfly(table)?,
        "graph" => graph(table)?,
        _ => topo_file(table)?,
    };
    check_hosts(table, network.hosts.len())?;
    network.check().map_err(|error| table.error("kind", error.to_string()))?;
    Ok(network)
}

/// A required count.
fn count(table: &Table<'_>, name: &str) -> Result<usize, ScenarioError> {
    Ok(table.integer(name)?.ok_or_else(|| table.missing(name))? as usize)
}

/// What the topologies by counts have in common: the hosts' rate, the latency of hosts' and of other cables, and that
/// of switches.
fn common(table: &Table<'_>) -> Result<(u64, u64, u64, u64), ScenarioError> {
    let latency_ps = table.time("latency_us")?.unwrap_or(LATENCY_PS);
    let host_latency_ps = table.time("host_latency_us")?.unwrap_or(latency_ps);
    let switch_latency_ps = table.time("switch_latency_us")?.unwrap_or(0);
    Ok((table.rate("host_gbps")?.unwrap_or(RATE_BPS), host_latency_ps, latency_ps, switch_latency_ps))
}

/// Refuses more hosts than a scenario takes, before they are built.
fn check_hosts(table: &Table<'_>, hosts: usize) -> Result<(), ScenarioError> {
    if hosts > MAX_HOSTS {
        return Err(table.error("kind", format!("{hosts} hosts; allowed: at most {MAX_HOSTS}")));
    }
    Ok(())
}

fn leaf_spine(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let (host_bps, host_latency_ps, uplink_latency_ps, switch_latency_ps) = common(table)?;
    let counts = LeafSpine {
        leaves: count(table, "leaves")?,
        spines: count(table, "spines")?,
        hosts_per_leaf: count(table, "hosts_per_leaf")?,
        bundle: table.integer("bundle")?.unwrap_or(1) as usize,
        host_bps,
        uplink_bps: table.rate("uplink_gbps")?.unwrap_or(host_bps),
        host_latency_ps,
        uplink_latency_ps,
        switch_latency_ps,
    };
    check_hosts(table, counts.leaves * counts.hosts_per_leaf)?;
    Ok(counts.network())
}

fn fat_tree(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let (host_bps, host_latency_ps, uplink_latency_ps, switch_latency_ps) = common(table)?;
    let uplink_bps = table.rate("uplink_gbps")?.unwrap_or(host_bps);
    let counts = FatTree {
        pods: count(table, "pods")?,
        tors_per_pod: count(table, "tors_per_pod")?,
        aggs_per_pod: count(table, "aggs_per_pod")?,
        cores: count(table, "cores")?,
        hosts_per_tor: count(table, "hosts_per_tor")?,
        bundle: table.integer("bundle")?.unwrap_or(1) as usize,
        host_bps,
        uplink_bps,
        core_bps: table.rate("core_gbps")?.unwrap_or(uplink_bps),
        host_latency_ps,
        uplink_latency_ps,
        switch_latency_ps,
    };
    let (cores, aggs) = (counts.cores, counts.aggs_per_pod);
    if !cores.is_multiple_of(aggs) {
        let message = format!("`cores` is {cores}; allowed: multiples of `aggs_per_pod`, here {aggs}");
        return Err(table.error("cores", message));
    }
    check_hosts(table, counts.pods * counts.tors_per_pod * counts.hosts_per_tor)?;
    Ok(counts.network())
}

fn dragonfly(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let (host_bps, host_latency_ps, local_latency_ps, switch_latency_ps) = common(table)?;
    let counts = Dragonfly {
        groups: count(table, "groups")?,
        routers_per_group: count(table, "routers_per_group")?,
        hosts_per_router: count(table, "hosts_per_router")?,
        global_cables: count(table, "global_cables")?,
        host_bps,
        local_bps: table.rate("local_gbps")?.unwrap_or(host_bps),
        global_bps: table.rate("global_gbps")?.unwrap_or(host_bps),
        host_latency_ps,
        local_latency_ps,
        global_latency_ps: table.time("global_latency_us")?.unwrap_or(local_latency_ps),
        switch_latency_ps,
    };
    if !counts.is_balanced() {
        let cables = counts.routers_per_group * counts.global_cables;
        let others = counts.groups - 1;
        let message = format!("a group has {cables} cables to {others} others; allowed: multiples of {others}");
        return Err(table.error("global_cables", message));
    }
    check_hosts(table, counts.groups * counts.routers_per_group * counts.hosts_per_router)?;
    Ok(counts.network())
}

fn graph(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let mut network = Network::default();
    for (name, _) in table.words("hosts")?.ok_or_else(|| table.missing("hosts"))? {
        network.add_host(name);
    }
    for (name, _) in table.words("switches")?.ok_or_else(|| table.missing("switches"))? {
        network.add_switch(name, 0);
    }
    let links = table.tables("link", &fields::GRAPH_LINK)?;
    if links.is_empty() {
        return Err(table.missing("link"));
    }
    for link in &links {
        let end = |field: &str| {
            let (name, _) = link.text(field)?.ok_or_else(|| link.missing(field))?;
            let all = || network.hosts.iter().chain(network.switches.iter().map(|switch| &switch.name));
            let unknown = || format!("there is no node `{name}`; allowed: {}", list(all().map(String::as_str)));
            network.node(name).ok_or_else(|| link.error(field, unknown()))
        };
        let (a, b) = (end("a")?, end("b")?);
        let rate_bps = link.rate("gbps")?.unwrap_or(RATE_BPS);
        network.add_cable(a, b, rate_bps, link.time("latency_us")?.unwrap_or(LATENCY_PS));
    }
    Ok(network)
}

fn topo_file(table: &Table<'_>) -> Result<Network, ScenarioError> {
    let (name, _) = table.text("file")?.ok_or_else(|| table.missing("file"))?;
    let file = table.source.folder().join(name);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        table.error("file", format!("`{}` cannot be read: {error}; allowed: a .topo file", file.display()))
    })?;
    let topo = TopoFile::parse(&text).map_err(|error| ScenarioError {
        file,
        line: error.line,
        column: error.column,
        message: error.message,
    })?;
    Ok(topo.network())
}

pub(super) fn queue(table: Option<&Table<'_>>) -> Result<Queue, ScenarioError> {
    let mut queue = Queue {
        limit: QueueLength::Bdp(1.0),
        mark_min: QueueLength::Percent(20.0),
        mark_max: QueueLength::Percent(80.0),
        control_limit: QueueLength::Percent(100.0),
        trimming: true,
    };
    let Some(table) = table else { return Ok(queue) };
    queue.limit = table.queue("limit")?.unwrap_or(queue.limit);
    if matches!(queue.limit, QueueLength::Percent(_)) {
        return Err(table.error("limit", "`limit` is a percentage of itself; allowed: bytes, packets or bdp"));
    }
    queue.mark_min = table.queue("mark_min")?.unwrap_or(queue.mark_min);
    queue.mark_max = table.queue("mark_max")?.unwrap_or(queue.mark_max);
    queue.control_limit = table.queue("control_limit")?.unwrap_or(queue.control_limit);
    queue.trimming = table.flag("trimming")?.unwrap_or(queue.trimming);
    Ok(queue)
}

pub(super) fn emulation(table: Option<Table<'_>>) -> Result<Emulation, ScenarioError> {
    let Some(table) = table else {
        return Ok(Emulation { dilation: None, chassis: Chassis::Fabric, threads: None });
    };
    Ok(Emulation {
        dilation: table.auto("dilation")?,
        chassis: match table.choice("chassis")? {
            Some("per-switch") => Chassis::PerSwitch,
            _ => Chassis::Fabric,
        },
        threads: table.integer("threads")?.filter(|threads| *threads > 0).map(|threads| threads as usize),
    })
}

pub(super) fn link_events(tables: &[Table<'_>], network: &Network) -> Result<Vec<LinkEvent>, ScenarioError> {
    tables.iter().map(|table| link_event(table, network)).collect()
}

fn link_event(table: &Table<'_>, network: &Network) -> Result<LinkEvent, ScenarioError> {
    let (name, _) = table.text("link")?.ok_or_else(|| table.missing("link"))?;
    let links = network.links_named(name).ok_or_else(|| {
        let leaving = network.links.iter().filter(|link| matches!(link.from, spray_fabric::Node::Switch(_)));
        let names = list(leaving.map(|link| link.name.as_str()));
        table.error("link", format!("there is no link `{name}`; allowed: {names}, and with `-` both directions"))
    })?;
    let action = action(table)?;
    let at_ps = table.time("at_us")?.unwrap_or(0);
    let until_ps = table.time("until_us")?;
    if until_ps.is_some_and(|until| until <= at_ps) {
        return Err(table.error("until_us", "`until_us` is not after `at_us`; allowed: later times"));
    }
    Ok(LinkEvent { name: name.to_string(), links, at_ps, until_ps, action })
}

fn action(table: &Table<'_>) -> Result<LinkAction, ScenarioError> {
    let action = table.choice("action")?.ok_or_else(|| table.missing("action"))?;
    table.check_kind("action", action)?;
    Ok(match action {
        "down" => LinkAction::Down { convergence_ps: table.time("convergence_us")?.unwrap_or(CONVERGENCE_PS) },
        "silent-drop" => LinkAction::SilentDrop,
        "rate" => LinkAction::Rate { ppm: table.share("factor")?.ok_or_else(|| table.missing("factor"))? },
        "loss" => LinkAction::Loss { ppm: table.share("probability")?.ok_or_else(|| table.missing("probability"))? },
        _ => {
            let period_ps = table.time("period_us")?.ok_or_else(|| table.missing("period_us"))?;
            let down_ps = table.time("down_us")?.ok_or_else(|| table.missing("down_us"))?;
            if down_ps >= period_ps {
                return Err(table.error("down_us", "`down_us` is not less than `period_us`; allowed: less"));
            }
            LinkAction::Flap { period_ps, down_ps }
        }
    })
}

/// The first names of a list, for an error.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let shown = names.iter().take(24).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 24 { format!("{shown} and {} more", names.len() - 24) } else { shown }
}
