//! Ack: which packets arrived, and what the path of the one that triggered it was like (WIRE-8).

use crate::body::Header;
use crate::bytes::{View, Writer};
use crate::{Echoes, Error, EvPort, echoes};

/// Packets that the selective bitmap covers.
pub const BITMAP_BITS: u32 = 256;

mod field {
    pub const CUMULATIVE: usize = 28;
    pub const TIMESTAMP_ECHO: usize = 36;
    pub const SACK_BASE: usize = 44;
    pub const BITMAP: usize = 52;
    pub const PORT: usize = 84;
    pub const HOPS: usize = 86;
    pub const PACKETS: usize = 87;
    pub const MARKED_PACKETS: usize = 88;
    pub const FLAGS2: usize = 89;
    pub const ECHOES: usize = 90;
    pub const RESERVED: usize = 91;
    pub const MAX_DATA: usize = 92;
}

const MARKED: u8 = 1;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Every packet with a lower sequence number was received.
    pub cumulative: u64,
    /// Send timestamp of the packet that triggered the ACK, in picoseconds of the sender's clock.
    pub timestamp_echo_ps: u64,
    /// Sequence number of bit 0 of the bitmap.
    pub sack_base: u64,
    /// Bit `i % 64` of word `i / 64` (least significant first): packet `sack_base + i` was received.
    pub bitmap: [u64; 4],
    /// UDP source port of the packet that triggered the ACK: the EV to credit.
    pub port: EvPort,
    /// Switches that this packet crossed.
    pub hops: u8,
    /// Data packets received since the last ACK, this one included.
    pub packets: u8,
    /// How many of them were marked.
    pub marked_packets: u8,
    /// The packet that triggered the ACK was marked.
    pub marked: bool,
    /// Message bytes that the sender may send over the connection's life (flow control).
    pub max_data: u64,
    /// EVs of the other packets that it acknowledges; empty unless the receiver is set to send them.
    pub echoes: Echoes,
}

impl Ack {
    /// Return whether the bitmap says that packet `psn` was received; `false` outside what it covers.
    #[inline]
    pub const fn selected(&self, psn: u64) -> bool {
        match psn.checked_sub(self.sack_base) {
            Some(i) if i < BITMAP_BITS as u64 => self.bitmap[(i / 64) as usize] >> (i % 64) & 1 == 1,
            _ => false,
        }
    }
}

impl Header for Ack {
    const BYTES: usize = 100;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let (bytes, rest) = header.split_first_chunk::<{ Self::BYTES }>().ok_or(Error::Truncated)?;
        let view = View(bytes);
        Ok(Self {
            cumulative: view.u64::<{ field::CUMULATIVE }>(),
            timestamp_echo_ps: view.u64::<{ field::TIMESTAMP_ECHO }>(),
            sack_base: view.u64::<{ field::SACK_BASE }>(),
            bitmap: [
                view.u64::<{ field::BITMAP }>().swap_bytes(),
                view.u64::<{ field::BITMAP + 8 }>().swap_bytes(),
                view.u64::<{ field::BITMAP + 16 }>().swap_bytes(),
                view.u64::<{ field::BITMAP + 24 }>().swap_bytes(),
            ],
            port: EvPort::new(view.u16::<{ field::PORT }>()),
            hops: view.u8::<{ field::HOPS }>(),
            packets: view.u8::<{ field::PACKETS }>(),
            marked_packets: view.u8::<{ field::MARKED_PACKETS }>(),
            marked: view.u8::<{ field::FLAGS2 }>() & MARKED != 0,
            max_data: view.u64::<{ field::MAX_DATA }>(),
            echoes: Echoes::parse(view.u8::<{ field::ECHOES }>(), rest)?,
        })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        let (bytes, rest) = header.split_first_chunk_mut::<{ Self::BYTES }>().ok_or(Error::BufferTooSmall)?;
        let [a, b, c, d] = self.bitmap;
        Writer(bytes)
            .u64::<{ field::CUMULATIVE }>(self.cumulative)
            .u64::<{ field::TIMESTAMP_ECHO }>(self.timestamp_echo_ps)
            .u64::<{ field::SACK_BASE }>(self.sack_base)
            .u64::<{ field::BITMAP }>(a.swap_bytes())
            .u64::<{ field::BITMAP + 8 }>(b.swap_bytes())
            .u64::<{ field::BITMAP + 16 }>(c.swap_bytes())
            .u64::<{ field::BITMAP + 24 }>(d.swap_bytes())
            .u16::<{ field::PORT }>(self.port.number())
            .u8::<{ field::HOPS }>(self.hops)
            .u8::<{ field::PACKETS }>(self.packets)
            .u8::<{ field::MARKED_PACKETS }>(self.marked_packets)
            .u8::<{ field::FLAGS2 }>(if self.marked { MARKED } else { 0 })
            .u8::<{ field::ECHOES }>(self.echoes.len() as u8)
            .u8::<{ field::RESERVED }>(0)
            .u64::<{ field::MAX_DATA }>(self.max_data);
        self.echoes.emit(rest)
    }
}

/// Bytes of the whole header of the Ack in `header`, with its echoes.
#[inline]
pub(crate) fn bytes(start: &[u8]) -> Result<usize, Error> {
    let count = usize::from(*start.get(field::ECHOES).ok_or(Error::Truncated)?);
    if count > crate::MAX_ECHOES { Err(Error::Value) } else { Ok(Ack::BYTES + echoes::bytes_of(count)) }
}
