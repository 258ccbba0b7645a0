//! Scenarios: TOML files, checked and converted to internal units.
//!
//! [`settings`] declares every field once. Errors are [`Error`]s with the place and the rule.

/// Implements `JsonSchema` by an inline schema.
macro_rules! inline_schema {
    ($type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

mod effective_settings;
mod failure;
mod limits;
mod link_event;
mod mistake;
mod number_or_text;
mod paths;
mod queue_length;
mod read;
mod seeds;
pub mod settings;
mod topology;
mod workload;

use std::path::PathBuf;

pub use effective_settings::EffectiveSettings;
pub use paths::{Paths, UnloadedTimes};
pub use queue_length::QueueLength;
pub use read::rename_settings;
pub use seeds::{MAX_SEEDS, Seeds};
pub use settings::{Chassis, Emulation, FctEnd, MarkAt, Queue, Settings, SimulationSettings, Switch};
pub use spray_settings::{Axis, AxisValue, ConnectionPath, Document, Error, Ip, Transport};

pub use failure::Convergence;

use self::mistake::in_file;
pub(crate) use self::mistake::parse_file;
use crate::workload::Workload;
use spray_core::cc::{CcKind, CustomCc};
use spray_core::path::{BalancerKind, CustomBalancer};
use spray_fabric::{DrawError, FailureContext, FailureFile, LinkAction, LinkEvent, Network, Thresholds};

/// A checked scenario. Times are ps of scenario time, rates bit/s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    /// Name.
    pub name: String,
    /// The fabric's condition in two or three words; `healthy` without faults.
    pub condition: String,
    /// Root of all random choices: the first of `seeds`.
    pub seed: u64,
    /// Seeds of its runs; at least one.
    pub seeds: Vec<u64>,
    /// Time limit of a run; `None` is [`Scenario::time_limit_ps`]'s default.
    pub time_limit_ps: Option<u64>,
    /// Sampling interval; 0 is off.
    pub sample_ps: u64,
    /// Hosts, switches and links.
    pub network: Network,
    /// Concurrent workloads.
    pub workloads: Vec<Workload>,
    /// Transport of senders and receivers.
    pub transport: Transport,
    /// External algorithms that replace those of the run.
    pub own: CustomAlgorithms,
    /// Queues of every port.
    pub queue: Queue,
    /// Link changes during a run.
    pub link_events: Vec<LinkEvent>,
    /// Default convergence time of routing after a failure; [`u64::MAX`] is never.
    pub convergence_ps: u64,
    /// Settings of the `xdp` engine.
    pub emulation: Emulation,
    /// Settings of the `sim` engine.
    pub simulation: SimulationSettings,
    /// Failures drawn from each run's seed.
    pub failures: Option<Failures>,
    /// Place of the workload in the file, for messages.
    pub workload_place: String,
    /// The settings it was made of.
    pub settings: EffectiveSettings,
}

/// Algorithms of other crates, which have no name in a file; set by programs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CustomAlgorithms {
    /// Balancer of all flows.
    pub balancer: Option<CustomBalancer>,
    /// Congestion control of all connections.
    pub cc: Option<CustomCc>,
}

impl CustomAlgorithms {
    /// Returns the name of the balancer where a scenario has `kind`.
    pub fn balancer_name(&self, kind: BalancerKind) -> &'static str {
        self.balancer.map_or(kind.name(), |own| own.name)
    }

    /// Returns the name of the congestion control where a scenario has `kind`.
    pub fn cc_name(&self, kind: CcKind) -> &'static str {
        self.cc.map_or(kind.name(), |own| own.name)
    }
}

/// Maximum number of runs of a sweep: combinations of values, balancers and seeds.
pub const MAX_RUNS: usize = 10_000;

/// Random failures, drawn from each run's seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failures {
    /// The failures.
    pub file: FailureFile,
    /// Path of the failure file.
    pub source: PathBuf,
    /// Place of each `[[failure]]` in the scenario.
    pub places: Vec<String>,
    /// The condition in a few words.
    pub name: String,
}

