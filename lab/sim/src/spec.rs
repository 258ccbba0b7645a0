//! What a run is made of, and what comes out of it.

use spray_core::flow::FlowConfig;
use spray_fabric::EvLife;

use spray_fabric::{
    FlowError, FlowSpec, Link, LinkChange, LinkEvent, Network, Thresholds, Trigger, changes, check_flows,
};
pub use spray_fabric::{FlowOutcome, PortOutcome, PortSamples};
use spray_pipeline::scheme::Counted;

/// One run, complete: the simulator reads nothing else. Times are ps of scenario time.
#[derive(Clone, Copy)]
pub struct SimSpec<'a> {
    /// Hosts, switches and links; checked by [`Network::check`].
    pub network: &'a Network,
    /// Changes of links, of hosts' own links too.
    pub events: &'a [LinkEvent],
    /// The queue of a port by its rate in bits a second.
    pub queue: &'a (dyn Fn(u64) -> Thresholds + Sync),
    /// Whether the network loses no data for want of memory; `None` = ports drop what does not fit.
    pub pfc: Option<Pfc>,
    /// Whether a link that begins at a share of its rate has that share of its queue.
    pub short_slow_queues: bool,
    /// Who sends what to whom. Results keep this order.
    pub flows: &'a [FlowSpec],
    /// What starts flows at the end of others, by the numbers that [`FlowSpec`] uses.
    pub triggers: &'a [Trigger],
    /// How the connection works that begins with the flow of this index. Asked at both ends of it, for the first flow of a connection only;
    /// [`FlowSpec::path_seed`] holds in place of its seed.
    pub flow_config: &'a (dyn Fn(usize) -> FlowConfig + Sync),
    /// Whether connections send in the ideal erasure code, which needs no retransmission.
    pub ideal_code: bool,
    /// Whether hosts have IPv6 addresses instead of IPv4: switches hash them.
    pub v6: bool,
    /// Bytes of frames without payload; those of data headers are [`FlowConfig::header_bytes`].
    pub frames: FrameBytes,
    /// Root of every random choice.
    pub seed: u64,
    /// When the run is stopped if flows are not through by then.
    pub until_ps: u64,
    /// How long the bins are in which what happens at ports and what arrives is counted, or a power of two times that in a long run; 0
    /// counts nothing, and costs nothing.
    pub sample_ps: u64,
}

impl SimSpec<'_> {
    /// By link the thresholds of its queue.
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

    pub(super) fn check(&self) -> Result<(), FlowError> {
        check_flows(self.flows, self.triggers, self.network.hosts.len())
    }
}

/// Priority flow control on every link: thresholds are those of the data that came over one link, and lead to a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Bytes of a full frame.
    pub frame_bytes: u32,
    /// Memory for what comes over a link until a pause stops it; `None` = as much as that can be.
    pub headroom_bytes: Option<u64>,
}

/// Links that pause for ever, since each waits for another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found.
    pub at_ps: u64,
    /// The names of links of which each waits for the next, and the last for the first.
    pub links: Vec<String>,
}

/// So many millionths of a queue; one that marks nothing still marks nothing.
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

/// Bytes on the wire of frames that carry no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBytes {
    /// An ACK.
    pub ack: u32,
    /// A NACK.
    pub nack: u32,
    /// A probe or its answer.
    pub probe: u32,
    /// A pull of credit.
    pub pull: u32,
    /// A request for credit.
    pub pull_request: u32,
    /// A data frame that a switch cut to its header.
    pub trimmed: u32,
}

impl FrameBytes {
    /// All of them `bytes` long, as in the published simulations with 64.
    pub const fn all(bytes: u32) -> Self {
        Self { ack: bytes, nack: bytes, probe: bytes, pull: bytes, pull_request: bytes, trimmed: bytes }
    }

    /// Those of this project's own frames.
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

/// What a run found out, in the order of [`SimSpec::flows`] and of [`SimOutcome::ports`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimOutcome {
    /// What the switches' schemes counted.
    pub counted: Counted,
    /// Flows, completed or not.
    pub flows: Vec<FlowOutcome>,
    /// Egress ports of the switches, then the hosts' own links.
    pub ports: Vec<PortOutcome>,
    /// What every switch's port counted over time; empty without `sample_ps`.
    pub samples: Vec<PortSamples>,
    /// Payload that had arrived by the end of each bin, (time, bytes), from time 0 on; empty without `sample_ps`.
    pub delivered: Vec<(u64, u64)>,
    /// The first deadlock of paused links.
    pub deadlock: Option<Deadlock>,
    /// What the senders reported: (time, flow, event), in order. Retransmissions are left out: counts tell of them.
    pub events: Vec<(u64, u32, spray_core::event::Event)>,
    /// The entropy values of the first connections, each with its first flow; empty without sampling.
    pub ev_lives: Vec<(u32, EvLife)>,
    /// When the last event happened.
    pub end_ps: u64,
    /// Frames put on links, hosts' links included: one for each frame and link.
    pub packet_hops: u64,
    /// Frames that hosts put on the wire.
    pub frames_sent: u64,
    /// Frames that hosts took from it.
    pub frames_delivered: u64,
    /// Frames that links, switches and full queues dropped.
    pub frames_dropped: u64,
    /// Frames under way when the run ended.
    pub frames_in_flight: u64,
}
