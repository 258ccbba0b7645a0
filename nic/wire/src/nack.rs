//! Nack: a frame arrived trimmed, or a packet is missing from its section.

use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::header::field::FLAGS;
use crate::{Error, EvPort};

mod field {
    pub const PSN: usize = 28;
    pub const TIMESTAMP_ECHO: usize = 36;
    pub const PORT: usize = 44;
    pub const HOPS: usize = 46;
    pub const MARKED: usize = 47;
    pub const PAYLOAD_BYTES: usize = 48;
    pub const RESERVED: usize = 50;
}

const MISSING: u8 = 1;

/// The receiver's answer to a trimmed frame, or to a frame that proves an earlier packet lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nack {
    /// Sequence number of the packet that was trimmed, or is missing.
    pub psn: u64,
    /// Send timestamp of the answered frame, in picoseconds of the sender's clock.
    pub timestamp_echo_ps: u64,
    /// UDP source port of that frame: the EV to blame.
    pub port: EvPort,
    /// Switches that it crossed.
    pub hops: u8,
    /// The frame was marked.
    pub marked: bool,
    /// Payload that was cut off, in bytes; 0 of a missing packet.
    pub payload_bytes: u16,
    /// The packet was not trimmed but lost: the answered frame was sent after it on the same path and arrived without it.
    pub missing: bool,
}

impl Header for Nack {
    const BYTES: usize = 52;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        Ok(Self {
            psn: view.u64::<{ field::PSN }>(),
            timestamp_echo_ps: view.u64::<{ field::TIMESTAMP_ECHO }>(),
            port: EvPort::new(view.u16::<{ field::PORT }>()),
            hops: view.u8::<{ field::HOPS }>(),
            marked: view.u8::<{ field::MARKED }>() != 0,
            payload_bytes: view.u16::<{ field::PAYLOAD_BYTES }>(),
            missing: view.u8::<FLAGS>() & MISSING != 0,
        })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?)
            .u64::<{ field::PSN }>(self.psn)
            .u64::<{ field::TIMESTAMP_ECHO }>(self.timestamp_echo_ps)
            .u16::<{ field::PORT }>(self.port.number())
            .u8::<{ field::HOPS }>(self.hops)
            .u8::<{ field::MARKED }>(u8::from(self.marked))
            .u16::<{ field::PAYLOAD_BYTES }>(self.payload_bytes)
            .u16::<{ field::RESERVED }>(0);
        Ok(())
    }
    fn flags(&self) -> u8 {
        if self.missing { MISSING } else { 0 }
    }
}
