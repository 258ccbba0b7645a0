//! The kinds of frames: the list of them, and what a frame of any kind says.

use crate::offsets::udp_payload_offset;
use crate::{Accept, Ack, Close, Connect, Data, Error, Nack, Probe, ProbeAck, Pull, PullRequest, Reset, Retry};

/// The header of one kind. `header` is ours, from the first byte of the common part on.
pub(crate) trait Header: Sized {
    /// Bytes of the header, common part included. An Ack's echoes come on top.
    const BYTES: usize;

    /// Read the kind's own fields and its flags.
    fn parse(header: &[u8]) -> Result<Self, Error>;

    /// Write the kind's own fields. CRCs are left 0.
    fn emit(&self, header: &mut [u8]) -> Result<(), Error>;

    /// Return the flags, which stand in the common part.
    fn flags(&self) -> u8 {
        0
    }
}

/// Makes [`Kind`] and [`Body`] from one line per kind: its header's type, its byte on the wire (in a row), its name.
macro_rules! kinds {
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

            /// Return the bytes of our header, common part included, without payload.
            #[inline]
            pub const fn bytes(self) -> usize {
                match self { $(Self::$kind => $kind::BYTES,)+ }
            }
        }

        /// The part of our header that depends on the kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$about])+ $kind($kind),)+
        }

        impl Body {
            /// Return the kind on the wire.
            #[inline]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            /// Read the body out of `header`, which is ours from its first byte on.
            #[inline(always)]
            pub(crate) fn parse(kind: Kind, header: &[u8]) -> Result<Self, Error> {
                Ok(match kind { $(Kind::$kind => Self::$kind(Header::parse(header)?),)+ })
            }

            /// Write the body into `header`, which is ours from its first byte on. CRCs are left 0.
            #[inline(always)]
            pub(crate) fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
                match self { $(Self::$kind(body) => body.emit(header),)+ }
            }

            #[inline]
            pub(crate) fn flags(&self) -> u8 {
                match self { $(Self::$kind(body) => body.flags(),)+ }
            }
        }
    };
}

kinds! {
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
}

/// The bytes on the wire are in a row.
const _: () = assert!(Kind::ALL[Kind::ALL.len() - 1].index() == Kind::ALL.len() - 1);

impl Body {
    /// Return the bytes of our header, common part and echoes included, without payload.
    #[inline]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Ack(ack) => Ack::BYTES + ack.echoes.bytes(),
            _ => self.kind().bytes(),
        }
    }

    /// Return the bytes that follow the header, as the header says: those of a Data as it was sent, or of a key exchange's message.
    #[inline]
    pub const fn payload_bytes(&self) -> usize {
        match self {
            Self::Data(data) => data.payload_bytes as usize,
            Self::Connect(terms) | Self::Accept(terms) => terms.exchange_bytes as usize,
            _ => 0,
        }
    }

    /// Return the bytes of all headers of its frame: Ethernet, IP, UDP and ours. The payload starts there.
    #[inline]
    pub const fn header_bytes(&self, v6: bool) -> usize {
        udp_payload_offset(v6) + self.bytes()
    }
}

/// Return the bytes of all headers of a frame: Ethernet, IP, UDP and ours. The payload starts there.
#[inline]
pub const fn header_bytes(v6: bool, kind: Kind) -> usize {
    udp_payload_offset(v6) + kind.bytes()
}
