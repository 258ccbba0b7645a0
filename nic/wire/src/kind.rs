//! The kinds of frames.

/// Passes the list to the macro `$make`: header type, byte on the wire (consecutive), name.
macro_rules! kinds {
    ($make:ident) => {
        $make! {
            /// A segment of a message.
            Data = 1 "data";
            /// Acknowledges packets.
            Ack = 2 "ack";
            /// Reports a trimmed or missing packet.
            Nack = 3 "nack";
            /// Requests a connection.
            Connect = 4 "connect";
            /// Accepts a connection.
            Accept = 5 "accept";
            /// Closes a connection, or acknowledges that.
            Close = 6 "close";
            /// Reports an unknown connection.
            Reset = 7 "reset";
            /// Tests whether a path is alive.
            Probe = 8 "probe";
            /// Answers a probe.
            ProbeAck = 9 "probe_ack";
            /// Grants credit to a sender.
            Pull = 10 "pull";
            /// Requests credit from a receiver.
            PullRequest = 11 "pull_request";
            /// Requests that a client prove its address.
            Retry = 12 "retry";
            /// Exchanges fresh keys. Always sealed.
            Rekey = 13 "rekey";
        }
    };
}

macro_rules! kind {
    ($($(#[$about:meta])+ $kind:ident = $byte:literal $name:literal;)+) => {
        /// The kind of a frame; the value is the byte on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$about])+ $kind = $byte,)+
        }

        impl Kind {
            /// Every kind, by ascending value.
            pub const ALL: [Self; [$($byte),+].len()] = [$(Self::$kind),+];

            /// Returns the kind with this byte on the wire.
            #[inline]
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value {
                    $($byte => Some(Self::$kind),)+
                    _ => None,
                }
            }

            /// Returns the index in [`Kind::ALL`].
            #[inline]
            pub const fn index(self) -> usize {
                self as usize - Self::ALL[0] as usize
            }

            /// Returns the name, for counters.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }
        }
    };
}

kinds! { kind }

// The bytes on the wire are consecutive.
const _: () = {
    let [.., last] = Kind::ALL;
    assert!(last.index() == Kind::ALL.len() - 1);
};

pub(crate) use kinds;
