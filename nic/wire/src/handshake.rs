//! Connect, Retry and Accept: the client proves its address, and both sides exchange connection
//! numbers, cookies and limits.

use crate::declare::header;

header! {
    /// The terms of a side, in a Connect (under connection 0 and cookie 0) or an Accept. A key
    /// exchange message may follow as payload.
    Terms, 72 bytes;
    /// Connection number that the peer must put into frames to this side.
    20 connection: u32;
    /// Cookie that the peer must put into frames to this side.
    24 cookie: u64;
    /// Message bytes that this side accepts before it raises the limit in an ACK.
    32 max_data: u64;
    /// Packets beyond the cumulative acknowledgement that this side's scoreboard can hold.
    40 window_packets: u32;
    /// Largest payload of a frame that this side accepts, in bytes.
    44 max_payload: u32;
    /// Data packets per acknowledgement that this side sends.
    48 ack_every: u32;
    /// Length of the key exchange message that follows, in bytes; 0 without sealing.
    52 exchange_bytes: u16;
    /// Token of the server's Retry; zeros in the first Connect and in an Accept.
    56 token: [u8; 16];
}

/// A client's request.
pub type Connect = Terms;

/// The server's response, under the client's connection number and cookie.
pub type Accept = Terms;

header! {
    /// The response to a Connect without a valid token, under the client's connection number and
    /// cookie: it proves the client's address. It is shorter than a Connect.
    Retry, 36 bytes;
    /// Token for the next Connect.
    20 token: [u8; 16];
}
