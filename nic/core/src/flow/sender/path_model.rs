//! The model of the path that a sender learns.

pub(super) mod calibration;
pub(super) mod competing_traffic;
pub(super) mod delay_marking;
pub(super) mod rss_queue;
pub(super) mod short_queues;
