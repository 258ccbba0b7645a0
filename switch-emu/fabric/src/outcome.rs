//! What an engine says of a port after a run.

use spray_pipeline::counters::PortCounters;

/// One port's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortOutcome {
    /// The link's name.
    pub name: String,
    /// Whether it joins two switches.
    pub uplink: bool,
    /// Its full rate.
    pub rate_bps: u64,
    /// What it counted.
    pub counters: PortCounters,
    /// Most bytes that a sample saw waiting.
    pub peak_queue_bytes: u64,
}

/// One port over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSamples {
    /// The port's index among the outcomes.
    pub port: usize,
    /// (time, bytes waiting, bytes sent so far).
    pub samples: Vec<(u64, u64, u64)>,
}
