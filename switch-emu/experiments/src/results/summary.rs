//! The figures of a run that fit on one line: `summary.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_fabric::{FlowHash, HashFields, HashFunction, HashSeed, PortCounters, PortOutcome, Switching};
use spray_settings::AxisValue;

use super::{EntryFigures, FlowResult, ReunionFigures, RunResult, SimFigures, TestbedLosses, WorkloadSummary};

/// The contents of `summary.json`; its field names are its keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// `xdp` or `sim`.
    pub engine: String,
    /// The scenario's name.
    pub scenario: String,
    /// What is wrong with the fabric; `healthy` if nothing is.
    pub condition: String,
    /// The balancer.
    pub balancer: String,
    /// The congestion control.
    pub congestion_control: String,
    /// The switches' scheme, or that of each tier as in `tor=rr,agg=ofan,core=ofan`.
    pub switch: String,
    /// How switches hash, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The root of all random choices.
    pub seed: u64,
    /// The values of the sweep's axes, by the setting's path; only in sweeps that have axes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, AxisValue>,
    /// All flows.
    pub flows_total: u64,
    /// Flows that completed.
    pub flows_completed: u64,
    /// Mean over the completed flows, as all `fct` figures; null when none completed.
    pub fct_mean_us: Option<f64>,
    /// Their median.
    pub fct_p50_us: Option<f64>,
    /// Their 99th percentile.
    pub fct_p99_us: Option<f64>,
    /// The slowest flow's.
    pub fct_max_us: Option<f64>,
    /// From the first start to the last end; null when no flow completed.
    pub makespan_us: Option<f64>,
    /// Payload of the completed flows over the makespan.
    pub goodput_gbps: f64,
    /// Data packets sent, retransmissions among them.
    pub packets_sent: u64,
    /// Data packets sent again.
    pub retransmits: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Frames dropped because a queue was full.
    pub drops_queue: u64,
    /// Frames dropped because a link had failed.
    pub drops_link: u64,
    /// Frames that lossy links dropped.
    pub drops_random: u64,
    /// Frames dropped because their TTL ran out.
    pub drops_ttl: u64,
    /// Frames cut to their headers.
    pub trims: u64,
    /// Frames marked.
    pub ecn_marks: u64,
    /// Most bytes at a port of a switch at any time: data and control, the rest of the frame that is being sent included.
    pub queue_max_bytes: u64,
    /// The time average of these bytes, from the start of the first flow until the sender of the last has its last
    /// acknowledgement, or the run stops; mean over all ports of switches, to switches and to hosts, busy and idle.
    pub queue_mean_bytes: f64,
    /// The same by layer, in the order of the ports.
    pub queue_by_layer: Vec<LayerQueue>,
    /// Data packets that arrived after one with a higher sequence number.
    pub reordered_packets: u64,
    /// Data packets whose sequence number is not one more than that of the packet before.
    pub unexpected_packets: u64,
    /// How many of the reordered packets were 1 place behind the highest number seen, 2 to 3, 4 to 7, and so on.
    pub reordering_degrees: Vec<u64>,
    /// Share of its completion time for which a flow was held back to change its path; mean over the completed flows.
    pub drain_percent_of_fct: f64,
    /// Data packets that arrived more than once.
    pub duplicates: u64,
    /// Frames thrown away as malformed, corrupted or forged.
    pub invalid_frames: u64,
    /// Times that a balancer entered freezing mode.
    pub freeze_entries: u64,
    /// Share of all freezes while a link on one of the connection's shortest paths dropped everything, or within 10 base RTTs afterwards.
    pub freeze_precision: Option<f64>,
    /// Of the connections that sent for 10 base RTTs or longer while such a link dropped everything, the share that froze.
    pub freeze_recall: Option<f64>,
    /// From the first failure to the last data frame that it dropped; none where nothing failed or no data was dropped.
    pub recovery_us: Option<f64>,
    /// Figures of each workload.
    pub workloads: Vec<WorkloadSummary>,
    /// Real time that the run took, in seconds.
    pub wall_s: f64,
    /// How many times slower than scenario time the machine ran; 1 for the simulator.
    pub dilation: f64,
    /// Frames that arrived after their virtual time.
    pub late_packets: u64,
    /// 99th percentile, over all received frames, of how far behind their virtual time they were.
    pub lateness_p99_us: f64,
    /// Whether every delivered message was the message sent, byte for byte. Not there where no payload is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_verified: Option<bool>,
    /// Frames that the testbed itself lost, by place: more than zero makes the run doubtful.
    pub testbed_losses: TestbedLosses,
    /// Figures that only the simulator has; other runs lack these keys.
    #[serde(flatten)]
    pub sim: Option<SimFigures>,
    /// Figures of switches that keep entries for flows; other runs lack these keys.
    #[serde(flatten)]
    pub entries: Option<EntryFigures>,
    /// Figures of switches with Reunion; other runs lack these keys.
    #[serde(flatten)]
    pub reunion: Option<ReunionFigures>,
}

