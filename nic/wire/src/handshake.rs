//! Connect and Accept: the two sides tell each other their connection number, cookie and limits.

use crate::declare::header;

header! {
    /// A side's terms: a Connect's, whose common header carries connection 0 and cookie 0, or an Accept's.
    Terms, 64 bytes;
    /// Number that the peer must put into frames to me.
    28 connection: u32;
    /// Cookie that the peer must put into frames to me.
    32 cookie: u64;
    /// Packets beyond the cumulative acknowledgement that my scoreboard can hold.
    40 window_packets: u32;
    /// Largest payload of one frame that I take, in bytes.
    44 max_payload: u32;
    /// Message bytes that I take before I raise the limit in an ACK.
    48 max_data: u64;
    /// I acknowledge once per this many data packets.
    56 ack_every: u32;
}

/// A client's request.
pub type Connect = Terms;

/// The server's answer, under the client's connection number and cookie.
pub type Accept = Terms;
