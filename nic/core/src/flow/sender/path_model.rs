//! What a sender learns of its path while it sends.

pub(super) mod calibration;
pub(super) mod competing_traffic;
pub(super) mod lateness;
pub(super) mod right_queue;
pub(super) mod short_queues;