impl Failures {
    fn mistake(&self, error: &DrawError) -> Error {
        match error {
            DrawError::Line(error) => in_file(&self.source, error),
            DrawError::Random { index, message } => {
                Error { location: self.places[*index].clone(), message: message.clone() }
            }
        }
    }
}

impl Scenario {
    /// Draws the failures of a run with root `seed` until `until_ps`, besides the link events.
    ///
    /// # Errors
    /// When the fabric has too few such devices, or cannot take as many failures.
    pub fn drawn_failures(&self, seed: u64, until_ps: u64) -> Result<Vec<LinkEvent>, Error> {
        let Some(failures) = &self.failures else { return Ok(Vec::new()) };
        let (network, packet_bytes) = (&self.network, self.packet_bytes());
        let events = failures.file.events(&FailureContext { network, seed, until_ps, packet_bytes });
        events.map_err(|error| failures.mistake(&error))
    }

    fn describe(events: &[LinkEvent], failures: Option<&Failures>) -> String {
        let word = |event: &LinkEvent| match event.action {
            LinkAction::Rate { ppm } => format!("{} at {} % rate", event.name, f64::from(ppm) / 1e4),
            LinkAction::Loss { ppm } => format!("{} loses {} %", event.name, f64::from(ppm) / 1e4),
            action => format!("{} {}", event.name, action.name()),
        };
        let described = match events {
            [] => None,
            [event] => Some(word(event)),
            [first, rest @ ..] => Some(format!("{} and {} more", word(first), rest.len())),
        };
        let parts: Vec<String> = described.into_iter().chain(failures.map(|failures| failures.name.clone())).collect();
        if parts.is_empty() { "healthy".into() } else { parts.join(", ") }
    }

    /// Adds `events`, and updates the condition.
    pub fn add_link_events(&mut self, events: Vec<LinkEvent>) {
        self.link_events.extend(events);
        self.condition = Self::describe(&self.link_events, self.failures.as_ref());
    }
}

impl Queue {
    /// Returns the thresholds in bytes at a port of `rate_bps`; lengths saturate at `u32::MAX`,
    /// which [`Scenario::read`] rejects. The kernel's switch has the limit [`MAX_XDP_QUEUE_BYTES`].
    pub fn config(&self, rate_bps: u64, base_rtt_ps: u64, packet_bytes: u32) -> Thresholds {
        let bytes = |length, limit: u32| match length {
            QueueLength::Bytes(bytes) => bytes.min(u64::from(u32::MAX)) as u32,
            QueueLength::Packets(packets) => clamp(packets * f64::from(packet_bytes)),
            QueueLength::Bdp(bdp) => clamp(bdp * spray_core::link::bdp_bytes(base_rtt_ps, rate_bps) as f64),
            QueueLength::Percent(percent) => clamp(percent / 100.0 * f64::from(limit)),
        };
        let limit_bytes = bytes(self.limit, 0);
        Thresholds {
            limit_bytes,
            mark_min_bytes: if self.marking { bytes(self.mark_min, limit_bytes) } else { u32::MAX },
            mark_max_bytes: if self.marking { bytes(self.mark_max, limit_bytes) } else { u32::MAX },
            control_limit_bytes: bytes(self.control_limit, limit_bytes),
            trim: self.trimming,
            trim_tells_last: self.trim_dscps == 2,
            mark_ppm: self.mark_probability.ppm() as u32,
            mark_departing: self.mark_at == MarkAt::Departure,
            shared_bytes: self.shared_buffer.map_or(0, |buffer| buffer.bytes()),
            alpha_ppm: self.alpha.ppm() as u32,
        }
    }
}

/// Maximum queue of the kernel's switch in bytes; the simulator's is 4 GiB.
pub const MAX_XDP_QUEUE_BYTES: u32 = spray_pipeline::config::MAX_LIMIT_BYTES;

fn clamp(bytes: f64) -> u32 {
    bytes.clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests;
