//! What the fabric's ports counted: over all of them, and by layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{PortCounters, PortOutcome};

use super::field::figures;
use super::statistics::{coefficient_of_variation, jain, max_mean, round3};
use super::{RunResult, grouped};

figures! {
    /// Figures of all ports.
    #[serde(default)]
    FabricFigures;
    /// Frames dropped, for any of the four reasons that follow.
    drops: u64, "drops", "Frames dropped", "frames", 0, Less;
    /// Frames dropped because a queue was full.
    drops_queue: u64, "drops:queue", "Frames dropped at full queues", "frames", 0, Less;
    /// Frames dropped because a link had failed.
    drops_link: u64, "link", "Frames dropped by failed links", "frames", 0, Less;
    /// Frames that lossy links dropped.
    drops_random: u64, "random", "Frames dropped by lossy links", "frames", 0, Less;
    /// Frames dropped because their TTL ran out.
    drops_ttl: u64, "TTL", "Frames dropped for their TTL", "frames", 0, Less;
    /// Frames cut to their headers.
    trims: u64, "trims", "Frames trimmed", "frames", 0, Less;
    /// Frames marked.
    ecn_marks: u64, "marks", "Frames marked", "frames", 0, Neither;
    /// Most bytes at a port of a switch at any time: data and control, the rest of the frame that is being sent included.
    queue_max_bytes: u64, "queue max B", "Longest queue", "bytes", 0, Less;
    /// The time average of the bytes at a port, from the start of the first flow until the sender of the last has its last acknowledgement, or the run
    /// stops; mean over all ports of switches, to switches and to hosts, busy and idle.
    queue_mean_bytes: f64, "queue mean B", "Mean queue", "bytes", 0, Less;
    /// Jain's index over the bytes of the links of a layer between switches: 1 when all carried the same. Of the layer that has the least.
    jain_uplinks: Option<f64>, "Jain uplinks", "Jain's index over the uplinks", "", 3, More;
    /// Max-mean ratio (MMR): bytes of the busiest link of a layer between switches over the mean of its links; 1 is balance. Of the layer that has
    /// the most.
    max_mean_uplinks: Option<f64>, "MMR uplinks", "Max-mean ratio of the uplinks", "", 3, Less;
    /// Coefficient of variation of the bytes of the links of a layer between switches: their standard deviation over their mean. Of the layer that has the most.
    cv_uplinks: Option<f64>, "CV uplinks", "Coefficient of variation of the uplinks", "", 3, Less;
    /// Loss duration at a failure: from the first failure to the last data frame that it dropped. Null where nothing failed or no data was dropped.
    loss_duration_us: Option<f64>, "loss us", "Loss duration at a failure", "us", 1, Less;
}

/// The ports of a layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LayerFigures {
    /// Its name, see [`Network::layers`](spray_fabric::Network::layers).
    pub layer: String,
    /// How many ports it has.
    pub ports: u64,
    /// As `queue_max_bytes` of the run.
    pub queue_max_bytes: u64,
    /// As `queue_mean_bytes` of the run.
    pub queue_mean_bytes: f64,
    /// Bytes of the busiest port above the mean of the ports, in per cent (OFAN §7): 100 times the max-mean ratio less 1.
    pub overload_percent: f64,
}

impl LayerFigures {
    /// The figures of some ports together; 0 of none.
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
        let all = LayerFigures::of("", self.switch_ports());
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

    /// Figures of each layer, in the order of the ports; without hosts' own links.
    pub(super) fn layer_figures(&self) -> Vec<LayerFigures> {
        let is_switch = |port: &PortOutcome| !is_of_host(port);
        self.by_layer(is_switch).map(|(layer, ports)| LayerFigures::of(layer, ports.into_iter())).collect()
    }

    /// Ports for which `is_meant` holds, by layer in the order of the ports.
    fn by_layer(&self, is_meant: impl Fn(&PortOutcome) -> bool) -> impl Iterator<Item = (&str, Vec<&PortOutcome>)> {
        let ports = self.ports.iter().filter(|port| is_meant(port));
        grouped(ports.map(|port| (port.layer.as_str(), port))).into_iter()
    }

    fn switch_ports(&self) -> impl Iterator<Item = &PortOutcome> {
        self.ports.iter().filter(|port| !is_of_host(port))
    }
}

/// Whether it is a host's own link.
fn is_of_host(port: &PortOutcome) -> bool {
    port.layer.starts_with("host->")
}

fn bytes(ports: Vec<&PortOutcome>) -> Vec<f64> {
    ports.into_iter().map(|port| port.counters.bytes as f64).collect()
}