/// How switches hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hash {
    /// By which function.
    pub function: HashFunction,
    /// What of a packet.
    pub fields: HashFields,
    /// Which of them with the same seed.
    pub seed: HashSeed,
}

impl Hash {
    /// That of these switches; `None` if it is the default.
    fn of(switching: &Switching) -> Option<Self> {
        let FlowHash { function, fields } = switching.hash;
        Some(Self { function, fields, seed: switching.hash_seed }).filter(|hash| *hash != Self::default())
    }
}

/// The queues of a layer's ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerQueue {
    /// Its name, see [`Network::layers`](spray_fabric::Network::layers).
    pub layer: String,
    /// How many ports it has.
    pub ports: u64,
    /// As `queue_max_bytes` of the run.
    pub max_bytes: u64,
    /// As `queue_mean_bytes` of the run.
    pub mean_bytes: f64,
}

impl LayerQueue {
    /// The queues of some ports together; 0 of none.
    fn of<'a>(layer: &str, ports: impl Iterator<Item = &'a PortOutcome>) -> Self {
        let (mut own, mut sum) = (Self { layer: layer.into(), ..Self::default() }, 0.0);
        for port in ports {
            (own.ports, own.max_bytes) = (own.ports + 1, own.max_bytes.max(port.counters.queue_max));
            sum += port.queue_mean_bytes;
        }
        Self { mean_bytes: round3(sum / own.ports.max(1) as f64), ..own }
    }
}

impl Summary {
    /// Whether every flow completed with the payload that was sent. Where none is carried it is enough that every flow completed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.flows_completed == self.flows_total && self.payload_verified != Some(false)
    }
}

