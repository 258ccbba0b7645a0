//! Arrivals of messages in an ideal erasure code: `docs/specs/erasure.md`.

use super::{Arrival, COMPLETED_SLOTS, DataOutcome, Receiver, Time};
use crate::flow::messages::Coded;
use crate::loss::{Repair, Span};

impl Receiver {
    /// Switches a receiver that has received nothing to the code.
    pub fn erasure_coded(mut self) -> Self {
        self.repair = Repair::ErasureCode;
        self.reassembly.room = None;
        self
    }

    /// Takes a data frame, which counts for its message even if its number arrived before.
    //= docs/specs/erasure.md#ERA-2 packets counted for a message
    pub(super) fn on_coded(&mut self, now: Time, arrival: &Arrival) -> DataOutcome {
        let data = &arrival.data;
        let filled = self.has_received(data.psn);
        //= docs/specs/transport.md#TRN-50 beyond the window
        if !filled && data.psn - self.cumulative >= self.window_packets || self.completed.len() >= COMPLETED_SLOTS {
            return DataOutcome::OutOfWindow;
        }
        if arrival.trimmed {
            return if filled { DataOutcome::Duplicate } else { DataOutcome::Trimmed };
        }
        //= docs/specs/transport.md#TRN-57 granting
        let room_bytes = self.grant.limit().saturating_sub(self.stats.bytes);
        if !filled && u64::from(data.payload_bytes) > room_bytes {
            return DataOutcome::Invalid;
        }
        let coded = self.reassembly.place_coded(data, filled, self.cumulative, self.highest);
        match coded {
            Coded::Duplicate => return DataOutcome::Duplicate,
            Coded::Rejected => return DataOutcome::Invalid,
            Coded::Part | Coded::Complete(_) if filled => {
                self.stats.packets += 1;
                self.on_arrival(now, arrival, false);
            }
            Coded::Part | Coded::Complete(_) => self.on_new(now, arrival),
        }
        if let Coded::Complete(span) = coded {
            self.on_complete(data);
            self.fill(span);
        }
        DataOutcome::New { place: None }
    }

    /// Settles the other numbers of a complete message, so that an ACK covers all of it.
    //= docs/specs/erasure.md#ERA-3 A complete message
    fn fill(&mut self, span: Span) {
        let start = span.first.max(self.cumulative);
        for psn in start..span.end.min(self.highest) {
            if !self.received.contains(psn) {
                self.received.insert(psn);
                self.watch.on_arrival(psn);
                self.stats.bytes += span.payload_bytes(psn);
                self.pending.cover(psn);
            }
        }
        self.cumulative = self.received.remove_run(self.cumulative, self.highest);
        if span.end > self.highest {
            // The number was never sent. Those before it are settled, or some would be missing.
            self.stats.bytes += span.bytes_from(self.highest.max(start));
            (self.highest, self.cumulative) = (span.end, span.end);
        }
    }
}
