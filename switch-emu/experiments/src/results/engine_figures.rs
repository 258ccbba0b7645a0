//! What engines, balancers and switches say of a run beside flows and ports.

use spray_pipeline::scheme::{Entries, conweave, reunion};

use super::measures::figures;
use super::statistics::round3;

figures! {
    /// What the engine says of a run: its time, how late frames were, what was invalid, how balancers froze.
    #[serde(default)]
    EngineFigures as MEASURES, run |run| Some(run.engine_figures), workload None;
    /// Frames thrown away as malformed, corrupted or forged.
    invalid_frames: u64, "invalid", "Invalid frames", "frames", 0, Less;
    /// Times that a balancer entered freezing mode.
    freeze_entries: u64, "freezes", "Freezes", "", 0, Neither;
    /// Share of all freezes while a link on one of the connection's shortest paths dropped everything, or within 10 base RTTs afterwards.
    freeze_precision: Option<f64>, "freeze precision", "Precision of freezing", "", 3, More;
    /// Of the connections that sent for 10 base RTTs or longer while a link on a shortest path of theirs dropped everything, the share that froze.
    freeze_recall: Option<f64>, "freeze recall", "Recall of freezing", "", 3, More;
    /// Real time that the run took.
    wall_s: f64, "run s", "Real time of the run", "s", 2, Neither;
    /// How many times slower than scenario time the machine ran; 1 for the simulator.
    dilation: f64, "dilation", "Dilation", "", 0, Neither;
    /// Frames that arrived after their virtual time.
    late_packets: u64, "late", "Late frames", "frames", 0, Less;
    /// 99th percentile, over all received frames, of how far behind their virtual time they were; 0 of punctual ones.
    lateness_p99_us: f64, "lateness p99 us", "99th percentile of the lateness", "us", 3, Less;
}

impl EngineFigures {
    /// With three digits behind the point.
    pub(super) fn rounded(self) -> Self {
        Self {
            freeze_precision: self.freeze_precision.map(round3),
            freeze_recall: self.freeze_recall.map(round3),
            wall_s: round3(self.wall_s),
            lateness_p99_us: round3(self.lateness_p99_us),
            ..self
        }
    }
}

figures! {
    /// The simulator's figures about itself.
    SimFigures as MEASURES, run |run| run.sim, workload None;
    /// Frames put on links; a frame counts once for each link.
    packet_hops: u64, "hops", "Packet-hops", "", 0, Neither;
    /// `packet_hops` per second of real time.
    packet_hops_per_s: f64, "hops/s", "Packet-hops a second", "1/s", 0, Neither;
    /// Most memory that the process has held so far, in MB (10^6 bytes). It includes that of runs on other threads.
    peak_rss_mb: f64, "RSS MB", "Largest memory", "MB", 0, Neither;
}

figures! {
    /// What priority flow control did.
    PfcFigures as MEASURES, run |run| run.pfc, workload None;
    /// How often the sender of a link paused.
    pauses: u64, "pauses", "Pauses", "", 0, Less;
    /// For how long senders of links paused, over all links.
    paused_us: f64, "paused us", "Time paused", "us", 1, Less;
    /// When links were found that wait for each other.
    deadlock_us: Option<f64>, "deadlock us", "Deadlock at", "us", 1, Neither;
}

figures! {
    /// How full the switches' tables of flows became.
    EntryFigures as MEASURES, run |run| run.entries, workload None;
    /// Flows that had something on their way through one switch at once, at most; see `spray flowcut-memory`.
    flowcut_entries: u64, "entries", "Entries of Flowcut in a switch", "", 0, Less;
    /// Packets that passed without an entry, for want of one.
    flowcut_entries_missing: u64, "no entry", "Packets without an entry of Flowcut", "packets", 0, Less;
}

impl From<Entries> for EntryFigures {
    fn from(entries: Entries) -> Self {
        Self { flowcut_entries: entries.most, flowcut_entries_missing: entries.missing }
    }
}

figures! {
    /// What switches with Reunion did.
    ReunionFigures as MEASURES, run |run| run.reunion, workload None;
    /// Flows that Reunion gave another path.
    rerouted: u64, "rerouted", "Flows rerouted by Reunion", "", 0, Neither;
    /// Flows that Reunion was to give another path, and for which there was none.
    stuck: u64, "stuck", "Flows that Reunion could not reroute", "", 0, Less;
    /// Notifications of Reunion sent.
    notified: u64, "notified", "Notifications of Reunion", "", 0, Neither;
}

impl From<reunion::Counts> for ReunionFigures {
    fn from(reunion::Counts { rerouted, stuck, notified }: reunion::Counts) -> Self {
        Self { rerouted, stuck, notified }
    }
}

figures! {
    /// What switches with ConWeave did.
    ConWeaveFigures as MEASURES, run |run| run.conweave, workload None;
    /// Flows that ConWeave gave another path.
    conweave_rerouted: u64, "rerouted", "Flows rerouted by ConWeave", "", 0, Neither;
    /// Packets that a switch held.
    conweave_held: u64, "held", "Packets held by ConWeave", "packets", 0, Neither;
    /// Bytes that one switch held at most at once.
    conweave_held_bytes: u64, "held B", "Bytes held by a switch with ConWeave", "bytes", 0, Less;
    /// Reordering queues that one switch used at most at once.
    conweave_queues: u64, "held queues", "Reordering queues of a switch with ConWeave", "", 0, Less;
    /// Queues given up because their TAIL did not come in time.
    conweave_timeouts: u64, "held timeouts", "Reordering queues of ConWeave given up", "", 0, Less;
    /// Packets that were to be held, and for which there was no queue.
    conweave_no_queue: u64, "no queue", "Packets without a queue of ConWeave", "packets", 0, Less;
    /// Queues given up for want of memory.
    conweave_no_memory: u64, "no memory", "Queues of ConWeave without memory", "", 0, Less;
    /// Packets of flows for which a table had no entry left.
    conweave_no_entry: u64, "no entry", "Packets without an entry of ConWeave", "packets", 0, Less;
    /// Frames that switches sent each other: RTT_REPLY, CLEAR and NOTIFY.
    conweave_control: u64, "control", "Control frames of ConWeave", "frames", 0, Neither;
}

impl From<conweave::Counts> for ConWeaveFigures {
    fn from(counts: conweave::Counts) -> Self {
        Self {
            conweave_rerouted: counts.rerouted,
            conweave_held: counts.held,
            conweave_held_bytes: counts.held_bytes,
            conweave_queues: counts.queues,
            conweave_timeouts: counts.timeouts,
            conweave_no_queue: counts.no_queue,
            conweave_no_memory: counts.no_memory,
            conweave_no_entry: counts.no_entry,
            conweave_control: counts.replies + counts.clears + counts.notifies,
        }
    }
}
