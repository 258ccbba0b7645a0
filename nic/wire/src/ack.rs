//! Ack: which packets arrived, and the state of the path of the triggering packet (WIRE-8).

use crate::declare::Header as _;
use crate::declare::header;
use crate::{Error, EvPort, Time, echoes};

/// The number of packets that the selective bitmap covers.
pub const BITMAP_BITS: u32 = 256;

const ECHOES: usize = 90;
pub(crate) const HOPS: usize = 22;

header! {
    /// An acknowledgement.
    Ack, 92 bytes;
    /// UDP source port of the packet that triggered the ACK: the EV to credit.
    20 port: EvPort;
    /// Hop count of this packet.
    22 hops: u8;
    /// Data packets received since the last ACK, this one included.
    23 packets: u8;
    /// Every packet with a lower sequence number was received.
    24 cumulative: u64;
    /// Send timestamp of the packet that triggered the ACK, by the sender's clock.
    32 timestamp_echo: Time;
    /// Sequence number of bit 0 of the bitmap.
    40 sack_base: u64;
    /// Bit `i % 64` of word `i / 64` (least significant first): packet `sack_base + i` arrived.
    48 bitmap: [u64; 4];
    /// Limit on message bytes sent over the connection's life (flow control).
    80 max_data: u64;
    /// Number of marked packets since the last ACK.
    88 marked_packets: u8;
    /// The packet that triggered the ACK was marked.
    89 marked: bool;
    flags:
    /// The triggering packet had been trimmed: its header may have overtaken others.
    1 trimmed;
    /// The triggering packet was misrouted: it arrived on another of the receiver's shards.
    2 misrouted;
    echoes:
    /// EVs of the other acknowledged packets; empty unless the receiver is configured to send them.
    90 echoes;
}

impl Ack {
    /// Returns whether the bitmap selects packet `psn`; `false` outside of its range.
    #[inline]
    pub fn selected(&self, psn: u64) -> bool {
        let Some(bit) = psn.checked_sub(self.sack_base) else { return false };
        let word = usize::try_from(bit / 64).ok().and_then(|at| self.bitmap.get(at));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

/// Returns the bytes of the Ack header that begins at `start`, echoes included.
#[inline]
pub(crate) fn bytes(start: &[u8]) -> Result<usize, Error> {
    let count = usize::from(*start.get(ECHOES).ok_or(Error::Truncated)?);
    if count > crate::MAX_ECHOES { Err(Error::Value) } else { Ok(Ack::BYTES + echoes::bytes_of(count)) }
}