impl RunResult {
    /// The figures of the run.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let fcts = self.sorted_fcts();
        let ports = |count: fn(&PortCounters) -> u64| self.ports.iter().map(|port| count(&port.counters)).sum::<u64>();
        let queues = LayerQueue::of("", self.switch_ports());
        Summary {
            engine: self.engine.clone(),
            scenario: self.scenario.clone(),
            condition: self.condition.clone(),
            balancer: self.balancer.clone(),
            congestion_control: self.congestion_control.clone(),
            switch: self.switching.to_string(),
            hash: Hash::of(&self.switching),
            seed: self.seed,
            axes: self.axes.iter().map(|axis| (axis.path.clone(), axis.value.clone())).collect(),
            flows_total: self.flows.len() as u64,
            flows_completed: fcts.len() as u64,
            fct_mean_us: of_some(&fcts, mean),
            fct_p50_us: of_some(&fcts, |fcts| percentile(fcts, 0.50)),
            fct_p99_us: of_some(&fcts, |fcts| percentile(fcts, 0.99)),
            fct_max_us: of_some(&fcts, |fcts| percentile(fcts, 1.0)),
            makespan_us: of_some(&fcts, |_| self.makespan_us()),
            goodput_gbps: round3(goodput_gbps(self.flows.iter())),
            packets_sent: self.transport.packets_sent,
            retransmits: self.transport.retransmits,
            timeouts: self.transport.timeouts,
            drops_queue: ports(|p| p.drops_queue),
            drops_link: ports(PortCounters::drops_link),
            drops_random: ports(|p| p.drops_random),
            drops_ttl: ports(|p| p.drops_ttl),
            trims: ports(|p| p.trims),
            ecn_marks: ports(|p| p.marks),
            queue_max_bytes: queues.max_bytes,
            queue_mean_bytes: queues.mean_bytes,
            queue_by_layer: self.queue_by_layer(),
            reordered_packets: self.transport.reordered_packets,
            unexpected_packets: self.transport.unexpected_packets,
            reordering_degrees: self.transport.reordering_degrees.counts().to_vec(),
            drain_percent_of_fct: round3(self.drain_percent()),
            duplicates: self.transport.duplicates,
            invalid_frames: self.transport.invalid_frames,
            freeze_entries: self.transport.freeze_entries,
            freeze_precision: self.freezing.precision.map(round3),
            freeze_recall: self.freezing.recall.map(round3),
            recovery_us: self.recovery_us.map(round3),
            workloads: self.workloads(),
            wall_s: round3(self.wall_s),
            dilation: self.dilation,
            late_packets: self.late_packets,
            lateness_p99_us: round3(self.lateness_p99_us),
            payload_verified: self.payload_verified,
            testbed_losses: self.testbed_losses,
            sim: self.sim,
            entries: self.entries,
            reunion: self.reunion,
        }
    }

    fn queue_by_layer(&self) -> Vec<LayerQueue> {
        let mut layers: Vec<&str> = Vec::new();
        for port in self.switch_ports() {
            if !layers.contains(&port.layer.as_str()) {
                layers.push(&port.layer);
            }
        }
        let own = |layer: &&str| LayerQueue::of(layer, self.switch_ports().filter(|port| port.layer == *layer));
        layers.iter().map(own).collect()
    }

    /// The ports without hosts' own links.
    fn switch_ports(&self) -> impl Iterator<Item = &PortOutcome> {
        self.ports.iter().filter(|port| !port.layer.starts_with("host->"))
    }

    /// The completed flows' completion times, ascending.
    #[must_use]
    pub fn sorted_fcts(&self) -> Vec<f64> {
        sorted_fcts(self.flows.iter())
    }

    /// Time from the first flow's start to the last completed flow's end; 0 when none completed.
    #[must_use]
    pub fn makespan_us(&self) -> f64 {
        makespan_us(self.flows.iter())
    }

    fn drain_percent(&self) -> f64 {
        let share = |f: &FlowResult| Some(100.0 * f.drained_us / f.fct_us.filter(|fct| *fct > 0.0)?);
        let shares: Vec<f64> = self.flows.iter().filter_map(share).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}

/// See [`RunResult::sorted_fcts`].
pub(super) fn sorted_fcts<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> Vec<f64> {
    let mut fcts: Vec<f64> = flows.filter_map(|f| f.fct_us).collect();
    fcts.sort_by(f64::total_cmp);
    fcts
}

/// See [`RunResult::makespan_us`].
pub(super) fn makespan_us<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone) -> f64 {
    let start = flows.clone().map(|f| f.start_us).fold(f64::INFINITY, f64::min);
    let end = flows.filter_map(|f| f.end_us).fold(f64::NEG_INFINITY, f64::max);
    if end > start { end - start } else { 0.0 }
}

/// Payload of the completed flows over their makespan, in Gb/s.
pub(super) fn goodput_gbps<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone) -> f64 {
    let bytes = flows.clone().filter(|f| f.fct_us.is_some()).map(|f| f.bytes).sum();
    gbps(bytes, makespan_us(flows))
}

/// Bytes over microseconds as Gb/s; 0 over no time.
pub(crate) fn gbps(bytes: u64, time_us: f64) -> f64 {
    if time_us > 0.0 { bytes as f64 * 8.0 / (time_us * 1e3) } else { 0.0 }
}

/// A figure of `values`, rounded; `None` of no values.
pub(super) fn of_some(values: &[f64], figure: impl FnOnce(&[f64]) -> f64) -> Option<f64> {
    (!values.is_empty()).then(|| round3(figure(values)))
}

/// The mean of some values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Nearest-rank percentile of ascending values; `share` in 0..=1, 0.0 for no values.
pub(crate) fn percentile(ascending: &[f64], share: f64) -> f64 {
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Rounds to nanoseconds.
pub(crate) fn round3(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
