//! The state of a sender other than that of loss recovery, congestion control and the balancer.

pub(super) mod grant;
pub(super) mod limits;
pub(super) mod liveness;
pub(super) mod probes;
pub(super) mod retry;
pub(super) mod stats;
