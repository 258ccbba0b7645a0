//! Scenarios: TOML files, checked and converted to the project's units.
//!
//! [`settings`] declares every field once. [`Scenario::load`] reads a file; [`Scenario::read`] takes a file with assignments
//! that replace parts of it. Every mistake is a [`Mistake`] with its place and what is allowed there.

/// Gives a type the schema that stands wherever it is used.
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

mod failure;
mod limits;
mod link_event;
mod mistake;
mod paths;
mod queue_length;
mod read;
mod seeds;
pub mod settings;
mod topology;
mod workload;
mod written;

use std::path::PathBuf;

pub use paths::{Alone, Paths};
pub use queue_length::QueueLength;
pub use seeds::{MAX_SEEDS, Seeds};
pub use settings::{Chassis, Emulation, FctEnd, MarkAt, Queue, Settings, SimulationSettings, Switch};
pub use spray_settings::{Axis, AxisValue, ConnectionPath, Document, Ip, Mistake, Transport};
pub use written::Written;

pub use failure::Convergence;

use self::mistake::in_file;
use crate::workload::Workload;
use spray_core::cc::{CcKind, OwnCc};
use spray_core::path::{BalancerKind, OwnBalancer};
use spray_fabric::{DrawError, FailureContext, FailureFile, LinkAction, LinkEvent, Network, Thresholds};

/// A checked scenario. Times are ps of scenario time, rates bits a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What is wrong with the fabric, in two or three words; `healthy` if nothing is.
    pub condition: String,
    /// Root of every random choice: the first of `seeds`.
    pub seed: u64,
    /// The seeds that it is to be run with; at least one.
    pub seeds: Vec<u64>,
    /// When a run is stopped; `None` is [`Scenario::time_limit_ps`]'s default.
    pub time_limit_ps: Option<u64>,
    /// Time between samples; 0 takes none.
    pub sample_ps: u64,
    /// Hosts, switches and links.
    pub network: Network,
    /// Who sends what to whom, all at once.
    pub workloads: Vec<Workload>,
    /// How senders and receivers work.
    pub transport: Transport,
    /// Algorithms of other crates, in place of those of the run.
    pub own: OwnAlgorithms,
    /// The queues of every port.
    pub queue: Queue,
    /// Changes of links during a run.
    pub link_events: Vec<LinkEvent>,
    /// How long routing takes to learn of a failure that does not say so itself; [`u64::MAX`] is for ever.
    pub convergence_ps: u64,
    /// Settings of the `xdp` engine.
    pub emulation: Emulation,
    /// Settings that only the `sim` engine has.
    pub simulation: SimulationSettings,
    /// Failures that each run draws from its seed.
    pub failures: Option<Failures>,
    /// Where the workload stands, for messages.
    pub workload_place: String,
    /// The settings that it was made of.
    pub written: Written,
}

/// Algorithms of other crates, which have no name in a file. A program that reads a scenario puts them there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnAlgorithms {
    /// Chooses the paths of all packets.
    pub balancer: Option<OwnBalancer>,
    /// Controls the congestion of all connections.
    pub cc: Option<OwnCc>,
}

impl OwnAlgorithms {
    /// The name of what chooses paths where a scenario says `kind`.
    pub fn balancer_name(&self, kind: BalancerKind) -> &'static str {
        self.balancer.map_or(kind.name(), |own| own.name)
    }

    /// The name of what controls congestion where a scenario says `kind`.
    pub fn cc_name(&self, kind: CcKind) -> &'static str {
        self.cc.map_or(kind.name(), |own| own.name)
    }
}

/// Most runs of a sweep: combinations of values, balancers and seeds.
pub const MAX_RUNS: usize = 10_000;

/// Failures: each run draws from its own seed which devices fail.
#[derive(Debug, Clone, PartialEq)]
pub struct Failures {
    /// What fails.
    pub file: FailureFile,
    /// The file that says so.
    pub source: PathBuf,
    /// Where each random failure stands in the scenario.
    pub places: Vec<String>,
    /// The condition in a few words.
    pub name: String,
}

impl Failures {
    /// The mistake that makes the draw impossible, with its place.
    fn mistake(&self, error: &DrawError) -> Mistake {
        match error {
            DrawError::Line(error) => in_file(&self.source, error),
            DrawError::Random { index, message } => {
                Mistake { place: self.places[*index].clone(), message: message.clone() }
            }
        }
    }
}

impl Scenario {
    /// The failures that a run with root `seed` and an end at `until_ps` draws, in addition to the link events.
    ///
    /// # Errors
    /// There are more than the fabric takes, or fewer devices than are to fail.
    pub fn drawn_failures(&self, seed: u64, until_ps: u64) -> Result<Vec<LinkEvent>, Mistake> {
        let Some(failures) = &self.failures else { return Ok(Vec::new()) };
        let (network, packet_bytes) = (&self.network, self.packet_bytes());
        let events = failures.file.events(&FailureContext { network, seed, until_ps, packet_bytes });
        events.map_err(|error| failures.mistake(&error))
    }

    /// The condition in a few words, from link events and drawn failures.
    fn describe(events: &[LinkEvent], failures: Option<&Failures>) -> String {
        let word = |event: &LinkEvent| match event.action {
            LinkAction::Rate { ppm } => format!("{} at {} % rate", event.name, f64::from(ppm) / 1e4),
            LinkAction::Loss { ppm } => format!("{} loses {} %", event.name, f64::from(ppm) / 1e4),
            action => format!("{} {}", event.name, action.name()),
        };
        let told = match events {
            [] => None,
            [event] => Some(word(event)),
            [first, rest @ ..] => Some(format!("{} and {} more", word(first), rest.len())),
        };
        let parts: Vec<String> = told.into_iter().chain(failures.map(|failures| failures.name.clone())).collect();
        if parts.is_empty() { "healthy".into() } else { parts.join(", ") }
    }

    /// Adds `events`, and names the condition after all events.
    pub fn add_link_events(&mut self, events: Vec<LinkEvent>) {
        self.link_events.extend(events);
        self.condition = Self::describe(&self.link_events, self.failures.as_ref());
    }
}

impl Queue {
    /// The thresholds in bytes, at a port of `rate_bps` in a fabric with longest RTT `base_rtt_ps` and full packets of
    /// `packet_bytes`. A length of 4 GiB or more is `u32::MAX`, which [`Scenario::read`] refuses. The kernel's switch holds less:
    /// [`MAX_XDP_QUEUE_BYTES`].
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

/// Largest queue of the kernel's switch in bytes. A queue of the simulator may have up to 4 GiB.
pub const MAX_XDP_QUEUE_BYTES: u32 = spray_pipeline::config::MAX_LIMIT_BYTES;

fn clamp(bytes: f64) -> u32 {
    bytes.clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests;
