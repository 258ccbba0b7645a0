//! Rekey: the two sides of a sealed connection exchange fresh keys.

use crate::Error;
use crate::bytes::{View, Writer};
use crate::declare::{Value, header};

header! {
    /// A message of the exchange that gives a connection the keys of its next generation (WIRE-19).
    Rekey, 120 bytes;
    /// Which generation that is.
    20 generation: u16;
    /// The message.
    24 message: RekeyMessage;
    flags:
    /// The server's answer.
    1 answer;
}

/// A message of the key exchange; zeros follow one that is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RekeyMessage(pub [u8; Self::BYTES]);

impl RekeyMessage {
    /// Bytes of the longest.
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
