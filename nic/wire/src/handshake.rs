//! Connect and Accept: the two sides tell each other their connection number, cookie and limits.

use crate::Error;
use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};

mod field {
    pub const CONNECTION: usize = 28;
    pub const COOKIE: usize = 32;
    pub const WINDOW_PACKETS: usize = 40;
    pub const MAX_PAYLOAD: usize = 44;
    pub const MAX_DATA: usize = 48;
    pub const ACK_EVERY: usize = 56;
    pub const RESERVED: usize = 60;
}

macro_rules! handshake {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// Number that the peer must put into frames to me.
            pub connection: u32,
            /// Cookie that the peer must put into frames to me.
            pub cookie: u64,
            /// Packets beyond the cumulative acknowledgement that my scoreboard can hold.
            pub window_packets: u32,
            /// Largest payload of one frame that I take, in bytes.
            pub max_payload: u32,
            /// Message bytes that I take before I raise the limit in an ACK.
            pub max_data: u64,
            /// I acknowledge once per this many data packets.
            pub ack_every: u32,
        }

        impl Header for $name {
            const BYTES: usize = 64;

            fn parse(header: &[u8]) -> Result<Self, Error> {
                let view = View(chunk::<{ Self::BYTES }>(header)?);
                Ok(Self {
                    connection: view.u32::<{ field::CONNECTION }>(),
                    cookie: view.u64::<{ field::COOKIE }>(),
                    window_packets: view.u32::<{ field::WINDOW_PACKETS }>(),
                    max_payload: view.u32::<{ field::MAX_PAYLOAD }>(),
                    max_data: view.u64::<{ field::MAX_DATA }>(),
                    ack_every: view.u32::<{ field::ACK_EVERY }>(),
                })
            }

            fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
                Writer(chunk_mut::<{ Self::BYTES }>(header)?)
                    .u32::<{ field::CONNECTION }>(self.connection)
                    .u64::<{ field::COOKIE }>(self.cookie)
                    .u32::<{ field::WINDOW_PACKETS }>(self.window_packets)
                    .u32::<{ field::MAX_PAYLOAD }>(self.max_payload)
                    .u64::<{ field::MAX_DATA }>(self.max_data)
                    .u32::<{ field::ACK_EVERY }>(self.ack_every)
                    .u32::<{ field::RESERVED }>(0);
                Ok(())
            }
        }
    };
}

handshake! {
    /// A client's request; its common header carries connection 0 and cookie 0.
    Connect
}

handshake! {
    /// The server's answer, under the client's connection number and cookie.
    Accept
}
