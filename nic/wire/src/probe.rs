//! Probe and ProbeAck: is the path of an EV alive?

use crate::EvPort;
use crate::declare::header;

header! {
    /// A probe; the EV under test is the frame's UDP source port. It is as long as its answer.
    Probe, 48 bytes;
    /// The sender's own number for the probe; echoed.
    28 token: u64;
    /// When it was sent, in picoseconds of the sender's clock; echoed.
    36 timestamp_ps: u64;
}

header! {
    /// The answer to a probe.
    ProbeAck, 48 bytes;
    /// Token of the probe.
    28 token: u64;
    /// Timestamp of the probe, in picoseconds.
    36 timestamp_ps: u64;
    /// UDP source port of the probe: the EV that is alive.
    44 port: EvPort;
    /// Switches that the probe crossed.
    46 hops: u8;
    /// The probe was marked.
    47 marked: bool;
}
