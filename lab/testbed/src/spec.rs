//! What a run on the testbed is made of, and what comes out of it. Times are ps of scenario time.

use std::time::Duration;

use bytes::Bytes;
use spray_capture::Shared;
use spray_core::event::Event;
use spray_core::flow::FlowConfig;
use spray_fabric::EvLife;
use spray_fabric::{FlowOutcome, FlowSpec, PortOutcome, PortSamples, Trigger};
use spray_pipeline::scheme::Counted;
use spray_switch::FabricSpec;

/// One run, complete: the testbed reads nothing else.
#[derive(Clone, Copy)]
pub struct TestbedSpec<'a> {
    /// Of the shape that the testbed was made for.
    pub fabric: FabricSpec<'a>,
    /// Who sends what to whom. Results keep this order.
    pub flows: &'a [FlowSpec],
    /// What starts flows at the end of others, by the numbers that [`FlowSpec`] uses.
    pub triggers: &'a [Trigger],
    /// What each flow carries, [`FlowSpec::bytes`] long.
    pub payloads: &'a [Bytes],
    /// How the connection works that begins with the flow of this index, at both ends of it. Asked for the first flow of a connection only;
    /// [`FlowSpec::path_seed`] holds in place of its seed.
    pub flow_config: &'a dyn Fn(usize) -> FlowConfig,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// The longest round trip through the empty fabric.
    pub base_rtt_ps: u64,
    /// When the run is stopped if flows are not through by then.
    pub until_ps: u64,
    /// How long the bins are in which what happens at ports and what arrives is counted, or a power of two times that in a long run; 0
    /// counts nothing.
    pub sample_ps: u64,
    /// How much slower than scenario time the run goes.
    pub dilation: Dilation,
    /// Threads that poll hosts, at most one a host; `None` is one.
    pub threads: Option<usize>,
    /// Who sees the frames of the hosts, and of the ports that lead to them; its interfaces are those of the simulator.
    pub watch: Option<&'a Shared>,
}

/// How much slower than scenario time a run goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dilation {
    /// By this factor.
    Given(f64),
    /// By a factor that the engine measures: a burst shows what the machine can carry.
    Measured {
        /// The least scenario time that the flows take when all start at once.
        ideal_ps: u64,
    },
}

/// The outcome of a run, in the order of [`TestbedSpec::flows`] and of the fabric's ports.
#[derive(Clone, Debug, Default)]
pub struct TestbedOutcome {
    /// What the switches' schemes counted.
    pub counted: Counted,
    /// Flows, completed or not.
    pub flows: Vec<FlowOutcome>,
    /// Whether every message that arrived equals one that was sent.
    pub payload_verified: bool,
    /// Egress ports of the switches.
    pub ports: Vec<PortOutcome>,
    /// What every switch's port counted over time; empty without `sample_ps`.
    pub samples: Vec<PortSamples>,
    /// Payload that had arrived by the end of each bin, (time, bytes), from time 0 on; empty without `sample_ps`.
    pub delivered: Vec<(u64, u64)>,
    /// The entropy values of the first connections, each with its first flow, on the hosts' clock; empty without sampling.
    pub ev_lives: Vec<(usize, EvLife)>,
    /// When the run began on that clock.
    pub lead_in_ps: u64,
    /// What hosts reported: retransmissions are left out.
    pub log: Vec<Report>,
    /// When routing changed.
    pub reroutes_ps: Vec<u64>,
    /// When the run ended.
    pub end_ps: u64,
    /// Frames that endpoints threw away as malformed, corrupted or forged.
    pub invalid_frames: u64,
    /// Frames that the machine lost.
    pub losses: Losses,
    /// Frames that came to their endpoint after their time.
    pub late_frames: u64,
    /// 99th percentile of how late frames came.
    pub lateness_p99_ps: u64,
    /// Real time of the run, lead-in included.
    pub wall: Duration,
    /// Real over scenario time, without the lead-in.
    pub dilation: f64,
}

/// Something that a host reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// When; negative while connections are set up.
    pub at_ps: i64,
    /// Which flow it concerns; else which host.
    pub subject: Subject,
    /// What happened.
    pub what: Happened,
}

/// What a [`Report`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The flow with this index.
    Flow(usize),
    /// A connection that others made to this host.
    Host(usize),
}

/// What a [`Report`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// An algorithm reported this.
    Event(Event),
    /// The connection failed, for this reason.
    Failed(String),
}

/// Frames lost by the machine that emulates the fabric, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Dropped by a veth ring (256 frames each) or by a failed redirect.
    pub veth: u64,
    /// Dropped because an AF_XDP receive ring was full.
    pub rx_ring_full: u64,
    /// Dropped because a fill ring had no frame to offer.
    pub fill_ring_empty: u64,
    /// Dropped by the kernel or a program for any other reason.
    pub other: u64,
}
