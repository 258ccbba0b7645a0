//! What an endpoint counts.

use hdrhistogram::Histogram;
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_wire::Body;

/// Frames by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindCounts {
    /// Data, retransmissions and trimmed frames included.
    pub data: u64,
    /// Acknowledgements.
    pub ack: u64,
    /// Negative acknowledgements of trimmed frames.
    pub nack: u64,
    /// Connection requests.
    pub connect: u64,
    /// Answers to them.
    pub accept: u64,
    /// Closes and their acknowledgements.
    pub close: u64,
    /// Resets.
    pub reset: u64,
    /// Probes and keep-alives.
    pub probe: u64,
    /// Answers to them.
    pub probe_ack: u64,
    /// Credit from receivers.
    pub pull: u64,
    /// Requests for it.
    pub pull_request: u64,
}

impl KindCounts {
    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { data, ack, nack, connect, accept, close, reset, probe, probe_ack, pull, pull_request } = self;
        data + ack + nack + connect + accept + close + reset + probe + probe_ack + pull + pull_request
    }

    pub(crate) fn count(&mut self, body: &Body) {
        let counter = match body {
            Body::Data(_) => &mut self.data,
            Body::Ack(_) => &mut self.ack,
            Body::Nack(_) => &mut self.nack,
            Body::Connect(_) => &mut self.connect,
            Body::Accept(_) => &mut self.accept,
            Body::Close(_) => &mut self.close,
            Body::Reset(_) => &mut self.reset,
            Body::Probe(_) => &mut self.probe,
            Body::ProbeAck(_) => &mut self.probe_ack,
            Body::Pull(_) => &mut self.pull,
            Body::PullRequest(_) => &mut self.pull_request,
        };
        *counter += 1;
    }
}

/// What an endpoint has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Frames put on the link.
    pub sent: KindCounts,
    /// Frames that parsed, whether or not they were accepted.
    pub received: KindCounts,
    /// Data frames received that a switch had trimmed.
    pub trimmed: u64,
    /// Arrivals that are not of this protocol.
    pub not_ours: u64,
    /// Arrivals for another address.
    pub wrong_address: u64,
    /// Arrivals too short, too long or of an unknown version or kind.
    pub malformed: u64,
    /// Arrivals whose header or payload checksum does not match.
    pub checksum: u64,
    /// Arrivals for a connection that this endpoint does not have.
    pub unknown_connection: u64,
    /// Arrivals for a connection of ours with another cookie, or from another address than its peer's.
    pub wrong_cookie: u64,
    /// Arrivals of a kind that the connection's state has no use for.
    pub unexpected: u64,
    /// Data that had arrived before.
    pub duplicates: u64,
    /// Data beyond the window or the flow-control limit.
    pub out_of_window: u64,
    /// Data whose message, offset or length contradict each other or what arrived before.
    pub invalid: u64,
    /// Connection requests refused, as the table was full or accepting is off.
    pub refused: u64,
    /// Half-open connections given up to make room for another.
    pub half_open_evicted: u64,
    /// Half-open connections whose peer never proved its address.
    pub half_open_expired: u64,
    /// Resets and refusals not sent because of their rate limit.
    pub reset_limited: u64,
    /// Frames handled after their virtual time had passed for this host; see [`Lateness`].
    pub late: u64,
    /// Frames that arrived after their virtual time by the clock, late or not.
    pub overdue: u64,
    /// Frames dropped because their virtual time was too far ahead.
    pub too_early: u64,
    /// Arrivals dropped because no more could be held; a testbed loss.
    pub hold_overflow: u64,
    /// Control frames lost because the device had no frame free or no room; a testbed loss.
    pub control_dropped: u64,
    /// Times that data had to wait because the device had no frame free or no room.
    pub transmit_stalls: u64,
    /// Errors of the device on receiving or flushing; the interface is down or gone.
    pub device_errors: u64,
    /// Entries that the event log had no room for.
    pub log_overflow: u64,
}

