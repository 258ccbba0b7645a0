//! What the simulator's arguments name: fabrics, flows, failures.

use std::fs;
use std::path::Path;

use spray_core::path::RepsConfig;
use spray_experiments::scenario::{QueueLength, Scenario};
use spray_experiments::sim::reference;
use spray_experiments::workload::{Each, Pattern, Payload, Workload, parse_matrix};
use spray_fabric::{Dragonfly, FailureFile, FatTree, LeafSpine, LinkAction, LinkEvent, Network, TopoFile};

use super::args::{RepsVariant, Sim};
use crate::failure::{Failure, Outcome};

/// Rate of fabrics by counts, as in the published simulations.
const GBPS: f64 = 400.0;
/// Latency of their cables.
const LATENCY_PS: u64 = 1_000_000;
/// Most hosts of a fabric.
const MAX_HOSTS: usize = 65_536;
const COUNTS: &str = "a .topo file, leaf-spine:LEAVESxSPINESxHOSTS, fat-tree:PODSxTORSxAGGSxCORESxHOSTS or \
                      dragonfly:GROUPSxROUTERSxHOSTSxCABLES, with @GBPS after the counts for another rate than 400";
const PATTERNS: &str = "a .cm file, permutation:BYTES, cross-leaf-permutation:BYTES, tornado:BYTES or \
                        incast:SENDERS:BYTES, with bytes as in 8388608, 8MiB or 2kB";

/// `matrix` on `topology` with the settings of the published simulations.
///
/// # Errors
/// 2 for what the two may not be.
pub fn plain(topology: &str, matrix: &str) -> Outcome<Scenario> {
    let network = network(topology)?;
    network.check().map_err(|error| refused(topology, error))?;
    let workload = workload(matrix, &network)?;
    Ok(reference(&name(matrix), network, workload))
}

/// The scenario that `arguments` describe, with the settings of the published simulations where they say nothing.
///
/// # Errors
/// 2 for files that cannot be read and for what they may not hold, with line and column.
pub fn scenario(arguments: &Sim) -> Outcome<Scenario> {
    let mut scenario = plain(&arguments.topology, &arguments.matrix)?;
    scenario.sample_ps = (arguments.sample_us * 1e6).round() as u64;
    scenario.time_limit_ps = arguments.time_limit_us.map(|us| (us * 1e6).round() as u64);
    let transport = &mut scenario.transport;
    transport.balancers.clone_from(&arguments.balancers);
    (transport.cc, transport.evs, transport.ack_every) = (arguments.cc, arguments.evs, arguments.ack_every);
    transport.ack_evs = arguments.ack_evs;
    transport.sack_gap_packets = (arguments.sack_gap > 0).then_some(arguments.sack_gap);
    (transport.sack_rule, transport.erasure) = (arguments.sack_rule, arguments.erasure);
    transport.schemes.reps = match arguments.reps_variant {
        RepsVariant::Paper => RepsConfig::paper(),
        RepsVariant::Artifact => RepsConfig::artifact(),
        RepsVariant::UltraEthernet => RepsConfig::ultra_ethernet(),
    };
    arguments.params.apply(transport)?;
    scenario.queue.trimming = !arguments.no_trim;
    if let Some(bytes) = arguments.queue_bytes {
        scenario.queue.limit = QueueLength::Bytes(u64::from(bytes));
    }
    if arguments.no_marking {
        scenario.queue.mark_min = QueueLength::Bytes(u64::from(u32::MAX));
        scenario.queue.mark_max = scenario.queue.mark_min;
    }
    let events = link_events(arguments, &scenario.network)?;
    if !events.is_empty() {
        scenario.add_link_events(events);
    }
    Ok(scenario)
}

/// The failures whose victims each run draws from its own seed.
///
/// # Errors
/// 2 for a file that cannot be read and for what it may not hold, with line and column.
pub fn failures(arguments: &Sim) -> Outcome<Option<FailureFile>> {
    if let Some(percent) = arguments.fail_cables {
        return Ok(Some(FailureFile::dead_cables(percent / 100.0)));
    }
    let Some(file) = &arguments.failures else { return Ok(None) };
    let parsed = FailureFile::parse(&read(file)?);
    parsed.map(Some).map_err(|error| at(file, error.line, error.column, &error.message))
}

