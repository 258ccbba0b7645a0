//! Probe and ProbeAck: is the path of an EV alive?

use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::{Error, EvPort};

mod field {
    pub const TOKEN: usize = 28;
    pub const TIMESTAMP: usize = 36;
    pub const PORT: usize = 44;
    pub const HOPS: usize = 46;
    pub const MARKED: usize = 47;
}

/// A probe; the EV under test is the frame's UDP source port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The sender's own number for the probe; echoed.
    pub token: u64,
    /// When it was sent, in picoseconds of the sender's clock; echoed.
    pub timestamp_ps: u64,
}

impl Header for Probe {
    const BYTES: usize = 48;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        Ok(Self { token: view.u64::<{ field::TOKEN }>(), timestamp_ps: view.u64::<{ field::TIMESTAMP }>() })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?)
            .u64::<{ field::TOKEN }>(self.token)
            .u64::<{ field::TIMESTAMP }>(self.timestamp_ps)
            .u32::<{ field::PORT }>(0);
        Ok(())
    }
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeAck {
    /// Token of the probe.
    pub token: u64,
    /// Timestamp of the probe, in picoseconds.
    pub timestamp_ps: u64,
    /// UDP source port of the probe: the EV that is alive.
    pub port: EvPort,
    /// Switches that the probe crossed.
    pub hops: u8,
    /// The probe was marked.
    pub marked: bool,
}

impl Header for ProbeAck {
    const BYTES: usize = 48;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        Ok(Self {
            token: view.u64::<{ field::TOKEN }>(),
            timestamp_ps: view.u64::<{ field::TIMESTAMP }>(),
            port: EvPort::new(view.u16::<{ field::PORT }>()),
            hops: view.u8::<{ field::HOPS }>(),
            marked: view.u8::<{ field::MARKED }>() != 0,
        })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?)
            .u64::<{ field::TOKEN }>(self.token)
            .u64::<{ field::TIMESTAMP }>(self.timestamp_ps)
            .u16::<{ field::PORT }>(self.port.number())
            .u8::<{ field::HOPS }>(self.hops)
            .u8::<{ field::MARKED }>(u8::from(self.marked));
        Ok(())
    }
}
