//! Measures of engines and balancers.

use super::field::figures;
use super::statistics::round3;

figures! {
    /// Measures of the engine: time, late and invalid frames, freezing of balancers.
    #[serde(default)]
    EngineFigures;
    /// Frames discarded as malformed, corrupted or forged.
    invalid_frames: u64, "invalid", "Invalid frames", "frames", 0, Less;
    /// Number of times a balancer entered freezing mode.
    freeze_entries: u64, "freezes", "Freezes", "", 0, Neither;
    /// Share of freezes that began while a link on a shortest path of the connection dropped
    /// everything, or within 10 base RTTs afterwards.
    freeze_precision: Option<f64>, "freeze precision", "Precision of freezing", "", 3, More;
    /// Share of connections that froze, of those that sent for at least 10 base RTTs while a link
    /// on one of their shortest paths dropped everything.
    freeze_recall: Option<f64>, "freeze recall", "Recall of freezing", "", 3, More;
    /// Real time of the run.
    wall_s: f64, "run s", "Real time of the run", "s", 2, Neither;
    /// Ratio of real time to scenario time; 1 for the simulator.
    dilation: f64, "dilation", "Dilation", "", 0, Neither;
    /// Frames that arrived after their virtual time.
    late_packets: u64, "late", "Late frames (0 is exact)", "frames", 0, Less;
    /// Emulation error: 99th percentile of received frames' delay behind virtual time; 0 is exact.
    lateness_p99_us: f64, "lateness p99 us", "Emulation error, 99th percentile", "us", 3, Less;
}

impl EngineFigures {
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
    /// Measures of the simulator itself.
    SimFigures;
    /// Frames put on links, counted once for each link.
    packet_hops: u64, "hops", "Packet-hops", "", 0, Neither;
    /// `packet_hops` per second of real time.
    packet_hops_per_s: f64, "hops/s", "Packet-hops a second", "1/s", 0, Neither;
    /// Peak memory of the process in MB (10^6 bytes), including runs on other threads.
    peak_rss_mb: f64, "RSS MB", "Largest memory", "MB", 0, Neither;
}

figures! {
    /// Measures of priority flow control.
    PfcFigures;
    /// Number of times the sender of a link paused.
    pauses: u64, "pauses", "Pauses", "", 0, Less;
    /// Time for which senders paused, summed over all links.
    paused_us: f64, "paused us", "Time paused", "us", 1, Less;
    /// Time at which a deadlock of paused links was detected.
    deadlock_us: Option<f64>, "deadlock us", "Deadlock at", "us", 1, Neither;
}
