//! The kinds of frames: the list of them.

/// Hands the list to the macro `$make`, one line per kind: its header's type, its byte on the wire (in a row), its name.
macro_rules! kinds {
    ($make:ident) => {
        $make! {
            /// A piece of a message.
            Data = 1 "data";
            /// What the receiver got.
            Ack = 2 "ack";
            /// A trimmed frame arrived, or a packet is missing.
            Nack = 3 "nack";
            /// A client asks for a connection.
            Connect = 4 "connect";
            /// The server's answer.
            Accept = 5 "accept";
            /// No more data, or the acknowledgement of that.
            Close = 6 "close";
            /// No such connection.
            Reset = 7 "reset";
            /// Asks whether a path is alive.
            Probe = 8 "probe";
            /// Says that the path of a probe is alive.
            ProbeAck = 9 "probe_ack";
            /// Credit from a receiver.
            Pull = 10 "pull";
            /// A sender asks for credit.
            PullRequest = 11 "pull_request";
            /// The server asks a client to prove its address.
            Retry = 12 "retry";
            /// An exchange of fresh keys, or its answer. Always sealed.
            Rekey = 13 "rekey";
        }
    };
}

macro_rules! kind {
    ($($(#[$about:meta])+ $kind:ident = $byte:literal $name:literal;)+) => {
        /// What a frame is; the value is the byte on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$about])+ $kind = $byte,)+
        }

        impl Kind {
            /// Every kind, in the order of their values.
            pub const ALL: [Self; [$($byte),+].len()] = [$(Self::$kind),+];

            /// Return the kind with this byte on the wire.
            #[inline]
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value {
                    $($byte => Some(Self::$kind),)+
                    _ => None,
                }
            }

            /// Return its place in [`Kind::ALL`].
            #[inline]
            pub const fn index(self) -> usize {
                self as usize - Self::ALL[0] as usize
            }

            /// Return its name, for counters.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }
        }
    };
}

kinds! { kind }

/// The bytes on the wire are in a row.
const _: () = {
    let [.., last] = Kind::ALL;
    assert!(last.index() == Kind::ALL.len() - 1);
};

pub(crate) use kinds;
