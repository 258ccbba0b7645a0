//! Pull and PullRequest: credit granted by a receiver and requested by a sender.

use crate::declare::header;

header! {
    /// Grants credit. A lost Pull is harmless: the next one carries the total.
    Pull, 32 bytes;
    /// Wire bytes of credit since the connection was established.
    24 credit_bytes: u64;
}

header! {
    /// Requests credit.
    PullRequest, 40 bytes;
    /// Wire bytes of credit since the connection was established that the sender can use, without
    /// trimmed frames, which the receiver counts itself.
    24 demand_bytes: u64;
    /// The largest [`Pull::credit_bytes`] received.
    32 pulled_bytes: u64;
}
