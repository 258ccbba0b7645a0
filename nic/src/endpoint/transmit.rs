//! Frames on their way to the device.

pub(crate) mod control_queue;
pub(crate) mod prefetch;
pub(crate) mod tx;
