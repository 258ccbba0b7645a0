//! The measures of a run: `summary.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::{FlowHash, HashFields, HashFunction, HashSeed, Switching};
use spray_pipeline::scheme::SchemeCounters;
use spray_settings::AxisValue;

use super::flow_figures::counted;
use super::{
    EngineFigures, FabricFigures, FlowFigures, LayerFigures, PfcFigures, RunResult, SimFigures, TestbedLosses,
    WorkloadSummary,
};

/// The contents of `summary.json`; field names are keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Engine: `xdp` or `sim`.
    pub engine: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Condition of the fabric; `healthy` without faults.
    pub condition: String,
    /// The balancer.
    pub balancer: String,
    /// The congestion control.
    pub congestion_control: String,
    /// The switches' scheme, or one per tier as in `tor=rr,agg=ofan,core=ofan`.
    pub switch: String,
    /// Hashing of switches, if not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The random seed.
    pub seed: u64,
    /// Axis values by setting path, in sweeps with axes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, AxisValue>,
    /// Measures of all flows.
    #[serde(flatten)]
    pub flows: FlowFigures,
    /// Keys of the measures that are lower bounds, as flows are incomplete.
    #[serde(default)]
    pub lower_bounds: Vec<String>,
    /// Time limit in us, if it ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_us: Option<f64>,
    /// Time without acknowledgements in us after which connections gave up, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_us: Option<f64>,
    /// Measures of the fabric's ports.
    #[serde(flatten)]
    pub fabric: FabricFigures,
    /// Measures of the engine.
    #[serde(flatten)]
    pub engine_figures: EngineFigures,
    /// Measures by layer, in the order of the ports.
    pub layers: Vec<LayerFigures>,
    /// Number of packets reordered by 1 place, 2 to 3, 4 to 7, and so on.
    pub reordering_degrees: Vec<u64>,
    /// Measures by workload.
    pub workloads: Vec<WorkloadSummary>,
    /// Whether all payload arrived unchanged; absent if none is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_verified: Option<bool>,
    /// Frames lost by the testbed itself, by place: any make the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Measures of the simulator; absent otherwise.
    #[serde(flatten)]
    pub sim: Option<SimFigures>,
    /// Measures of priority flow control; absent otherwise.
    #[serde(flatten)]
    pub pfc: Option<PfcFigures>,
    /// Counters of the switches' schemes; others are absent.
    #[serde(flatten)]
    pub scheme_counters: SchemeCounters,
}

/// Hashing of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hash {
    /// Hash function.
    pub function: HashFunction,
    /// Hashed fields of a packet.
    pub fields: HashFields,
    /// Distribution of seeds over switches.
    pub seed: HashSeed,
}

impl Hash {
    fn of(switching: &Switching) -> Option<Self> {
        let FlowHash { function, fields } = switching.hash;
        Some(Self { function, fields, seed: switching.hash_seed }).filter(|hash| *hash != Self::default())
    }
}

impl Summary {
    /// Whether every flow completed, and no payload differs.
    pub fn is_complete(&self) -> bool {
        self.flows.flows_completed == self.flows.flows_total && self.payload_verified != Some(false)
    }
}

impl RunResult {
    /// Computes the measures of the run.
    pub fn summary(&self) -> Summary {
        let (flows, mut lower_bounds) = FlowFigures::of(self.flows.iter(), self.end_us);
        let workloads = self.workloads();
        if let [only] = &workloads[..] {
            lower_bounds.clone_from(&only.lower_bounds);
        }
        Summary {
            engine: self.engine.clone(),
            scenario: self.scenario.clone(),
            condition: self.condition.clone(),
            balancer: self.balancer.clone(),
            congestion_control: self.congestion_control.clone(),
            switch: self.switching.to_string(),
            hash: Hash::of(&self.switching),
            seed: self.seed,
            axes: self.axes.iter().map(|axis| (axis.path.clone(), axis.value.clone())).collect(),
            flows,
            lower_bounds,
            time_limit_us: self.time_limit_us,
            give_up_us: self.give_up_us,
            fabric: self.fabric_figures(),
            engine_figures: self.engine_figures.rounded(),
            layers: self.layer_figures(),
            reordering_degrees: self.counted().1.order.degrees.counts().to_vec(),
            workloads,
            payload_verified: self.payload_verified,
            testbed_losses: self.testbed_losses,
            sim: self.sim,
            pfc: self.pfc,
            scheme_counters: self.scheme_counters.clone(),
        }
    }

    /// Sums the counters of all flows' senders and receivers.
    pub fn counted(&self) -> (SenderStats, ReceiverStats) {
        counted(self.flows.iter())
    }
}