/// The condition of runs whose failures are drawn: the same for every seed.
pub fn condition(arguments: &Sim, scenario: &Scenario) -> Option<String> {
    let drawn = match (&arguments.failures, arguments.fail_cables) {
        (Some(file), _) => name(&file.to_string_lossy()),
        (None, percent) => format!("{} % of cables dead", percent?),
    };
    let healthy = scenario.link_events.is_empty();
    Some(if healthy { drawn } else { format!("{}, {drawn}", scenario.condition) })
}

/// An error in a file.
pub fn at(file: &Path, line: usize, column: usize, message: &str) -> Failure {
    Failure::refused(format!("{}:{line}:{column}: {message}", file.display()))
}

fn read(file: &Path) -> Outcome<String> {
    fs::read_to_string(file).map_err(|error| Failure::refused(format!("cannot read {}: {error}", file.display())))
}

fn refused(given: &str, why: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("`{given}`: {why}"))
}

/// A name for results: that of the file, or of the pattern.
fn name(matrix: &str) -> String {
    let stem = Path::new(matrix).file_stem().and_then(|stem| stem.to_str()).unwrap_or("sim");
    stem.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "-")
}

fn network(text: &str) -> Outcome<Network> {
    match text.split_once(':') {
        Some((kind @ ("leaf-spine" | "fat-tree" | "dragonfly"), counts)) => by_counts(text, kind, counts),
        _ => {
            let file = Path::new(text);
            let content = fs::read_to_string(file)
                .map_err(|error| Failure::refused(format!("--topology {text}: {error}; allowed: {COUNTS}")))?;
            let topo = TopoFile::parse(&content).map_err(|error| at(file, error.line, error.column, &error.message))?;
            Ok(topo.network())
        }
    }
}

fn by_counts(text: &str, kind: &str, counts: &str) -> Outcome<Network> {
    let wrong = || Failure::refused(format!("--topology {text}: allowed: {COUNTS}"));
    let (counts, gbps) = match counts.split_once('@') {
        None => (counts, GBPS),
        Some((counts, gbps)) => (counts, gbps.parse().map_err(|_| wrong())?),
    };
    if !(0.01..=1000.0).contains(&gbps) {
        return Err(Failure::refused(format!("--topology {text}: {gbps} Gb/s; allowed: 0.01 to 1000")));
    }
    let bps = (gbps * 1e9).round() as u64;
    let counts: Vec<usize> = counts.split('x').map(|count| count.parse().unwrap_or(0)).collect();
    if counts.iter().any(|count| !(1..=MAX_HOSTS).contains(count)) {
        return Err(wrong());
    }
    let check = |hosts: &[usize]| match hosts.iter().try_fold(1usize, |all, count| all.checked_mul(*count)) {
        Some(hosts) if hosts <= MAX_HOSTS => Ok(()),
        _ => Err(Failure::refused(format!("--topology {text}: too many hosts; allowed: {MAX_HOSTS}"))),
    };
    match (kind, counts.as_slice()) {
        ("leaf-spine", &[leaves, spines, hosts_per_leaf]) => {
            check(&[leaves, hosts_per_leaf])?;
            Ok(leaf_spine(leaves, spines, hosts_per_leaf, bps).network())
        }
        ("fat-tree", &[pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor]) => {
            check(&[pods, tors_per_pod, hosts_per_tor])?;
            if !cores.is_multiple_of(aggs_per_pod) {
                let rule = format!("{cores} cores; allowed: multiples of the {aggs_per_pod} aggregation switches");
                return Err(Failure::refused(format!("--topology {text}: {rule}")));
            }
            let tree = FatTree {
                pods,
                tors_per_pod,
                aggs_per_pod,
                cores,
                hosts_per_tor,
                bundle: 1,
                host_bps: bps,
                uplink_bps: bps,
                core_bps: bps,
                host_latency_ps: LATENCY_PS,
                uplink_latency_ps: LATENCY_PS,
                switch_latency_ps: 0,
            };
            Ok(tree.network())
        }
        ("dragonfly", &[groups, routers_per_group, hosts_per_router, global_cables]) => {
            check(&[groups, routers_per_group, hosts_per_router])?;
            let dragonfly = Dragonfly {
                groups,
                routers_per_group,
                hosts_per_router,
                global_cables,
                host_bps: bps,
                local_bps: bps,
                global_bps: bps,
                host_latency_ps: LATENCY_PS,
                local_latency_ps: LATENCY_PS,
                global_latency_ps: LATENCY_PS,
                switch_latency_ps: 0,
            };
            if !dragonfly.is_balanced() {
                let rule = "allowed: two or more groups, routers times cables a multiple of the other groups";
                return Err(Failure::refused(format!("--topology {text}: {rule}")));
            }
            Ok(dragonfly.network())
        }
        _ => Err(wrong()),
    }
}

