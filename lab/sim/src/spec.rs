//! Input and outcome of a simulation.

use spray_core::flow::FlowConfig;
use spray_fabric::{EvLife, FlowSpec, Link, LinkChange, LinkEvent, Network, Thresholds, Trigger, changes};
pub use spray_fabric::{FlowOutcome, PortOutcome, PortSamples};
use spray_pipeline::scheme::SchemeCounters;

/// The complete input of a run. Times are ps of scenario time.
#[derive(Clone, Copy)]
pub struct SimSpec<'a> {
    /// Hosts, switches and links, checked by [`Network::check`].
    pub network: &'a Network,
    /// Changes of links, including hosts' own.
    pub events: &'a [LinkEvent],
    /// Returns the queue thresholds of a port by its rate in bits per second.
    pub queue: &'a (dyn Fn(u64) -> Thresholds + Sync),
    /// Priority flow control (lossless network); `None` = ports drop what does not fit.
    pub pfc: Option<Pfc>,
    /// Whether a link that starts at a fraction of its rate has that fraction of its queue.
    pub short_slow_queues: bool,
    /// The flows. Results have the same order.
    pub flows: &'a [FlowSpec],
    /// Triggers, indexed as in [`FlowSpec`].
    pub triggers: &'a [Trigger],
    /// Returns the configuration of the connection that begins with the flow of this index, for
    /// both ends; [`FlowSpec::path_seed`] replaces its seed.
    pub flow_config: &'a (dyn Fn(usize) -> FlowConfig + Sync),
    /// Whether connections use an ideal erasure code, which needs no retransmissions.
    pub ideal_code: bool,
    /// Whether hosts have IPv6 addresses instead of IPv4; switches hash them.
    pub v6: bool,
    /// Lengths of frames without payload; those of data headers are [`FlowConfig::header_bytes`].
    pub frames: FrameBytes,
    /// Seed of every random choice.
    pub seed: u64,
    /// Time limit of the run.
    pub until_ps: u64,
    /// Sampling interval of ports and of delivered bytes; a long run uses a power of two times
    /// that. 0 disables sampling.
    pub sample_ps: u64,
}

impl SimSpec<'_> {
    /// Returns the thresholds of each link's queue.
    //= docs/specs/switch.md#SW-23 queues of slow links
    pub(super) fn queues(&self) -> Vec<Thresholds> {
        let first_ppm = |changes: &[LinkChange]| {
            let first = changes.first().filter(|first| self.short_slow_queues && first.at_ps == 0);
            first.map_or(1_000_000, |first| first.state.rate_ppm)
        };
        let changes = changes(self.events, self.network.links.len());
        let queue = |(link, changes): (&Link, Vec<LinkChange>)| share((self.queue)(link.rate_bps), first_ppm(&changes));
        self.network.links.iter().zip(changes).map(queue).collect()
    }
}

/// Priority flow control on every link; thresholds apply to the data received over one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Bytes of a full frame.
    pub frame_bytes: u32,
    /// Memory for what arrives until a pause takes effect; `None` = the worst case.
    pub headroom_bytes: Option<u64>,
}

/// A cycle of links that pause forever, each waiting for the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// Time of detection.
    pub at_ps: u64,
    /// Names of the links in the order of the cycle.
    pub links: Vec<String>,
}

/// Scales the thresholds by `ppm` millionths; a threshold that disables marking stays.
fn share(queue: Thresholds, ppm: u32) -> Thresholds {
    let of =
        |bytes: u32| if bytes == u32::MAX { bytes } else { (u64::from(bytes) * u64::from(ppm) / 1_000_000) as u32 };
    Thresholds {
        limit_bytes: of(queue.limit_bytes),
        mark_min_bytes: of(queue.mark_min_bytes),
        mark_max_bytes: of(queue.mark_max_bytes),
        control_limit_bytes: of(queue.control_limit_bytes),
        ..queue
    }
}

/// Lengths in bytes on the wire of frames without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBytes {
    /// ACK.
    pub ack: u32,
    /// NACK.
    pub nack: u32,
    /// Probe or its answer.
    pub probe: u32,
    /// Credit grant.
    pub pull: u32,
    /// Credit request.
    pub pull_request: u32,
    /// Data frame that a switch trimmed to its header.
    pub trimmed: u32,
}

impl FrameBytes {
    /// Returns lengths that are all `bytes`, as in the published simulations with 64.
    pub const fn all(bytes: u32) -> Self {
        Self { ack: bytes, nack: bytes, probe: bytes, pull: bytes, pull_request: bytes, trimmed: bytes }
    }

    /// Returns the lengths of this project's wire format.
    pub const fn wire(v6: bool) -> Self {
        Self {
            ack: spray_wire::header_bytes(v6, spray_wire::Kind::Ack) as u32,
            nack: spray_wire::header_bytes(v6, spray_wire::Kind::Nack) as u32,
            probe: spray_wire::header_bytes(v6, spray_wire::Kind::Probe) as u32,
            pull: spray_wire::header_bytes(v6, spray_wire::Kind::Pull) as u32,
            pull_request: spray_wire::header_bytes(v6, spray_wire::Kind::PullRequest) as u32,
            trimmed: spray_wire::offsets::trimmed_len(v6) as u32,
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimOutcome {
    /// Counters of the switches' schemes.
    pub scheme_counters: SchemeCounters,
    /// Flows in the order of [`SimSpec::flows`], complete or not.
    pub flows: Vec<FlowOutcome>,
    /// Egress ports of the switches, then the hosts' own links.
    pub ports: Vec<PortOutcome>,
    /// Time series of every switch port, in the order of `ports`; empty without `sample_ps`.
    pub samples: Vec<PortSamples>,
    /// (time, bytes): payload delivered by each bin's end, from time 0; empty without `sample_ps`.
    pub delivered: Vec<(u64, u64)>,
    /// The first deadlock of paused links.
    pub deadlock: Option<Deadlock>,
    /// (time, flow, event): reports of senders, in order of time, without retransmissions.
    pub events: Vec<(u64, u32, spray_core::event::Event)>,
    /// Entropy values of some connections, each with its first flow; empty without `sample_ps`.
    pub ev_lives: Vec<(u32, EvLife)>,
    /// Time of the last event.
    pub end_ps: u64,
    /// Number of frames put on links, including hosts' own.
    pub packet_hops: u64,
    /// Frames sent by hosts.
    pub frames_sent: u64,
    /// Frames received by hosts.
    pub frames_delivered: u64,
    /// Frames dropped by links, switches and full queues.
    pub frames_dropped: u64,
    /// Frames in flight when the run ended.
    pub frames_in_flight: u64,
}
