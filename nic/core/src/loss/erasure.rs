//! The ideal erasure code (OFAN §4 "Loss recovery"; `docs/specs/erasure.md`), without payload: a
//! message is complete when as many bytes arrived as it has, in any packets.

use spray_wire::Data;

/// The range of packet sequence numbers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: u64,
    /// One more than the number of its last packet.
    pub end: u64,
    /// Payload of every packet but the last.
    unit: u16,
    bytes: u64,
}

impl Span {
    /// Returns the span of the message of `data`, where all packets but the last have `unit` bytes.
    pub fn of(data: &Data, unit: u16) -> Self {
        let per = u64::from(unit.max(1));
        let first = data.psn.saturating_sub(data.offset / per);
        let packets = data.message_bytes.div_ceil(per).max(1);
        Self { first, end: first.saturating_add(packets), unit, bytes: data.message_bytes }
    }

    pub fn bytes_from(&self, psn: u64) -> u64 {
        self.bytes.saturating_sub(psn.saturating_sub(self.first).saturating_mul(u64::from(self.unit)))
    }

    pub fn payload_bytes(&self, psn: u64) -> u64 {
        self.bytes_from(psn).min(u64::from(self.unit))
    }

    /// Whether an ACK can cover the message: all numbers before it are settled, or all of it sent.
    //= docs/specs/erasure.md#ERA-3 A complete message
    pub fn can_settle(&self, cumulative: u64, highest: u64) -> bool {
        cumulative >= self.first || highest >= self.end
    }
}
