//! Nack: a frame arrived trimmed, a packet is missing from its section, or the sender is to go back.

use crate::declare::header;
use crate::{EvPort, Time};

header! {
    /// The receiver's answer to a trimmed frame, to a frame that proves an earlier packet lost, or to one that it drops because an
    /// earlier packet has not arrived.
    Nack, 44 bytes;
    /// UDP source port of the answered frame: the EV to blame.
    20 port: EvPort;
    /// Switches that it crossed.
    22 hops: u8;
    /// The frame was marked.
    23 marked: bool;
    /// Sequence number of the packet that was trimmed, is missing, or is expected.
    24 psn: u64;
    /// Send timestamp of the answered frame, by the sender's clock.
    32 timestamp_echo: Time;
    /// Payload that was cut off, in bytes; 0 where nothing was.
    40 payload_bytes: u16;
    flags:
    /// The packet was not trimmed but lost: the answered frame was sent after it on the same path and arrived without it.
    1 missing;
    /// The last port of the path trimmed the frame: the queue in front of the receiver was full, not the fabric.
    2 last_port;
    /// The receiver has every packet below `psn` and keeps none above it: everything from there on is to be sent again.
    4 go_back;
}
