//! The common header (WIRE-6), which begins every spray header.

use crate::bytes::{View, Writer};
use crate::{Error, Kind, VERSION_SEALED};

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 20;

/// Byte offsets in the common header; the fields of a kind begin at [`COMMON_BYTES`].
pub mod field {
    /// `u8`, [`VERSION`](crate::VERSION).
    pub const VERSION: usize = 0;
    /// `u8`, [`Kind`](crate::Kind).
    pub const KIND: usize = 1;
    /// `u8`, meaning by kind.
    pub const FLAGS: usize = 2;
    /// `u8`, index in [`Ports`](crate::Ports) at which the sender receives.
    pub const SHARD: usize = 3;
    /// `u32`, the connection's number at the frame's receiver.
    pub const CONNECTION: usize = 4;
    /// `u64`, the cookie that the receiver requires; in a sealed frame the frame number.
    pub const COOKIE: usize = 8;
    /// `u32`, the checksum; in a sealed frame the first bytes of the header's tag.
    pub const HEADER_CHECKSUM: usize = 16;
}

/// The fields of the common header that callers set and read.
//= docs/specs/wire.md#WIRE-6 common header
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// The connection's number at the frame's receiver; 0 in a Connect.
    pub connection: u32,
    /// The cookie that the receiver requires, against spoofing; 0 in a Connect (WIRE-16). In a
    /// sealed frame the frame number (WIRE-18).
    pub cookie: u64,
    /// Index in [`Ports`](crate::Ports) at which the sender receives, 0..64 (WIRE-1).
    pub shard: u8,
}

impl Common {
    /// Checks that the version is `EXPECTED` and the kind is known (WIRE-9).
    #[inline(always)]
    pub(crate) fn parse<const EXPECTED: u8>(bytes: &[u8; COMMON_BYTES]) -> Result<(Self, Kind), Error> {
        let view = View(bytes);
        match view.u8::<{ field::VERSION }>() {
            version if version == EXPECTED => {}
            VERSION_SEALED => return Err(Error::Sealed),
            _ => return Err(Error::Version),
        }
        let kind = Kind::from_u8(view.u8::<{ field::KIND }>()).ok_or(Error::Kind)?;
        let common = Self {
            connection: view.u32::<{ field::CONNECTION }>(),
            cookie: view.u64::<{ field::COOKIE }>(),
            shard: view.u8::<{ field::SHARD }>(),
        };
        Ok((common, kind))
    }

    /// Writes all fields but the checksum or tag, which is left 0.
    #[inline(always)]
    pub(crate) fn emit(&self, bytes: &mut [u8; COMMON_BYTES], version: u8, kind: Kind, flags: u8) {
        Writer(bytes)
            .array::<{ field::VERSION }, 4>([version, kind as u8, flags, self.shard])
            .u32::<{ field::CONNECTION }>(self.connection)
            .u64::<{ field::COOKIE }>(self.cookie)
            .u32::<{ field::HEADER_CHECKSUM }>(0);
    }
}
