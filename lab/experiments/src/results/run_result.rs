//! The results of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{PortOutcome, PortSamples, Switching};
use spray_pipeline::scheme::SchemeCounters;
use spray_settings::Axis;

use super::{ConnectionEvs, EngineFigures, EventRow, FlowResult, PfcFigures, Shape, SimFigures};

/// All results of a run of a scenario with a balancer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Engine: `xdp` or `sim`.
    pub engine: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The fabric's condition in two or three words: `healthy`, `half-rate uplink`, ...
    pub condition: String,
    /// Name of the balancer, as for `--balancer`.
    pub balancer: String,
    /// Name of the congestion control.
    pub congestion_control: String,
    /// Schemes and settings of the switches.
    pub switching: Switching,
    /// The root seed.
    pub seed: u64,
    /// Values of the sweep's axes.
    pub axes: Vec<Axis>,
    /// End of the run.
    pub end_us: f64,
    /// The time limit, if it ended the run.
    pub time_limit_us: Option<f64>,
    /// Time without acknowledgements after which connections gave up, if any did; the longest.
    pub give_up_us: Option<f64>,
    /// Measures of the engine.
    pub engine_figures: EngineFigures,
    /// Flows of the workload, completed or not.
    pub flows: Vec<FlowResult>,
    /// Egress ports of the fabric.
    pub ports: Vec<PortOutcome>,
    /// Switches and the links between them.
    pub shape: Shape,
    /// Time series of switch ports, with indices into `ports`.
    pub port_samples: Vec<PortSamples>,
    /// (Time in ps, cumulative payload bytes received), from time 0 on at each end of a bin.
    pub delivered: Vec<(u64, u64)>,
    /// Entropy values of the first connections, if sampled.
    pub evs: Vec<ConnectionEvs>,
    /// Events, by time.
    pub events: Vec<EventRow>,
    /// Frames lost by the testbed itself, outside the emulation: any make the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Whether all payload arrived unchanged; `None` in the simulator, which carries none.
    pub payload_verified: Option<bool>,
    /// Measures of the simulator.
    pub sim: Option<SimFigures>,
    /// Measures of priority flow control, if used.
    pub pfc: Option<PfcFigures>,
    /// Counters of the switches' schemes.
    pub scheme_counters: SchemeCounters,
    /// Time from the first failure to the last data frame that it dropped, if any.
    pub loss_duration_us: Option<f64>,
}

/// Frames lost by the emulating machine, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestbedLosses {
    /// Dropped by a veth ring (256 frames) or a failed redirect.
    pub veth: u64,
    /// Dropped at a full AF_XDP receive ring.
    pub rx_ring_full: u64,
    /// Dropped at an empty fill ring.
    pub fill_ring_empty: u64,
    /// Dropped for any other reason.
    pub other: u64,
}

impl TestbedLosses {
    /// Returns their sum.
    pub const fn total(&self) -> u64 {
        self.veth + self.rx_ring_full + self.fill_ring_empty + self.other
    }
}
