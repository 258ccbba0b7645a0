//! The figures of a run that fit on one line: `summary.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::{FlowHash, HashFields, HashFunction, HashSeed, Switching};
use spray_pipeline::scheme::Counted;
use spray_settings::AxisValue;

use super::flow_figures::counted;
use super::{
    EngineFigures, FabricFigures, FlowFigures, LayerFigures, PfcFigures, RunResult, SimFigures, TestbedLosses,
    WorkloadSummary,
};

/// The contents of `summary.json`; its field names are its keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// `xdp` or `sim`.
    pub engine: String,
    /// The scenario's name.
    pub scenario: String,
    /// What is wrong with the fabric; `healthy` if nothing is.
    pub condition: String,
    /// The balancer.
    pub balancer: String,
    /// The congestion control.
    pub congestion_control: String,
    /// The switches' scheme, or that of each tier as in `tor=rr,agg=ofan,core=ofan`.
    pub switch: String,
    /// How switches hash, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The random seed.
    pub seed: u64,
    /// The values of the sweep's axes, by the setting's path; only in sweeps that have axes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, AxisValue>,
    /// What came of all flows.
    #[serde(flatten)]
    pub flows: FlowFigures,
    /// The keys of the figures that are lower bounds, since not all flows completed.
    #[serde(default)]
    pub lower_bounds: Vec<String>,
    /// The time limit, in us, if it ended the run before all flows had completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_us: Option<f64>,
    /// The time without an acknowledgement, in us, after which connections were given up, if any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_us: Option<f64>,
    /// What the fabric's ports counted.
    #[serde(flatten)]
    pub fabric: FabricFigures,
    /// What the engine says of it.
    #[serde(flatten)]
    pub engine_figures: EngineFigures,
    /// The ports by layer, in the order of the ports.
    pub layers: Vec<LayerFigures>,
    /// How many of the reordered packets were 1 place behind the highest number seen, 2 to 3, 4 to 7, and so on.
    pub reordering_degrees: Vec<u64>,
    /// Figures of each workload.
    pub workloads: Vec<WorkloadSummary>,
    /// Whether every delivered message was the message sent, byte for byte. Not there where no payload is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_verified: Option<bool>,
    /// Frames that the testbed itself lost, by place: more than zero makes the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Figures that only the simulator has; other runs lack these keys.
    #[serde(flatten)]
    pub sim: Option<SimFigures>,
    /// Figures of networks with priority flow control; other runs lack these keys.
    #[serde(flatten)]
    pub pfc: Option<PfcFigures>,
    /// What the switches' schemes counted; runs with other schemes lack these keys.
    #[serde(flatten)]
    pub counted: Counted,
}

/// How switches hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hash {
    /// By which function.
    pub function: HashFunction,
    /// What of a packet.
    pub fields: HashFields,
    /// Which of them with the same seed.
    pub seed: HashSeed,
}

impl Hash {
    /// The hash of these switches; `None` if it is the default.
    fn of(switching: &Switching) -> Option<Self> {
        let FlowHash { function, fields } = switching.hash;
        Some(Self { function, fields, seed: switching.hash_seed }).filter(|hash| *hash != Self::default())
    }
}

impl Summary {
    /// Whether every flow completed with the payload that was sent. Where none is carried it is enough that every flow completed.
    pub fn is_complete(&self) -> bool {
        self.flows.flows_completed == self.flows.flows_total && self.payload_verified != Some(false)
    }
}

impl RunResult {
    /// The figures of the run.
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
            counted: self.counted.clone(),
        }
    }

    /// What the two ends of all flows have counted.
    pub fn counted(&self) -> (SenderStats, ReceiverStats) {
        counted(self.flows.iter())
    }
}
