//! What an endpoint counts.

use std::ops::Index;

use hdrhistogram::Histogram;
use spray_core::flow::{Limits, ReceiverStats, SenderStats};
use spray_wire::{Body, Kind};

/// An endpoint's senders at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Senders {
    /// Connections with data under way or waiting.
    pub sending: u32,
    /// Those of them whose balancer is frozen (REPS §3.2).
    pub frozen: u32,
}

/// Frames by kind: `counts[Kind::Data]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCounts([u64; Kind::ALL.len()]);

impl KindCounts {
    /// Frames of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, body: &Body) {
        self.0[body.kind().index()] += 1;
    }
}

impl Index<Kind> for KindCounts {
    type Output = u64;

    fn index(&self, kind: Kind) -> &u64 {
        &self.0[kind.index()]
    }
}

/// Declares counters once: their fields, and the list of their names and values.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $Stats:ident { $($(#[$field_about:meta])+ $field:ident,)+ }) => {
        $(#[$about])*
        pub struct $Stats {
            /// Frames put on the link.
            pub sent: KindCounts,
            /// Frames that parsed, whether or not they were accepted.
            pub received: KindCounts,
            $($(#[$field_about])+ pub $field: u64,)+
        }

        impl $Stats {
            /// Every counter with its name, for metrics and reports: `sent_data`, `received_data`, ..., then the fields' own names.
            pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
                let kinds = |way: &'static str, counts: KindCounts| {
                    Kind::ALL.into_iter().map(move |kind| (format!("{way}_{}", kind.name()), counts[kind]))
                };
                let causes = [$((stringify!($field), self.$field)),+];
                let causes = causes.into_iter().map(|(name, count)| (name.to_string(), count));
                kinds("sent", self.sent).chain(kinds("received", self.received)).chain(causes)
            }
        }
    };
}

counters! {
    /// What an endpoint has counted since it was made.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct EndpointStats {
        /// Data frames received that a switch had trimmed.
        trimmed,
        /// Arrivals that are not of this protocol.
        not_ours,
        /// Arrivals for another address.
        wrong_address,
        /// Arrivals too short, too long or of an unknown version or kind.
        malformed,
        /// Arrivals whose header or payload checksum does not match.
        checksum,
        /// Arrivals for a connection that this endpoint does not have.
        unknown_connection,
        /// Arrivals for a connection of ours with another cookie, or from another address than its peer's.
        wrong_cookie,
        /// Arrivals whose seal does not match, and messages of a key exchange that do not.
        forged,
        /// Sealed arrivals that had arrived before, or are too old to know.
        replayed,
        /// Plain arrivals for a connection whose frames are sealed.
        unsealed,
        /// Arrivals of a kind that the connection does not expect at its stage.
        unexpected,
        /// Data that had arrived before.
        duplicates,
        /// Data beyond the window or the flow-control limit.
        out_of_window,
        /// Data whose message, offset or length contradict each other or what arrived before.
        invalid,
        /// Connection requests refused, as the table was full, accepting is off, or the keys do not fit.
        refused,
        /// Half-open connections given up to make room for another.
        half_open_evicted,
        /// Half-open connections whose peer never proved its address.
        half_open_expired,
        /// Key exchanges put off because of their rate limit.
        exchanges_limited,
        /// Resets and refusals not sent because of their rate limit.
        reset_limited,
        /// Frames handled after their virtual time had passed for this host; see [`Lateness`].
        late,
        /// Frames that arrived after their virtual time by the clock, whether they were handled late or not.
        overdue,
        /// Frames dropped because their virtual time was too far ahead.
        too_early,
        /// Arrivals dropped because no more frames could be held. A loss of the testbed, not of the emulated network.
        hold_overflow,
        /// Control frames lost because the device had no free frame or no room. A loss of the testbed, not of the
        /// emulated network.
        control_dropped,
        /// Times that data had to wait because the device had no frame free or no room.
        transmit_stalls,
        /// Errors of the device on receiving or flushing; the interface is down or gone.
        device_errors,
        /// Entries that the event log had no room for.
        log_overflow,
    }
}

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
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Most payload bytes of a packet, by the limits of both sides (END-4).
    pub payload_bytes: u32,
    /// The least round-trip time measured, in picoseconds; 0 before the first.
    pub rtt_min_ps: u64,
    /// The smoothed round-trip time, in picoseconds; 0 before the first measurement.
    pub rtt_smoothed_ps: u64,
    /// The median of the round-trip times, in picoseconds, within a thirtieth; 0 before the first, and where the connection does not
    /// learn its path.
    pub rtt_p50_ps: u64,
    /// What 99 % of the round-trip times do not exceed, as `rtt_p50_ps`.
    pub rtt_p99_ps: u64,
    /// What kept its sender from sending, and for how long.
    pub limits: Limits,
}

/// How late the late frames were, in picoseconds of scenario time.
#[derive(Debug, Clone)]
pub struct Lateness {
    histogram: Histogram<u64>,
    frames: u64,
}

impl Lateness {
    /// Largest lateness recorded: 10 s of scenario time. Longer ones count as that.
    const MAX_PS: u64 = 10_000_000_000_000;

    pub(crate) fn on_time(&mut self) {
        self.frames += 1;
    }

    pub(crate) fn late(&mut self, by_ps: u64) {
        self.frames += 1;
        self.histogram.saturating_record(by_ps.max(1));
    }

    /// Adds those of another endpoint.
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

    /// The lateness that a share `quantile` (0 to 1) of *all* frames did not exceed; 0 if that share was on time.
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
        let histogram = Histogram::new_with_bounds(1, Self::MAX_PS, 2).expect("constant bounds are valid");
        Self { histogram, frames: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let mut stats = EndpointStats { late: 7, ..EndpointStats::default() };
        (0..3).for_each(|_| stats.sent.count(&Body::Data(Default::default())));
        let mut names: Vec<_> = stats.iter().map(|(name, _)| name).collect();
        assert!(stats.iter().any(|counter| counter == ("sent_data".into(), 3)));
        assert!(stats.iter().any(|counter| counter == ("late".into(), 7)));
        // Two sets of kinds, and every other field.
        assert_eq!(names.len(), size_of::<EndpointStats>() / size_of::<u64>());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), stats.iter().count());
    }

    #[test]
    fn lateness_counts_frames_on_time_as_zero() {
        let mut lateness = Lateness::default();
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
