//! Connect, Retry and Accept: the client proves its address, and the two sides tell each other their connection number, cookie
//! and limits.

use crate::declare::header;

header! {
    /// A side's terms: a Connect's, whose common header carries connection 0 and cookie 0, or an Accept's. A message of the key
    /// exchange may follow as the frame's payload.
    Terms, 72 bytes;
    /// Number that the peer must put into frames to me.
    20 connection: u32;
    /// Cookie that the peer must put into frames to me.
    24 cookie: u64;
    /// Message bytes that I take before I raise the limit in an ACK.
    32 max_data: u64;
    /// Packets beyond the cumulative acknowledgement that my scoreboard can hold.
    40 window_packets: u32;
    /// Largest payload of one frame that I take, in bytes.
    44 max_payload: u32;
    /// I acknowledge once per this many data packets.
    48 ack_every: u32;
    /// Length of the key exchange's message that follows, in bytes; 0 where frames are not sealed.
    52 exchange_bytes: u16;
    /// What the server's Retry said; zeros in the first Connect and in an Accept.
    56 token: [u8; 16];
}

/// A client's request.
pub type Connect = Terms;

/// The server's answer, under the client's connection number and cookie.
pub type Accept = Terms;

header! {
    /// The server's answer to a Connect without a token of its own, under the client's connection number and cookie: only who
    /// receives it can connect. It is shorter than a Connect.
    Retry, 36 bytes;
    /// What the next Connect must carry.
    20 token: [u8; 16];
}
