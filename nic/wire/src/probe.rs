//! Probe and ProbeAck: is the path of an EV alive?

use crate::declare::header;
use crate::{EvPort, Time};

header! {
    /// A probe; the EV under test is the frame's UDP source port. It is as long as its answer.
    Probe, 40 bytes;
    /// The sender's own number for the probe; echoed.
    24 token: u64;
    /// When it was sent, by the sender's clock; echoed.
    32 timestamp: Time;
}

header! {
    /// The answer to a probe.
    ProbeAck, 40 bytes;
    /// UDP source port of the probe: the EV that is alive.
    20 port: EvPort;
    /// Switches that the probe crossed.
    22 hops: u8;
    /// The probe was marked.
    23 marked: bool;
    /// Token of the probe.
    24 token: u64;
    /// Timestamp of the probe.
    32 timestamp: Time;
}
