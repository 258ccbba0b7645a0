use super::order::OrderStats;
use crate::counters::counters;

counters! {
    /// Counts of one receiver since its construction.
    pub struct ReceiverStats {
        /// Data frames, trimmed ones included: the sum up to `invalid`, except `trimmed_last`.
        frames,
        /// First arrivals with their payload.
        packets,
        /// Frames of packets that had arrived before.
        duplicates,
        /// Trimmed frames of packets that had not arrived.
        trimmed,
        /// Those trimmed by the last port of their path: the receiver's own incast, not the fabric.
        trimmed_last,
        /// Frames dropped by `go-back-n` because an earlier packet was missing.
        out_of_order,
        /// Frames beyond the window, or refused while completed messages were not taken.
        out_of_window,
        /// Frames that contradict themselves, their message, or a limit.
        invalid,
        /// Trailers: frames without payload after packets on their path, not part of `frames`.
        trailers,
        /// Reports of missing packets; a packet reported twice counts twice.
        missing,
        /// First arrivals and duplicates with an ECN mark.
        marked,
        /// Payload bytes of first arrivals.
        bytes,
        /// Messages completed.
        messages,
        /// ACKs sent.
        acks,
        /// NACKs sent.
        nacks,
        /// NACKs dropped because the queue was full. The sender's timeout detects those losses.
        nacks_dropped,
        ;
        /// The order of arrival of new packets; with `go-back-n` also of those that it dropped.
        order: OrderStats,
    }
}
