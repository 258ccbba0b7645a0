//! Pull and PullRequest: credit that a receiver grants, and credit that a sender asks for.

use crate::Error;
use crate::body::Header;
use crate::bytes::{View, Writer, chunk, chunk_mut};

mod field {
    pub const CREDIT: usize = 28;
    pub const DEMAND: usize = 28;
    pub const PULLED: usize = 36;
}

/// All credit from a receiver so far. A lost Pull does no harm: the next one carries the total.
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
    /// Wire bytes of credit since the connection began that the sender can use. It leaves out what trimmed frames need: the
    /// receiver sees these itself.
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
