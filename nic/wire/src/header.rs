//! The common header (WIRE-6), and how long the headers of each kind are.

use crate::bytes::{View, Writer};
use crate::switch_view::udp_payload_offset;
use crate::{Error, VERSION, ack, close, data, handshake, nack, probe, pull};

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 28;

/// Byte offsets in the common header; every kind goes on at [`COMMON_BYTES`].
pub mod field {
    /// `u8`, [`VERSION`](crate::VERSION).
    pub const VERSION: usize = 0;
    /// `u8`, [`Kind`](super::Kind).
    pub const KIND: usize = 1;
    /// `u8`, meaning by kind.
    pub const FLAGS: usize = 2;
    /// `u32`, the connection's number at the frame's receiver.
    pub const CONNECTION: usize = 4;
    /// `u64`, what the receiver demands to see.
    pub const COOKIE: usize = 8;
    /// `u64`, the emulation header; outside the CRC since switches rewrite it.
    pub const VIRTUAL_TIME: usize = 16;
    /// `u32`, CRC32C.
    pub const HEADER_CRC: usize = 24;
}

/// What a frame is; the value is the byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A piece of a message.
    Data = 1,
    /// What the receiver got.
    Ack = 2,
    /// A trimmed frame arrived.
    Nack = 3,
    /// A client asks for a connection.
    Connect = 4,
    /// The server's answer.
    Accept = 5,
    /// No more data, or the acknowledgement of that.
    Close = 6,
    /// No such connection.
    Reset = 7,
    /// Asks whether a path is alive.
    Probe = 8,
    /// Says so.
    ProbeAck = 9,
    /// Credit from a receiver.
    Pull = 10,
    /// A sender asks for credit.
    PullRequest = 11,
}

impl Kind {
    /// Every kind, in the order of their values.
    pub const ALL: [Self; 11] = [
        Self::Data,
        Self::Ack,
        Self::Nack,
        Self::Connect,
        Self::Accept,
        Self::Close,
        Self::Reset,
        Self::Probe,
        Self::ProbeAck,
        Self::Pull,
        Self::PullRequest,
    ];

    /// Return the kind with this byte on the wire.
    #[inline]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Data,
            2 => Self::Ack,
            3 => Self::Nack,
            4 => Self::Connect,
            5 => Self::Accept,
            6 => Self::Close,
            7 => Self::Reset,
            8 => Self::Probe,
            9 => Self::ProbeAck,
            10 => Self::Pull,
            11 => Self::PullRequest,
            _ => return None,
        })
    }

    /// Return the bytes of our header, common part included, without payload.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Data => data::BYTES,
            Self::Ack => ack::BYTES,
            Self::Nack => nack::BYTES,
            Self::Connect | Self::Accept => handshake::BYTES,
            Self::Close => close::CLOSE_BYTES,
            Self::Reset => close::RESET_BYTES,
            Self::Probe | Self::ProbeAck => probe::BYTES,
            Self::Pull => pull::PULL_BYTES,
            Self::PullRequest => pull::REQUEST_BYTES,
        }
    }
}

/// Return the bytes of all headers of a frame: Ethernet, IP, UDP and ours. The payload starts there.
#[inline]
pub const fn header_bytes(v6: bool, kind: Kind) -> usize {
    udp_payload_offset(v6) + kind.bytes()
}

/// The fields of the common header that are not the codec's own business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// The connection's number at the frame's receiver; 0 in a Connect.
    pub connection: u32,
    /// What the receiver demands to see, so that a stranger's frame changes nothing; 0 in a Connect (WIRE-16).
    pub cookie: u64,
    /// Scenario time at which the frame is where it is now, in picoseconds; 0 = not emulated.
    pub virtual_time_ps: u64,
}

impl Common {
    /// Check version and kind (WIRE-9).
    pub(crate) fn parse(bytes: &[u8; COMMON_BYTES]) -> Result<(Self, Kind), Error> {
        let view = View(bytes);
        if view.u8::<{ field::VERSION }>() != VERSION {
            return Err(Error::Version);
        }
        let kind = Kind::from_u8(view.u8::<{ field::KIND }>()).ok_or(Error::Kind)?;
        let common = Self {
            connection: view.u32::<{ field::CONNECTION }>(),
            cookie: view.u64::<{ field::COOKIE }>(),
            virtual_time_ps: view.u64::<{ field::VIRTUAL_TIME }>(),
        };
        Ok((common, kind))
    }

    /// Write everything but the CRC, which is left 0.
    pub(crate) fn emit(&self, bytes: &mut [u8; COMMON_BYTES], kind: Kind, flags: u8) {
        Writer(bytes)
            .array::<{ field::VERSION }, 4>([VERSION, kind as u8, flags, 0])
            .u32::<{ field::CONNECTION }>(self.connection)
            .u64::<{ field::COOKIE }>(self.cookie)
            .u64::<{ field::VIRTUAL_TIME }>(self.virtual_time_ps)
            .u32::<{ field::HEADER_CRC }>(0);
    }
}
