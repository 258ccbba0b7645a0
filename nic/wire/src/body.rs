//! What a frame of any kind says.

use crate::declare::Header;
use crate::kind::{Kind, kinds};
use crate::offsets::udp_payload_offset;
use crate::{Accept, Ack, Close, Connect, Data, Error, Nack, Probe, ProbeAck, Pull, PullRequest, Rekey, Reset, Retry};

/// Makes [`Body`] from the list of kinds.
macro_rules! body {
    ($($(#[$about:meta])+ $kind:ident = $byte:literal $name:literal;)+) => {
        impl Kind {
            /// Return the bytes of our header, common part included, without payload.
            #[inline]
            pub const fn bytes(self) -> usize {
                match self { $(Self::$kind => $kind::BYTES,)+ }
            }
        }

        /// The part of our header that depends on the kind.
        //= docs/specs/wire.md#WIRE-8 other kinds
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

            /// Write the body into `header`, which is ours from its first byte on. Checksums are left 0.
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

kinds! { body }

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
