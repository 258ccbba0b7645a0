//! Frames on their way to the device.

pub(crate) mod control_queue;
pub(crate) mod link;
pub(crate) mod prefetch;
