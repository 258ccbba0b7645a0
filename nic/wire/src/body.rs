//! The part of the spray header that depends on the kind.

use crate::declare::Header;
use crate::kind::{Kind, kinds};
use crate::offsets::udp_payload_offset;
use crate::{Accept, Ack, Close, Connect, Data, Error, Nack, Probe, ProbeAck, Pull, PullRequest, Rekey, Reset, Retry};

/// Defines [`Body`] from the list of kinds.
macro_rules! body {
    ($($(#[$about:meta])+ $kind:ident = $byte:literal $name:literal;)+) => {
        impl Kind {
            /// Returns the bytes of the spray header, without echoes and payload.
            #[inline]
            pub const fn bytes(self) -> usize {
                match self { $(Self::$kind => $kind::BYTES,)+ }
            }
        }

        /// The part of the spray header that depends on the kind.
        //= docs/specs/wire.md#WIRE-8 other kinds
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$about])+ $kind($kind),)+
        }

        impl Body {
            /// Returns the kind.
            #[inline]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)+ }
            }

            #[inline(always)]
            pub(crate) fn parse(kind: Kind, header: &[u8]) -> Result<Self, Error> {
                Ok(match kind { $(Kind::$kind => Self::$kind(Header::parse(header)?),)+ })
            }

            /// Writes the body into a spray header. Checksums are left 0.
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
    /// Returns the bytes of the spray header, echoes included, without payload.
    #[inline]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Ack(ack) => Ack::BYTES + ack.echoes.bytes(),
            _ => self.kind().bytes(),
        }
    }

    /// Returns the bytes that follow the header before trimming: payload or key exchange message.
    #[inline]
    pub const fn payload_bytes(&self) -> usize {
        match self {
            Self::Data(data) => data.payload_bytes as usize,
            Self::Connect(terms) | Self::Accept(terms) => terms.exchange_bytes as usize,
            _ => 0,
        }
    }

    /// Returns the bytes before the payload: the Ethernet, IP, UDP and spray headers.
    #[inline]
    pub const fn header_bytes(&self, v6: bool) -> usize {
        udp_payload_offset(v6) + self.bytes()
    }
}

/// Returns the bytes before the payload: the Ethernet, IP, UDP and spray headers, without echoes.
#[inline]
pub const fn header_bytes(v6: bool, kind: Kind) -> usize {
    udp_payload_offset(v6) + kind.bytes()
}
