//! A sender's demand for credit. The host decides when to grant it, over all of its receivers.

use spray_wire::PullRequest;

use super::{Arrival, DataOutcome, Receiver};

impl Receiver {
    /// Takes a request for credit.
    pub fn on_pull_request(&mut self, request: &PullRequest) {
        self.pull.demand = self.pull.demand.max(request.demand_bytes);
    }

    /// Wire bytes that this frame makes available again; for [`PullPacer`](crate::cc::PullPacer).
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    #[inline]
    pub fn credit_back(&self, arrival: &Arrival, accept: DataOutcome) -> u64 {
        let payload_bytes = u64::from(arrival.data.payload_bytes).min(self.grant.payload_bytes);
        let bytes = payload_bytes + self.pull.header_bytes;
        match accept {
            DataOutcome::Invalid | DataOutcome::Trailer => 0,
            _ if arrival.trimmed => bytes,
            _ => bytes * ROOM_PER_ARRIVAL,
        }
    }

    /// All credit that the sender can use, in wire bytes; for [`PullPacer`](crate::cc::PullPacer).
    #[inline]
    pub fn pull_target(&self) -> u64 {
        self.pull.demand.saturating_add(self.pull.trimmed)
    }
}

/// Packets of credit per arrival: a sender still gets credit if seven frames in eight are lost.
const ROOM_PER_ARRIVAL: u64 = 8;
