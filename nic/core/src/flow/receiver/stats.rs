//! What a receiver counts.

use super::order::OrderStats;

/// Counts of one receiver since its construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStats {
    /// Data frames, trimmed ones included: the sum of what follows up to `invalid`, `trimmed_last` left out.
    pub frames: u64,
    /// First arrivals with their payload.
    pub packets: u64,
    /// Frames whose packet had arrived before.
    pub duplicates: u64,
    /// Trimmed frames of packets that had not arrived.
    pub trimmed: u64,
    /// Those of them that the last port of their path trimmed, and said so: this host's own incast, not the fabric.
    pub trimmed_last: u64,
    /// Frames dropped by `go-back-n` because an earlier packet was missing.
    pub out_of_order: u64,
    /// Frames beyond the window, or refused because completed messages wait to be taken.
    pub out_of_window: u64,
    /// Frames that contradict themselves, their message, or a limit.
    pub invalid: u64,
    /// Trailers: frames without payload that follow packets down their path. They are not among `frames`.
    pub trailers: u64,
    /// Reports of missing packets; a packet told twice counts twice.
    pub missing: u64,
    /// In which order packets arrived: first arrivals, and with `go-back-n` those that it dropped.
    pub order: OrderStats,
    /// First arrivals and duplicates with an ECN mark.
    pub marked: u64,
    /// Payload bytes of first arrivals.
    pub bytes: u64,
    /// Messages completed.
    pub messages: u64,
    /// ACKs handed out.
    pub acks: u64,
    /// NACKs handed out.
    pub nacks: u64,
    /// NACKs dropped because the queue was full. The sender's timeout finds those losses.
    pub nacks_dropped: u64,
}

impl ReceiverStats {
    /// What was counted from these counts to `later` ones of the same receiver.
    #[must_use]
    pub fn until(&self, later: &Self) -> Self {
        Self {
            frames: later.frames - self.frames,
            packets: later.packets - self.packets,
            duplicates: later.duplicates - self.duplicates,
            trimmed: later.trimmed - self.trimmed,
            trimmed_last: later.trimmed_last - self.trimmed_last,
            out_of_order: later.out_of_order - self.out_of_order,
            out_of_window: later.out_of_window - self.out_of_window,
            invalid: later.invalid - self.invalid,
            trailers: later.trailers - self.trailers,
            missing: later.missing - self.missing,
            order: self.order.until(&later.order),
            marked: later.marked - self.marked,
            bytes: later.bytes - self.bytes,
            messages: later.messages - self.messages,
            acks: later.acks - self.acks,
            nacks: later.nacks - self.nacks,
            nacks_dropped: later.nacks_dropped - self.nacks_dropped,
        }
    }
}
