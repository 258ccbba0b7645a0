//! Probe and ProbeAck: test whether the path of an EV is alive.

use crate::declare::header;
use crate::{EvPort, Time};

header! {
    /// A probe; the frame's UDP source port is the EV under test. It is as long as its response.
    Probe, 40 bytes;
    /// Number chosen by the sender; echoed.
    24 token: u64;
    /// Send time by the sender's clock; echoed.
    32 timestamp: Time;
}

header! {
    /// The response to a probe.
    ProbeAck, 40 bytes;
    /// UDP source port of the probe: the EV that is alive.
    20 port: EvPort;
    /// Hop count of the probe.
    22 hops: u8;
    /// The probe was marked.
    23 marked: bool;
    /// Token of the probe.
    24 token: u64;
    /// Timestamp of the probe.
    32 timestamp: Time;
}
