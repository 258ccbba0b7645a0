//! Counters of the fabric's ports, in total and by layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{PortCounters, PortOutcome};

use super::field::figures;
use super::statistics::{coefficient_of_variation, jain, max_mean, round3};
use super::{RunResult, grouped};

figures! {
    /// Measures of all ports.
    #[serde(default)]
    FabricFigures;
    /// Frames dropped for any of the four reasons that follow.
    drops: u64, "drops", "Frames dropped", "frames", 0, Less;
    /// Frames dropped at full queues.
    drops_queue: u64, "drops:queue", "Frames dropped at full queues", "frames", 0, Less;
    /// Frames dropped by failed links.
    drops_link: u64, "link", "Frames dropped by failed links", "frames", 0, Less;
    /// Frames dropped at random by lossy links.
    drops_random: u64, "random", "Frames dropped by lossy links", "frames", 0, Less;
    /// Frames dropped because their TTL expired.
    drops_ttl: u64, "TTL", "Frames dropped for their TTL", "frames", 0, Less;
    /// Frames trimmed to their headers.
    trims: u64, "trims", "Frames trimmed", "frames", 0, Less;
    /// Frames marked (ECN).
    ecn_marks: u64, "marks", "Frames marked", "frames", 0, Neither;
    /// Maximum bytes at a port of a switch: data and control, with the frame being sent.
    queue_max_bytes: u64, "queue max B", "Longest queue", "bytes", 0, Less;
    /// Time average of the bytes at a port, from the first start until the last flow's last
    /// acknowledgement or the end of the run; mean over all ports of switches, busy and idle.
    queue_mean_bytes: f64, "queue mean B", "Mean queue", "bytes", 0, Less;
    /// Jain's index of the links' bytes, in the least balanced layer between switches; 1 is
    /// balanced.
    jain_uplinks: Option<f64>, "Jain uplinks", "Jain's index over the uplinks", "", 3, More;
    /// Max-mean ratio (MMR) of the links' bytes, in the least balanced layer; 1 is balanced.
    max_mean_uplinks: Option<f64>, "MMR uplinks", "Max-mean ratio of the uplinks", "", 3, Less;
    /// Coefficient of variation of the links' bytes, in the least balanced layer.
    cv_uplinks: Option<f64>, "CV uplinks", "Coefficient of variation of the uplinks", "", 3, Less;
    /// Time from the first failure to the last data frame that it dropped; null without drops.
    loss_duration_us: Option<f64>, "loss us", "Loss duration at a failure", "us", 1, Less;
}

/// Measures of a layer's ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LayerFigures {
    /// Name, see [`Network::layers`](spray_fabric::Network::layers).
    pub layer: String,
    /// Number of ports.
    pub ports: u64,
    /// `queue_max_bytes` over these ports.
    pub queue_max_bytes: u64,
    /// `queue_mean_bytes` over these ports.
    pub queue_mean_bytes: f64,
    /// Excess of the busiest port's bytes over the mean in per cent (OFAN §7).
    pub overload_percent: f64,
}

impl LayerFigures {
    fn of<'a>(layer: &str, ports: impl Iterator<Item = &'a PortOutcome>) -> Self {
        let (mut own, mut sum, mut bytes) = (Self { layer: layer.into(), ..Self::default() }, 0.0, Vec::new());
        for port in ports {
            (own.ports, own.queue_max_bytes) = (own.ports + 1, own.queue_max_bytes.max(port.counters.queue_max));
            sum += port.queue_mean_bytes;
            bytes.push(port.counters.bytes as f64);
        }
        let overload_percent = max_mean(&bytes).map_or(0.0, |ratio| round3(100.0 * (ratio - 1.0)));
        Self { queue_mean_bytes: round3(sum / own.ports.max(1) as f64), overload_percent, ..own }
    }
}

impl RunResult {
    pub(super) fn fabric_figures(&self) -> FabricFigures {
        let sum = |count: fn(&PortCounters) -> u64| self.ports.iter().map(|port| count(&port.counters)).sum::<u64>();
        let all = LayerFigures::of("", self.ports.iter().filter(|port| !is_of_host(port)));
        let bytes = |ports: Vec<&PortOutcome>| ports.iter().map(|port| port.counters.bytes as f64).collect();
        let uplinks: Vec<Vec<f64>> = self.by_layer(|port| port.uplink).map(|(_, ports)| bytes(ports)).collect();
        let of_layers = |of: fn(&[f64]) -> Option<f64>| uplinks.iter().filter_map(move |bytes| of(bytes));
        let [queue, link] = [sum(|p| p.drops_queue), sum(PortCounters::drops_link)];
        let [random, ttl] = [sum(|p| p.drops_random), sum(|p| p.drops_ttl)];
        FabricFigures {
            drops: queue + link + random + ttl,
            drops_queue: queue,
            drops_link: link,
            drops_random: random,
            drops_ttl: ttl,
            trims: sum(|p| p.trims),
            ecn_marks: sum(|p| p.marks),
            queue_max_bytes: all.queue_max_bytes,
            queue_mean_bytes: all.queue_mean_bytes,
            jain_uplinks: of_layers(|bytes| jain(bytes.iter().copied())).min_by(f64::total_cmp).map(round3),
            max_mean_uplinks: of_layers(max_mean).max_by(f64::total_cmp).map(round3),
            cv_uplinks: of_layers(coefficient_of_variation).max_by(f64::total_cmp).map(round3),
            loss_duration_us: self.loss_duration_us.map(round3),
        }
    }

    /// Returns the measures of each layer of switches' ports, in the order of the ports.
    pub(super) fn layer_figures(&self) -> Vec<LayerFigures> {
        let layers = self.by_layer(|port| !is_of_host(port));
        layers.map(|(layer, ports)| LayerFigures::of(layer, ports.into_iter())).collect()
    }

    /// Groups the ports for which `is_meant` holds by layer, in the order of the ports.
    fn by_layer(&self, is_meant: impl Fn(&PortOutcome) -> bool) -> impl Iterator<Item = (&str, Vec<&PortOutcome>)> {
        let ports = self.ports.iter().filter(|port| is_meant(port));
        grouped(ports.map(|port| (port.layer.as_str(), port))).into_iter()
    }
}

fn is_of_host(port: &PortOutcome) -> bool {
    port.layer.starts_with("host->")
}
