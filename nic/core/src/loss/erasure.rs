//! The ideal erasure code: a message is complete when as many bytes arrived as it has, in whichever packets (OFAN §4
//! "Loss recovery"). Clauses (ERA-n) are in `docs/specs/erasure.md`.
//!
//! It stands for a code without overhead. It works only where no payload travels.

use spray_wire::Data;

/// Where a message lies among the packet sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of its first packet.
    pub first: u64,
    /// One more than the number of its last packet.
    pub end: u64,
    /// Payload of every packet but the last.
    unit: u16,
    bytes: u64,
}

impl Span {
    /// The span of the message that `data` belongs to. All its packets but the last carry `unit` bytes.
    pub fn of(data: &Data, unit: u16) -> Self {
        let per = u64::from(unit.max(1));
        let first = data.psn.saturating_sub(data.offset / per);
        let packets = data.message_bytes.div_ceil(per).max(1);
        Self { first, end: first.saturating_add(packets), unit, bytes: data.message_bytes }
    }

    /// Payload bytes of the packets from `psn` on.
    pub fn bytes_from(&self, psn: u64) -> u64 {
        self.bytes.saturating_sub(psn.saturating_sub(self.first).saturating_mul(u64::from(self.unit)))
    }

    /// Payload bytes of one of its packets.
    pub fn payload_bytes(&self, psn: u64) -> u64 {
        self.bytes_from(psn).min(u64::from(self.unit))
    }

    /// Whether an acknowledgement can cover all of the message: every number before it is settled, or every number of
    /// it was sent.
    //= docs/specs/erasure.md#ERA-3 A complete message
    pub fn can_settle(&self, cumulative: u64, highest: u64) -> bool {
        cumulative >= self.first || highest >= self.end
    }
}
