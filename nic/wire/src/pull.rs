//! Pull and PullRequest: credit that a receiver grants, and credit that a sender asks for.

use crate::declare::header;

header! {
    /// All credit from a receiver so far. A lost Pull does no harm: the next one carries the total.
    Pull, 32 bytes;
    /// Wire bytes of credit since the connection began.
    24 credit_bytes: u64;
}

header! {
    /// What a sender asks its receiver for.
    PullRequest, 40 bytes;
    /// Wire bytes of credit since the connection began that the sender can use. It leaves out what trimmed frames need: the
    /// receiver sees these itself.
    24 demand_bytes: u64;
    /// The largest [`Pull::credit_bytes`] that it has seen.
    32 pulled_bytes: u64;
}
