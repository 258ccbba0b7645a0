//! Nack: a packet was trimmed, is missing from its section, or the sender must go back.

use crate::declare::header;
use crate::{EvPort, Time};

header! {
    /// The response to a frame that was trimmed, proves an earlier packet lost, or is dropped
    /// because an earlier packet is missing.
    Nack, 44 bytes;
    /// UDP source port of the frame that triggered the Nack: the EV to blame.
    20 port: EvPort;
    /// Hop count of this frame.
    22 hops: u8;
    /// The frame was marked.
    23 marked: bool;
    /// Sequence number of the packet that was trimmed, is missing, or is expected.
    24 psn: u64;
    /// Send time of this frame, by the sender's clock.
    32 timestamp_echo: Time;
    /// Payload that was trimmed, in bytes; 0 if none.
    40 payload_bytes: u16;
    flags:
    /// The packet is lost: a frame sent after it on the same path arrived first.
    1 missing;
    /// The last port of the path trimmed the frame: incast, not congestion of the fabric.
    2 last_port;
    /// Go-back-N: everything from `psn` on must be retransmitted.
    4 go_back;
}
