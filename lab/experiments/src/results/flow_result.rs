//! What came of a flow.

use spray_core::flow::{ReceiverStats, SenderStats};

/// One flow: a message from one host to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// The flow's number in the run, from 0.
    pub flow: u32,
    /// The name of its workload, or of the part of one.
    pub workload: String,
    /// What chose the paths of its packets.
    pub balancer: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// Name of the sending host.
    pub src: String,
    /// Name of the receiving host.
    pub dst: String,
    /// Payload bytes of the message.
    pub bytes: u64,
    /// When the sender was given the message.
    pub start_us: f64,
    /// When the receiver had all of it; `None` if it never did.
    pub end_us: Option<f64>,
    /// Flow completion time, `end_us - start_us`.
    pub fct_us: Option<f64>,
    /// Why it did not complete, if it did not.
    pub incomplete: Option<Incomplete>,
    /// Of a flow that started and did not complete: the time from its start until its connection was given up, or the run ended.
    pub had_us: Option<f64>,
    /// When its connection was given up.
    pub given_up_us: Option<f64>,
    /// The collective that it is part of, by number within the workload.
    pub step: Option<u32>,
    /// The time that the message takes alone in the fabric.
    pub alone_us: f64,
    /// For how long the message keeps the slower of the two hosts' links busy.
    pub link_us: f64,
    /// The least time after that until its last bit is at the receiver.
    pub way_us: f64,
    /// What its sender counted.
    pub sender: SenderStats,
    /// What its receiver counted.
    pub receiver: ReceiverStats,
}

impl FlowResult {
    /// The completion time, or the time that it had; `None` if it did not start.
    pub(crate) fn time_us(&self) -> Option<f64> {
        self.fct_us.or(self.had_us)
    }

    /// Payload bytes that arrived.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        if self.fct_us.is_some() { self.bytes } else { self.receiver.bytes }
    }
}

/// Why a flow did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// Its connection was given up: no packet of it was acknowledged for `give_up_us`.
    GivenUp,
    /// It had started when the time limit ended the run.
    CutOff,
    /// It did not start: it waits for a flow that did not complete, or for a time after the end of the run.
    NotStarted,
}

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GivenUp => "given-up",
            Self::CutOff => "cut-off",
            Self::NotStarted => "not-started",
        })
    }
}
