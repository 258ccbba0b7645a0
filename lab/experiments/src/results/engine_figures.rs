//! What engines and balancers say of a run beside flows and ports.

use super::field::figures;
use super::statistics::round3;

figures! {
    /// What the engine says of a run: its time, how late frames were, what was invalid, how balancers froze.
    #[serde(default)]
    EngineFigures;
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
    late_packets: u64, "late", "Late frames (0 is exact)", "frames", 0, Less;
    /// Emulation error: 99th percentile, over all received frames, of how far behind their virtual time they came; 0 is exact.
    lateness_p99_us: f64, "lateness p99 us", "Emulation error, 99th percentile", "us", 3, Less;
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
    SimFigures;
    /// Frames put on links; a frame counts once for each link.
    packet_hops: u64, "hops", "Packet-hops", "", 0, Neither;
    /// `packet_hops` per second of real time.
    packet_hops_per_s: f64, "hops/s", "Packet-hops a second", "1/s", 0, Neither;
    /// Most memory that the process has held so far, in MB (10^6 bytes). It includes that of runs on other threads.
    peak_rss_mb: f64, "RSS MB", "Largest memory", "MB", 0, Neither;
}

figures! {
    /// What priority flow control did.
    PfcFigures;
    /// How often the sender of a link paused.
    pauses: u64, "pauses", "Pauses", "", 0, Less;
    /// For how long senders of links paused, over all links.
    paused_us: f64, "paused us", "Time paused", "us", 1, Less;
    /// When links were found that wait for each other.
    deadlock_us: Option<f64>, "deadlock us", "Deadlock at", "us", 1, Neither;
}
