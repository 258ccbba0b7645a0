//! Counters of an endpoint.
#![expect(clippy::indexing_slicing, reason = "there is a count for every kind")]

use std::ops::{Add, Index};

use spray_core::flow::{Limits, ReceiverStats, SenderStats};
use spray_core::summed;
use spray_wire::{Body, Kind};

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

impl Add for KindCounts {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
        self
    }
}

impl Index<Kind> for KindCounts {
    type Output = u64;

    fn index(&self, kind: Kind) -> &u64 {
        &self.0[kind.index()]
    }
}

/// Declares the counters: their fields, and their names for [`EndpointStats::iter`].
macro_rules! endpoint_counters {
    ($(#[$about:meta])* pub struct $Stats:ident { $($(#[$field_about:meta])+ $field:ident,)+ }) => {
        summed! {
            $(#[$about])*
            pub struct $Stats {
                /// Frames sent.
                pub sent: KindCounts,
                /// Frames parsed, whether or not they were accepted.
                pub received: KindCounts,
                $($(#[$field_about])+ pub $field: u64,)+
            }
        }

        impl $Stats {
            /// Returns all counters with their names: `sent_data`, `received_data`, ..., then the
            /// names of the fields.
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

endpoint_counters! {
    /// The counters of an endpoint.
    #[non_exhaustive]
    pub struct EndpointStats {
        /// Data frames received that a switch had trimmed.
        trimmed,
        /// Arrivals of another protocol.
        not_ours,
        /// Arrivals for another address.
        wrong_address,
        /// Arrivals too short, too long or of an unknown version or kind.
        malformed,
        /// Arrivals with a wrong header or payload checksum.
        checksum,
        /// Arrivals for a connection that this endpoint does not have.
        unknown_connection,
        /// Arrivals with another cookie than their connection's, or from another address than its
        /// peer's.
        wrong_cookie,
        /// Arrivals with an invalid seal, and invalid messages of a key exchange.
        forged,
        /// Sealed arrivals that are duplicates, or older than the replay window.
        replayed,
        /// Unsealed arrivals for a connection with keys.
        unsealed,
        /// Arrivals of a kind that the connection does not expect at its stage.
        unexpected,
        /// Duplicate data.
        duplicates,
        /// Data beyond the window or the flow-control limit.
        out_of_window,
        /// Data with a message, offset or length that contradict each other or what arrived before.
        invalid,
        /// Refused Connects: the table is full, accepting is off, or the keys do not match.
        refused,
        /// Half-open connections removed to make room for others.
        half_open_evicted,
        /// Half-open connections of peers with an unverified address.
        half_open_expired,
        /// Key exchanges dropped: too many clients wait, or the connection's last one was too
        /// recent.
        exchanges_limited,
        /// Resets and refusals suppressed by their rate limit.
        reset_limited,
        /// Control frames lost because the device had no free frame or no room.
        control_dropped,
        /// Times that data was delayed because the device had no free frame or no room.
        transmit_stalls,
        /// Errors of the device in receiving or flushing: the interface is down or gone.
        device_errors,
        /// Entries that the event log dropped.
        log_overflow,
    }
}

/// Counters of one connection.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The counters of its sender.
    pub sender: SenderStats,
    /// The counters of its receiver.
    pub receiver: ReceiverStats,
    /// The sender's window in bytes.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Maximum payload of a packet in bytes, by the limits of both sides (END-4).
    pub payload_bytes: u32,
    /// The minimum round-trip time in picoseconds; 0 before the first measurement.
    pub rtt_min_ps: u64,
    /// The smoothed round-trip time, in picoseconds; 0 before the first measurement.
    pub rtt_smoothed_ps: u64,
    /// The median round-trip time in picoseconds, within 1/30; 0 before the first measurement, and
    /// where the path's properties are configured.
    pub rtt_p50_ps: u64,
    /// The 99th percentile of round-trip times, as `rtt_p50_ps`.
    pub rtt_p99_ps: u64,
    /// The time for which each limit kept its sender from sending.
    pub limits: Limits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_distinct_name() {
        let mut stats = EndpointStats { invalid: 7, ..EndpointStats::default() };
        (0..3).for_each(|_| stats.sent.count(&Body::Data(Default::default())));
        let mut names: Vec<_> = stats.iter().map(|(name, _)| name).collect();
        assert!(stats.iter().any(|counter| counter == ("sent_data".into(), 3)));
        assert!(stats.iter().any(|counter| counter == ("invalid".into(), 7)));
        // The counters of two sets of kinds, and every other field.
        assert_eq!(names.len(), size_of::<EndpointStats>() / size_of::<u64>());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), stats.iter().count());
    }
}
