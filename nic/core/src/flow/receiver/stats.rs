//! What a receiver counts.

use super::order::OrderStats;
use crate::counters::counters;

counters! {
    /// Counts of one receiver since its construction.
    pub struct ReceiverStats {
        /// Data frames, trimmed ones included: the sum of what follows up to `invalid`, `trimmed_last` left out.
        frames,
        /// First arrivals with their payload.
        packets,
        /// Frames whose packet had arrived before.
        duplicates,
        /// Trimmed frames of packets that had not arrived.
        trimmed,
        /// Those of them that the last port of their path trimmed, and said so: this host's own incast, not the fabric.
        trimmed_last,
        /// Frames dropped by `go-back-n` because an earlier packet was missing.
        out_of_order,
        /// Frames beyond the window, or refused because completed messages wait to be taken.
        out_of_window,
        /// Frames that contradict themselves, their message, or a limit.
        invalid,
        /// Trailers: frames without payload that follow packets down their path. They are not among `frames`.
        trailers,
        /// Reports of missing packets; a packet told twice counts twice.
        missing,
        /// First arrivals and duplicates with an ECN mark.
        marked,
        /// Payload bytes of first arrivals.
        bytes,
        /// Messages completed.
        messages,
        /// ACKs handed out.
        acks,
        /// NACKs handed out.
        nacks,
        /// NACKs dropped because the queue was full. The sender's timeout finds those losses.
        nacks_dropped,
        ;
        /// In which order packets arrived: first arrivals, and with `go-back-n` those that it dropped.
        order: OrderStats,
    }
}
