//! The settings of the published REPS simulations, on any fabric and matrix.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use spray_core::loss::floor_ps;
use spray_core::units::{ByteSize, Micros};
use spray_fabric::{Network, TopoFile};

use super::FctEnd;
use crate::scenario::{Convergence, Document, Queue, Scenario, SimulationSettings, Transport};
use crate::workload::{Pattern, Workload, parse_matrix};

/// Returns the settings of the published simulations, without name, fabric and workload.
pub fn preset() -> Document {
    Document::parse(Path::new("reference.toml"), include_str!("reference.toml")).expect("part of the program")
}

/// The tables of the preset.
#[derive(Deserialize, JsonSchema)]
struct Preset {
    sample_us: Micros,
    transport: Transport,
    queue: Queue,
    simulation: SimulationSettings,
}

/// Returns `pattern` on `network` with the settings of the published simulations.
pub fn reference(name: &str, network: Network, pattern: Pattern) -> Scenario {
    let preset: Preset = preset().read().expect("part of the program");
    Scenario {
        name: name.into(),
        condition: "healthy".into(),
        seed: 1,
        seeds: vec![1],
        sample_ps: preset.sample_us.ps(),
        network,
        workloads: vec![Workload::new(pattern)],
        transport: preset.transport,
        queue: preset.queue,
        convergence_ps: Convergence::default().ps(),
        simulation: preset.simulation,
        ..Scenario::default()
    }
}

/// Returns the flows of the `.cm` text `matrix` on the fabric of the `.topo` text `topology`, with
/// the settings of [`reference()`]. A flow ends with its last acknowledgement.
///
/// # Panics
/// When either cannot be parsed.
pub fn published(name: &str, topology: &str, matrix: &str) -> Scenario {
    let network = TopoFile::parse(topology).expect("a reference topology").network();
    let matrix = parse_matrix(matrix, network.hosts.len()).expect("a reference matrix");
    let mut scenario = reference(name, network, Pattern::Matrix(matrix));
    scenario.simulation.fct_end = FctEnd::Acked;
    scenario
}

/// Sets what the REPS paper's command lines add, the same for all pairs of hosts and any number of
/// tiers: the initial window, and a least timeout of the longest base RTT and four queues.
//= docs/specs/dctcp.md#DCTCP-6 the first window
pub fn same_for_all_pairs(scenario: &mut Scenario) {
    scenario.transport.initial_window_bytes = Some(ByteSize::new(FIRST_WINDOW_BYTES));
    let paths = scenario.paths();
    let floor_ps = floor_ps(scenario.base_rtt_ps(&paths), scenario.drain_ps(&paths), 0);
    scenario.transport.rto_min_us = Some(Micros::from_ps(floor_ps));
}

/// The published command lines' window: 151 packets.
const FIRST_WINDOW_BYTES: u64 = 626_650;