fn leaf_spine(leaves: usize, spines: usize, hosts_per_leaf: usize, bps: u64) -> LeafSpine {
    LeafSpine {
        leaves,
        spines,
        hosts_per_leaf,
        bundle: 1,
        host_bps: bps,
        uplink_bps: bps,
        host_latency_ps: LATENCY_PS,
        uplink_latency_ps: LATENCY_PS,
        switch_latency_ps: 0,
    }
}

fn workload(text: &str, network: &Network) -> Outcome<Workload> {
    let hosts = network.hosts.len();
    let wrong = || Failure::refused(format!("--matrix {text}: allowed: {PATTERNS}"));
    let each = |bytes: &str| {
        let bytes = spray_experiments::scenario::bytes(bytes).filter(|bytes| (1..=1 << 40).contains(bytes));
        Ok::<_, Failure>(Each { bytes: bytes.ok_or_else(wrong)?, start_ps: 0 })
    };
    let pattern = match text.split(':').collect::<Vec<_>>()[..] {
        ["permutation", bytes] => Pattern::Permutation(each(bytes)?),
        ["cross-leaf-permutation", bytes] if network.hosts_by_leaf().iter().all(|leaf| 2 * leaf.len() <= hosts) => {
            Pattern::CrossLeafPermutation(each(bytes)?)
        }
        ["cross-leaf-permutation", _] => {
            let message = "one leaf has more than half of the hosts; allowed: permutation";
            return Err(Failure::refused(format!("--matrix {text}: {message}")));
        }
        ["tornado", bytes] => Pattern::Tornado(each(bytes)?),
        ["incast", senders, bytes] => {
            let senders = senders.parse().ok().filter(|senders| (1..hosts).contains(senders)).ok_or_else(|| {
                Failure::refused(format!("--matrix {text}: {senders} senders; allowed: 1 to {}", hosts - 1))
            })?;
            Pattern::Incast { senders, receiver: 0, each: each(bytes)? }
        }
        _ => Pattern::Matrix(matrix(text, hosts)?),
    };
    Ok(Workload { pattern, payload: Payload::Generated })
}

fn matrix(text: &str, hosts: usize) -> Outcome<spray_experiments::workload::Matrix> {
    let file = Path::new(text);
    let content = fs::read_to_string(file)
        .map_err(|error| Failure::refused(format!("--matrix {text}: {error}; allowed: {PATTERNS}")))?;
    let mut matrix =
        parse_matrix(&content, hosts).map_err(|error| at(file, error.line, error.column, &error.message))?;
    matrix.warnings.iter_mut().for_each(|warning| *warning = format!("{text}: {warning}"));
    Ok(matrix)
}

fn link_events(arguments: &Sim, network: &Network) -> Outcome<Vec<LinkEvent>> {
    let links = |option: &str, name: &str| {
        network.links_named(name).ok_or_else(|| {
            let some: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).take(12).collect();
            let names = format!("{}, ..., and with `-` both directions", some.join(", "));
            Failure::refused(format!("{option}: there is no link `{name}`; allowed: {names}"))
        })
    };
    let mut events = Vec::new();
    for rate in &arguments.link_rates {
        let action = LinkAction::Rate { ppm: rate.ppm };
        let links = links("--link-rate", &rate.link)?;
        events.push(LinkEvent { name: rate.link.clone(), links, at_ps: 0, until_ps: None, action });
    }
    for fail in &arguments.fails {
        let links = links("--fail", &fail.link)?;
        let (at_ps, until_ps) = (fail.at_ps, fail.until_ps);
        events.push(LinkEvent { name: fail.link.clone(), links, at_ps, until_ps, action: LinkAction::SilentDrop });
    }
    Ok(events)
}
