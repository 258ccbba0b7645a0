//! The result of a flow.

use serde::Serialize;
use spray_core::flow::{ReceiverStats, SenderStats};

/// One flow: a message from one host to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Number in the run, from 0.
    pub flow: u32,
    /// Name of its workload, or of a part of it.
    pub workload: String,
    /// The balancer's name.
    pub balancer: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// Name of the sending host.
    pub src: String,
    /// Name of the receiving host.
    pub dst: String,
    /// Payload bytes of the message.
    pub bytes: u64,
    /// Time at which the sender got the message.
    pub start_us: f64,
    /// Time at which the receiver had the message, if it did.
    pub end_us: Option<f64>,
    /// Flow completion time, `end_us - start_us`.
    pub fct_us: Option<f64>,
    /// The reason why it is incomplete.
    pub incomplete: Option<Incomplete>,
    /// Elapsed time of an incomplete flow until its connection gave up or the run ended.
    pub elapsed_us: Option<f64>,
    /// Time at which its connection gave up.
    pub given_up_us: Option<f64>,
    /// Number within the workload of the collective that it is part of.
    pub step: Option<u32>,
    /// Completion time of the message alone in the fabric.
    pub unloaded_fct_us: f64,
    /// Transmission time on the slower of the two hosts' links.
    pub link_us: f64,
    /// The least time from then until the receiver has the last bit.
    pub last_bit_us: f64,
    /// Counters of the sender.
    pub sender: SenderStats,
    /// Counters of the receiver.
    pub receiver: ReceiverStats,
}

impl FlowResult {
    /// Returns the completion or elapsed time; `None` if it did not start.
    pub(crate) fn time_us(&self) -> Option<f64> {
        self.fct_us.or(self.elapsed_us)
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        if self.fct_us.is_some() { self.bytes } else { self.receiver.bytes }
    }
}

/// The reason why a flow is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// Its connection gave up: no packet was acknowledged for `give_up_us`.
    GivenUp,
    /// It was running when the time limit ended the run.
    CutOff,
    /// It did not start: it waits for an incomplete flow, or for a time after the end of the run.
    NotStarted,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}
