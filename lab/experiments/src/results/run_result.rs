//! The results of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{PortOutcome, PortSamples, Switching};
use spray_pipeline::scheme::Counted;
use spray_settings::Axis;

use super::{ConnectionEvs, EngineFigures, EventRow, FlowResult, PfcFigures, Shape, SimFigures};

/// All results of one run of one scenario with one balancer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Which engine ran it: `xdp` or `sim`.
    pub engine: String,
    /// The scenario's name.
    pub scenario: String,
    /// What is wrong with the fabric, in two or three words: `healthy`, `half-rate uplink`, ...
    pub condition: String,
    /// The balancer's name, as `--balancer` takes it.
    pub balancer: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// How the switches choose.
    pub switching: Switching,
    /// The root seed.
    pub seed: u64,
    /// The values of the sweep's axes.
    pub axes: Vec<Axis>,
    /// When the run ended.
    pub end_us: f64,
    /// The time limit, if it ended the run.
    pub time_limit_us: Option<f64>,
    /// After which time without an acknowledgement connections were given up, if any was; the longest of theirs.
    pub give_up_us: Option<f64>,
    /// What the engine says of it.
    pub engine_figures: EngineFigures,
    /// One entry per flow of the workload, completed or not.
    pub flows: Vec<FlowResult>,
    /// One entry per egress port of the fabric.
    pub ports: Vec<PortOutcome>,
    /// The switches and the links between them.
    pub shape: Shape,
    /// What the switches' ports counted over time, with indices into `ports`.
    pub port_samples: Vec<PortSamples>,
    /// Payload bytes that had arrived at the receivers by the end of each bin of time, over all flows, each byte once: (time in ps, bytes so
    /// far), from time 0 on.
    pub delivered: Vec<(u64, u64)>,
    /// The entropy values of the first connections, where the run is sampled.
    pub evs: Vec<ConnectionEvs>,
    /// Failures, reroutes, freezing and the like; times ascend.
    pub events: Vec<EventRow>,
    /// Frames that the testbed itself lost. The emulation does not include them: more than zero makes the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Whether every delivered message was the message sent, byte for byte; `None` where no payload is carried: in the simulator.
    pub payload_verified: Option<bool>,
    /// Figures that only the simulator has.
    pub sim: Option<SimFigures>,
    /// Of networks with priority flow control.
    pub pfc: Option<PfcFigures>,
    /// What the switches' schemes counted.
    pub counted: Counted,
    /// From the first failure to the last data frame that it dropped; `None` where the scenario fails nothing or no data was
    /// dropped.
    pub loss_duration_us: Option<f64>,
}

/// Frames lost by the machine that emulates the fabric, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestbedLosses {
    /// Dropped by a veth ring (256 frames each) or by a failed redirect.
    pub veth: u64,
    /// Dropped because an AF_XDP receive ring was full.
    pub rx_ring_full: u64,
    /// Dropped because a fill ring had no frame to offer.
    pub fill_ring_empty: u64,
    /// Dropped by the kernel or a program for any other reason.
    pub other: u64,
}

impl TestbedLosses {
    /// All of them together.
    pub const fn total(&self) -> u64 {
        self.veth + self.rx_ring_full + self.fill_ring_empty + self.other
    }
}
