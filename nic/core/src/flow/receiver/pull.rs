//! How much credit a receiver's sender needs. The host decides when to grant it, over all of its receivers.

use spray_wire::PullRequest;

use super::Receiver;

/// Totals in wire bytes since the connection began.
#[derive(Clone, Copy, Debug)]
pub(super) struct PullTarget {
    /// The largest demand told.
    demand: u64,
    /// Bytes of trimmed frames for which a NACK was queued.
    trimmed: u64,
    header_bytes: u64,
}

impl PullTarget {
    pub(super) fn new(header_bytes: u32) -> Self {
        Self { demand: 0, trimmed: 0, header_bytes: u64::from(header_bytes) }
    }

    //= docs/specs/eqds.md#EQDS-10 the target
    pub(super) fn on_trimmed(&mut self, payload_bytes: u16) {
        self.trimmed = self.trimmed.saturating_add(u64::from(payload_bytes) + self.header_bytes);
    }
}

impl Receiver {
    /// Takes a request for credit.
    pub fn on_pull_request(&mut self, request: &PullRequest) {
        self.pull.demand = self.pull.demand.max(request.demand_bytes);
    }

    /// All credit that the sender can use, in wire bytes; for [`PullPacer`](crate::cc::PullPacer).
    #[inline]
    pub fn pull_target(&self) -> u64 {
        self.pull.demand.saturating_add(self.pull.trimmed)
    }
}
