//! Rekey: both sides of a sealed connection exchange fresh keys.

use crate::Error;
use crate::bytes::{View, Writer};
use crate::declare::{Value, header};

header! {
    /// A message of the exchange for the next generation of keys (WIRE-19).
    Rekey, 120 bytes;
    /// Number of that generation.
    20 generation: u16;
    /// Key exchange message.
    24 message: RekeyMessage;
    flags:
    /// This is the server's response.
    1 answer;
}

/// A key exchange message, padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RekeyMessage(pub [u8; Self::BYTES]);

impl RekeyMessage {
    /// Bytes of the longest message.
    pub const BYTES: usize = 96;
}

impl Default for RekeyMessage {
    fn default() -> Self {
        Self([0; Self::BYTES])
    }
}

impl Value for RekeyMessage {
    #[inline(always)]
    fn read<const AT: usize, const N: usize>(header: View<'_, N>) -> Result<Self, Error> {
        Ok(Self(header.array::<AT, { Self::BYTES }>()))
    }

    #[inline(always)]
    fn write<const AT: usize, const N: usize>(self, header: &mut Writer<'_, N>) {
        header.array::<AT, { Self::BYTES }>(self.0);
    }
}
