//! What a sender keeps beside its recovery, its congestion control and its balancer.

pub(super) mod grant;
pub(super) mod limits;
pub(super) mod liveness;
pub(super) mod probes;
pub(super) mod retry;
pub(super) mod stats;
