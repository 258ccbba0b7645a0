//! Pull and PullRequest: credit that a receiver grants, and what a sender wants of it.

use crate::Error;
use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};

mod field {
    pub const CREDIT: usize = 28;
    pub const DEMAND: usize = 28;
    pub const PULLED: usize = 36;
}

/// Credit from a receiver, all of it so far: the next one heals the loss of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// Wire bytes of credit since the connection began.
    pub credit_bytes: u64,
}

impl Header for Pull {
    const BYTES: usize = 36;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        Ok(Self { credit_bytes: View(chunk::<{ Self::BYTES }>(header)?).u64::<{ field::CREDIT }>() })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?).u64::<{ field::CREDIT }>(self.credit_bytes);
        Ok(())
    }
}

/// What a sender asks its receiver for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Wire bytes of credit since the connection began that it has a use for, what trimmed frames need left out: those
    /// the receiver sees itself.
    pub demand_bytes: u64,
    /// The largest [`Pull::credit_bytes`] that it has seen.
    pub pulled_bytes: u64,
}

impl Header for PullRequest {
    const BYTES: usize = 44;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let view = View(chunk::<{ Self::BYTES }>(header)?);
        Ok(Self { demand_bytes: view.u64::<{ field::DEMAND }>(), pulled_bytes: view.u64::<{ field::PULLED }>() })
    }

    fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        Writer(chunk_mut::<{ Self::BYTES }>(header)?)
            .u64::<{ field::DEMAND }>(self.demand_bytes)
            .u64::<{ field::PULLED }>(self.pulled_bytes);
        Ok(())
    }
}