impl EndpointStats {
    /// Every counter with its name, for metrics and reports: `sent_data`, `received_data`, ..., then the fields' own names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = |names: [&'static str; 11], counts: &KindCounts| {
            let KindCounts { data, ack, nack, connect, accept, close, reset, probe, probe_ack, pull, pull_request } =
                *counts;
            let counts = [data, ack, nack, connect, accept, close, reset, probe, probe_ack, pull, pull_request];
            std::iter::zip(names, counts)
        };
        let sent = kinds(SENT_NAMES, &self.sent);
        sent.chain(kinds(RECEIVED_NAMES, &self.received)).chain(self.causes())
    }

    fn causes(&self) -> [(&'static str, u64); 23] {
        [
            ("trimmed", self.trimmed),
            ("not_ours", self.not_ours),
            ("wrong_address", self.wrong_address),
            ("malformed", self.malformed),
            ("checksum", self.checksum),
            ("unknown_connection", self.unknown_connection),
            ("wrong_cookie", self.wrong_cookie),
            ("unexpected", self.unexpected),
            ("duplicates", self.duplicates),
            ("out_of_window", self.out_of_window),
            ("invalid", self.invalid),
            ("refused", self.refused),
            ("half_open_evicted", self.half_open_evicted),
            ("half_open_expired", self.half_open_expired),
            ("reset_limited", self.reset_limited),
            ("late", self.late),
            ("overdue", self.overdue),
            ("too_early", self.too_early),
            ("hold_overflow", self.hold_overflow),
            ("control_dropped", self.control_dropped),
            ("transmit_stalls", self.transmit_stalls),
            ("device_errors", self.device_errors),
            ("log_overflow", self.log_overflow),
        ]
    }
}

const SENT_NAMES: [&str; 11] = [
    "sent_data",
    "sent_ack",
    "sent_nack",
    "sent_connect",
    "sent_accept",
    "sent_close",
    "sent_reset",
    "sent_probe",
    "sent_probe_ack",
    "sent_pull",
    "sent_pull_request",
];

const RECEIVED_NAMES: [&str; 11] = [
    "received_data",
    "received_ack",
    "received_nack",
    "received_connect",
    "received_accept",
    "received_close",
    "received_reset",
    "received_probe",
    "received_probe_ack",
    "received_pull",
    "received_pull_request",
];

/// Counters of one connection.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// What its sender counted.
    pub sender: SenderStats,
    /// What its receiver counted.
    pub receiver: ReceiverStats,
    /// The sender's window in bytes.
    pub window_bytes: u64,
    /// Bytes on their way.
    pub in_flight_bytes: u64,
}

/// How late the late frames were, in picoseconds of scenario time.
#[derive(Debug, Clone)]
pub struct Lateness {
    histogram: Histogram<u64>,
    frames: u64,
}

impl Lateness {
    /// Longest lateness told apart: 10 s of scenario time; longer ones count as that.
    const MAX_PS: u64 = 10_000_000_000_000;

    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::MAX_PS, 2).expect("constant bounds are valid");
        Self { histogram, frames: 0 }
    }

    pub(crate) fn on_time(&mut self) {
        self.frames += 1;
    }

    pub(crate) fn late(&mut self, by_ps: u64) {
        self.frames += 1;
        self.histogram.saturating_record(by_ps.max(1));
    }

    /// Adds another endpoint's.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
        self.frames += other.frames;
    }

    /// Frames that were held or late.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Late frames.
    #[must_use]
    pub fn late_frames(&self) -> u64 {
        self.histogram.len()
    }

    /// The lateness that a share `quantile` (0 to 1) of *all* frames did not exceed; 0 when so many were on time.
    #[must_use]
    pub fn quantile_ps(&self, quantile: f64) -> u64 {
        let on_time = self.frames - self.histogram.len();
        let rank = (quantile * self.frames as f64).ceil() as u64;
        if self.histogram.is_empty() || rank <= on_time {
            return 0;
        }
        self.histogram.value_at_quantile((rank - on_time) as f64 / self.histogram.len() as f64)
    }

    /// The largest lateness.
    #[must_use]
    pub fn max_ps(&self) -> u64 {
        self.histogram.max()
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let stats = EndpointStats {
            sent: KindCounts { data: 3, ..KindCounts::default() },
            late: 7,
            ..EndpointStats::default()
        };
        let mut names: Vec<_> = stats.iter().map(|(name, _)| name).collect();
        assert!(stats.iter().any(|counter| counter == ("sent_data", 3)));
        assert!(stats.iter().any(|counter| counter == ("late", 7)));
        // Two sets of kinds, and every other field.
        assert_eq!(names.len(), size_of::<EndpointStats>() / size_of::<u64>());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), stats.iter().count());
    }

    #[test]
    fn lateness_counts_frames_on_time_as_zero() {
        let mut lateness = Lateness::new();
        assert_eq!((lateness.quantile_ps(0.99), lateness.max_ps()), (0, 0));
        (0..985).for_each(|_| lateness.on_time());
        (1..=15).for_each(|n| lateness.late(n * 1_000));
        assert_eq!((lateness.frames(), lateness.late_frames(), lateness.quantile_ps(0.98)), (1000, 15, 0));
        let p99 = lateness.quantile_ps(0.99);
        assert!((5_000..5_100).contains(&p99), "{p99}");
        let mut both = lateness.clone();
        both.merge(&lateness);
        assert_eq!((both.frames(), both.late_frames()), (2000, 30));
        assert!((5_000..5_100).contains(&both.quantile_ps(0.99)));
    }
}
