//! Observers of a run's frames: captures for Wireshark, and traces of chosen packets.
//!
//! Interfaces are the sending ends of links, then switches, for frames without a next hop.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use spray_capture::{Capture, TapPoint, Tracer};
pub use spray_capture::{CaptureStats, Observer, Row};
use spray_core::path::BalancerKind;
use spray_fabric::{Link, Network, Node, address, first_flows};

use crate::scenario::Scenario;
use crate::workload::{classes, largest_bytes};

/// Creates a capture of at most `frames` frames of a run of `scenario`, in a new file.
///
/// # Errors
/// When the file exists or cannot be created.
pub fn capture(file: &Path, scenario: &Scenario, frames: u64) -> io::Result<Observer> {
    let places = places(&scenario.network);
    // `leaf0:spine1` is the end at `leaf0` of the cable to `spine1`.
    let names: Vec<String> = places.iter().map(|place| place.port.replace("->", ":")).collect();
    let output = BufWriter::new(File::create_new(file)?);
    let capture = Capture::new(output, names.iter().map(String::as_str), Duration::ZERO, frames)?;
    Ok(Observer::new(Some(capture), None))
}

/// Creates a tracer of the flows `chosen`; `simulated` is whether the engine is the simulator.
///
/// # Errors
/// When a number is not that of a flow.
pub fn tracer(
    scenario: &Scenario,
    balancer: BalancerKind,
    seed: u64,
    chosen: &[u64],
    simulated: bool,
) -> Result<Observer, String> {
    let (plan, paths) = (scenario.plan(seed), scenario.paths());
    let flows = &plan.flows;
    if let Some(flow) = chosen.iter().find(|flow| **flow >= flows.len() as u64) {
        return Err(format!("there is no flow {flow}; allowed: 0 to {}", flows.len().saturating_sub(1)));
    }
    let (classes, largest_bytes) = (classes(&scenario.workloads), largest_bytes(flows));
    let mut series = vec![Vec::new(); flows.len()];
    for (flow, first) in
        first_flows(flows.iter().map(|flow| flow.connection.map(|flow| flow as usize))).into_iter().enumerate()
    {
        series[first].push((flow, chosen.contains(&(flow as u64))));
    }
    let mut tracer = Tracer::new(places(&scenario.network));
    for (first, series) in series.into_iter().enumerate().filter(|(_, series)| series.iter().any(|(_, chosen)| *chosen))
    {
        let flow = &flows[first];
        tracer.follow(series, scenario.connection(&paths, balancer, &classes, flow, largest_bytes).path.evs.into());
        if simulated {
            // The simulator numbers connections by their first flows.
            for host in [flow.src, flow.dst] {
                tracer.map_number(address(host, scenario.is_v6()), first as u32, first);
            }
        }
    }
    Ok(Observer::new(None, Some(tracer)))
}

fn places(network: &Network) -> Vec<TapPoint> {
    let name = |node| network.node_name(node).to_string();
    let end = |link: &Link| TapPoint {
        node: name(link.from),
        port: link.name.clone(),
        of_host: matches!(link.from, Node::Host(_)),
    };
    let switch =
        |switch| TapPoint { node: name(Node::Switch(switch)), port: name(Node::Switch(switch)), of_host: false };
    network.links.iter().map(end).chain((0..network.switches.len()).map(switch)).collect()
}
