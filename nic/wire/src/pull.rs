//! Pull and PullRequest: credit that a receiver grants, and what a sender wants of it.

use crate::bytes::{View, Writer};

/// Bytes of the header of a Pull, common part included.
pub(crate) const PULL_BYTES: usize = 36;
/// Bytes of the header of a PullRequest, common part included.
pub(crate) const REQUEST_BYTES: usize = 44;

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

impl Pull {
    pub(crate) fn parse(bytes: &[u8; PULL_BYTES]) -> Self {
        Self { credit_bytes: View(bytes).u64::<{ field::CREDIT }>() }
    }

    pub(crate) fn emit(&self, bytes: &mut [u8; PULL_BYTES]) {
        Writer(bytes).u64::<{ field::CREDIT }>(self.credit_bytes);
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

impl PullRequest {
    pub(crate) fn parse(bytes: &[u8; REQUEST_BYTES]) -> Self {
        let view = View(bytes);
        Self { demand_bytes: view.u64::<{ field::DEMAND }>(), pulled_bytes: view.u64::<{ field::PULLED }>() }
    }

    pub(crate) fn emit(&self, bytes: &mut [u8; REQUEST_BYTES]) {
        Writer(bytes).u64::<{ field::DEMAND }>(self.demand_bytes).u64::<{ field::PULLED }>(self.pulled_bytes);
    }
}
