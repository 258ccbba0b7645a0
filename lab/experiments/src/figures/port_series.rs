//! Time series of the ports that a figure plots.

use serde::{Deserialize, Serialize};
use spray_fabric::{Bin, PortOutcome};

use crate::results::RunResult;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortSeries {
    pub port: String,
    /// (Time in us, rate in Gb/s since the previous sample).
    pub gbps: Vec<(f64, f64)>,
    /// (Time in us, queued bytes).
    pub queue_bytes: Vec<(f64, f64)>,
}

/// Returns the uplinks of a switch over time.
pub(super) fn port_series(run: &RunResult, switch: &str) -> Vec<PortSeries> {
    let from = format!("{switch}->");
    let is_meant = |port: &PortOutcome| port.uplink && port.name.starts_with(&from);
    let of = run.port_samples.iter().filter(|samples| is_meant(&run.ports[samples.port]));
    let lines = of.map(|samples| {
        let times = (1..).map(|bin| (bin * samples.bin_ps) as f64 / 1e6).zip(&samples.bins);
        let gbps = |bin: &Bin| bin.sent_bytes as f64 * 8e3 / samples.bin_ps as f64;
        PortSeries {
            port: run.ports[samples.port].name.clone(),
            gbps: times.clone().map(|(time, bin)| (time, gbps(bin))).collect(),
            queue_bytes: times.map(|(time, bin)| (time, bin.queue_max as f64)).collect(),
        }
    });
    lines.collect()
}
