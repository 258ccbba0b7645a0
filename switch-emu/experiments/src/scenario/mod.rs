//! Scenarios: what is written in a TOML file, checked and turned into the project's own units.
//!
//! [`Scenario::load`] reads a file; every mistake is a [`ScenarioError`] with file, line, column and what is allowed
//! there. `docs/scenario.md` lists every field; both come from [`fields`].

mod build;
mod error;
pub mod fields;
mod params;
mod paths;
pub(crate) mod reader;
pub(crate) mod sections;
mod transport;
mod units;

use std::path::{Path, PathBuf};

use spray_core::cc::{CcKind, CcSchemes};
use spray_core::loss::SackRule;
use spray_core::path::{BalancerKind, Schemes};

pub use error::ScenarioError;
pub use params::{PARAMS_HEAD, ParamMistake, all_params, params_markdown, set_param};
pub use paths::Paths;

pub(crate) use transport::MAX_IP_BYTES;
pub use units::{QueueLength, bytes};

use crate::workload::Workload;
use spray_fabric::QueueConfig;
use spray_fabric::{LinkAction, LinkEvent, Network};

/// A checked scenario. Times are ps of scenario time, rates bits a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What is wrong with the fabric, in two or three words; `healthy` where nothing is.
    pub condition: String,
    /// Root of every random choice.
    pub seed: u64,
    /// When a run is stopped; `None` is [`Scenario::time_limit_ps`]'s default.
    pub time_limit_ps: Option<u64>,
    /// Time between samples; 0 takes none.
    pub sample_ps: u64,
    /// Hosts, switches and links.
    pub network: Network,
    /// Who sends what to whom.
    pub workload: Workload,
    /// How senders and receivers work.
    pub transport: Transport,
    /// The queues of every port.
    pub queue: Queue,
    /// What befalls links.
    pub link_events: Vec<LinkEvent>,
    /// How the `xdp` engine plays it.
    pub emulation: Emulation,
}

/// How senders and receivers work. `None` means a default that depends on the path, see `docs/scenario.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Transport {
    /// What chooses paths; with several, a run for each.
    pub balancers: Vec<BalancerKind>,
    /// Congestion control.
    pub cc: CcKind,
    /// Wire rate of each flow under `fixed-rate`.
    pub fixed_bps: Option<u64>,
    /// Window before the first feedback.
    pub initial_window_bytes: Option<u64>,
    /// Largest window.
    pub max_window_bytes: Option<u64>,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// Payload of a full packet.
    pub payload_bytes: u32,
    /// Sizes of headers and of control frames, in the simulator only; `None` is those of our own frames.
    pub frames: Option<FrameSizes>,
    /// Data packets to one ACK.
    pub ack_every: u32,
    /// Entropy values that an ACK carries.
    pub ack_evs: u32,
    /// ACKs as in the published simulations: marked packets at once, and what an ACK brings is marked or not as a whole.
    pub published_acks: bool,
    /// How long an ACK may wait.
    pub ack_delay_ps: Option<u64>,
    /// Number of entropy values.
    pub evs: u32,
    /// Open packet sequence numbers; a power of two.
    pub window_packets: u32,
    /// Gap after which a packet counts as lost.
    pub sack_gap_packets: Option<u32>,
    /// What it takes besides.
    pub sack_rule: SackRule,
    /// Messages go in an ideal erasure code, in the simulator only.
    pub erasure: bool,
    /// Least retransmission timeout.
    pub rto_min_ps: Option<u64>,
    /// Largest retransmission timeout.
    pub rto_max_ps: Option<u64>,
    /// Time without progress after which a connection fails.
    pub give_up_ps: u64,
    /// Parameters of the balancers.
    pub schemes: Schemes,
    /// Parameters of congestion controls.
    pub cc_schemes: CcSchemes,
}

/// Sizes of frames other than our own, to follow published simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSizes {
    /// All headers of a data frame.
    pub header_bytes: u32,
    /// ACKs, NACKs, probes and trimmed frames.
    pub control_bytes: u32,
}

