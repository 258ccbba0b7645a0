//! Input and outcome of a run on the testbed. Times are ps of scenario time.

use std::time::Duration;

use bytes::Bytes;
use spray_capture::Observer;
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_fabric::EvLife;
use spray_fabric::{FlowOutcome, FlowSpec, PortOutcome, PortSamples, Trigger};
use spray_pipeline::scheme::SchemeCounters;
use spray_switch::FabricSpec;

/// The complete input of a run.
#[derive(Clone, Copy)]
pub struct TestbedSpec<'a> {
    /// Of the shape of the testbed.
    pub fabric: FabricSpec<'a>,
    /// The flows. Results have the same order.
    pub flows: &'a [FlowSpec],
    /// Triggers, indexed as in [`FlowSpec`].
    pub triggers: &'a [Trigger],
    /// Payload of each flow, [`FlowSpec::bytes`] long.
    pub payloads: &'a [Bytes],
    /// Returns the configuration of the connection that begins with the flow of this index, for
    /// both ends; [`FlowSpec::path_seed`] replaces its seed.
    pub flow_config: &'a dyn Fn(usize) -> FlowConfig,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// The longest round trip through the empty fabric.
    pub base_rtt_ps: u64,
    /// Time limit of the run.
    pub until_ps: u64,
    /// Sampling interval of ports and of delivered bytes; longer in long runs; 0: off.
    pub sample_ps: u64,
    /// Real over scenario time.
    pub dilation: Dilation,
    /// Observer of frames at hosts and at the ports to them; interfaces as in the simulator.
    pub watch: Option<&'a Observer>,
}

/// Real over scenario time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dilation {
    /// A fixed factor.
    Given(f64),
    /// A factor measured with a burst.
    Measured {
        /// The least scenario time of the flows if all start at once.
        ideal_ps: u64,
    },
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct TestbedOutcome {
    /// Counters of the switches' schemes.
    pub scheme_counters: SchemeCounters,
    /// Flows in the order of [`TestbedSpec::flows`], complete or not.
    pub flows: Vec<FlowOutcome>,
    /// Whether all received messages equal those sent.
    pub payload_verified: bool,
    /// Egress ports of the switches.
    pub ports: Vec<PortOutcome>,
    /// Time series of every switch port; empty without `sample_ps`.
    pub samples: Vec<PortSamples>,
    /// (time, bytes): payload delivered by each bin's end, from time 0; empty without `sample_ps`.
    pub delivered: Vec<(u64, u64)>,
    /// Entropy values of the first connections, each with its first flow, by the hosts' clock;
    /// empty without `sample_ps`.
    pub ev_lives: Vec<(usize, EvLife)>,
    /// Start of the run by that clock.
    pub lead_in_ps: u64,
    /// Reports of the hosts, without retransmissions.
    pub log: Vec<Report>,
    /// Times of route changes.
    pub reroutes_ps: Vec<u64>,
    /// End of the run.
    pub end_ps: u64,
    /// Malformed, corrupted or forged frames discarded by endpoints.
    pub invalid_frames: u64,
    /// Frames lost by the machine.
    pub losses: Losses,
    /// Frames that arrived at their endpoint after their due time.
    pub late_frames: u64,
    /// 99th percentile of the lateness of frames.
    pub lateness_p99_ps: u64,
    /// Real time of the run, including the lead-in.
    pub wall: Duration,
    /// Real over scenario time, without the lead-in.
    pub dilation: f64,
}

/// A report of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Negative during connection setup.
    pub at_ps: i64,
    /// The flow, or else the host.
    pub subject: Subject,
    /// What happened.
    pub kind: ReportKind,
}

/// The subject of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The flow with this index.
    Flow(usize),
    /// A connection that this host accepted.
    Host(usize),
}

/// The content of a [`Report`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReportKind {
    /// Event of an algorithm.
    Event(Event),
    /// The connection failed for this reason.
    Failed(String),
}

/// Frames lost by the machine that emulates the fabric, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Dropped by a veth ring (256 frames each) or a failed redirect.
    pub veth: u64,
    /// Dropped because an AF_XDP rx ring was full.
    pub rx_ring_full: u64,
    /// Dropped because a fill ring was empty.
    pub fill_ring_empty: u64,
    /// Dropped by the kernel or a program for any other reason.
    pub other: u64,
}