/// The queues of every port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// Data that may wait.
    pub limit: QueueLength,
    /// Below it nothing is marked.
    pub mark_min: QueueLength,
    /// From it on everything is marked.
    pub mark_max: QueueLength,
    /// Control that may wait.
    pub control_limit: QueueLength,
    /// Cut instead of drop.
    pub trimming: bool,
}

/// How the `xdp` engine plays a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Emulation {
    /// How many times slower than scenario time; `None` measures.
    pub dilation: Option<f64>,
    /// Which switches share a program.
    pub chassis: Chassis,
    /// Threads that poll hosts; `None` is one a core, at most one a host.
    pub threads: Option<usize>,
}

/// Which switches share a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chassis {
    /// All of them.
    Fabric,
    /// Each has its own, in a namespace of its own.
    PerSwitch,
}

impl Scenario {
    /// Reads the scenario in `file`, and the files that it names.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(file).map_err(|error| ScenarioError {
            file: file.to_path_buf(),
            line: 1,
            column: 1,
            message: format!("cannot be read: {error}; allowed: a scenario in TOML"),
        })?;
        Self::parse(file, &text)
    }

    /// Parses `text`, which came from `file`: errors name it, and relative paths start at its folder.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ScenarioError> {
        build::scenario(&error::Source { file, text })
    }

    /// Gives every flow the bytes of `file` as payload, and its size where `resize`. Fails when it cannot be read or
    /// is empty.
    pub fn set_payload_file(&mut self, file: PathBuf, resize: bool) -> std::io::Result<()> {
        self.workload.set_payload_file(file, resize)
    }

    /// The condition that link events amount to, in a few words.
    pub(crate) fn describe(events: &[LinkEvent]) -> String {
        let word = |event: &LinkEvent| match event.action {
            LinkAction::Rate { ppm } => format!("{} at {} % rate", event.name, f64::from(ppm) / 1e4),
            LinkAction::Loss { ppm } => format!("{} loses {} %", event.name, f64::from(ppm) / 1e4),
            action => format!("{} {}", event.name, action.name()),
        };
        match events {
            [] => "healthy".into(),
            [event] => word(event),
            [first, rest @ ..] => format!("{} and {} more", word(first), rest.len()),
        }
    }

    /// Takes `events` in, and names the condition after all of them.
    pub fn add_link_events(&mut self, events: Vec<LinkEvent>) {
        self.link_events.extend(events);
        self.condition = Self::describe(&self.link_events);
    }

    /// The queue of a port of `rate_bps`.
    pub fn queue_config(&self, rate_bps: u64) -> QueueConfig {
        self.queue.config(rate_bps, self.base_rtt_ps(), self.packet_bytes())
    }
}

impl Queue {
    /// In bytes, at a port of `rate_bps` in a fabric of `base_rtt_ps` with full packets of `packet_bytes`. Nothing
    /// exceeds 4 GiB; the limit holds at least one packet. The kernel's switch takes less: [`MAX_XDP_QUEUE_BYTES`].
    pub fn config(&self, rate_bps: u64, base_rtt_ps: u64, packet_bytes: u32) -> QueueConfig {
        let bytes = |length, limit: u32| match length {
            QueueLength::Bytes(bytes) => bytes.min(u64::from(u32::MAX)) as u32,
            QueueLength::Packets(packets) => clamp(packets * f64::from(packet_bytes)),
            QueueLength::Bdp(bdp) => clamp(bdp * spray_core::cc::bdp_bytes(base_rtt_ps, rate_bps) as f64),
            QueueLength::Percent(percent) => clamp(percent / 100.0 * f64::from(limit)),
        };
        let limit_bytes = bytes(self.limit, 0).max(packet_bytes);
        QueueConfig {
            limit_bytes,
            mark_min_bytes: bytes(self.mark_min, limit_bytes),
            mark_max_bytes: bytes(self.mark_max, limit_bytes),
            control_limit_bytes: bytes(self.control_limit, limit_bytes),
            trim: self.trimming,
        }
    }
}

/// Largest queue that the kernel's switch emulates, in bytes; the simulator's are bounded by 4 GiB.
pub const MAX_XDP_QUEUE_BYTES: u32 = spray_pipeline::config::MAX_LIMIT_BYTES;

fn clamp(bytes: f64) -> u32 {
    bytes.clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests;
