//! What starts flows at the end of others.

use spray_fabric::{Start, Starts, Trigger, TriggerKind};

/// The triggers of a matrix, which flows signal them, and which they start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggers {
    /// What each does at a signal.
    pub list: Vec<Trigger>,
    /// The triggers of each flow: indices into `list`.
    pub of_flow: Vec<FlowTriggers>,
}

/// The triggers of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowTriggers {
    /// The one that starts the flow, in place of a start time.
    pub start: Option<usize>,
    /// The one to signal when the sender has the last acknowledgement.
    pub on_sent: Option<usize>,
    /// The one to signal when the receiver has the last byte.
    pub on_received: Option<usize>,
}

/// Hosts that send message after message, in the order of the flows. Flow number `f` of `n` hosts is one of host `f % n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedLoop {
    /// Most messages of a host that are open at once.
    pub open: u32,
    /// When messages stop to follow others.
    pub until_ps: Option<u64>,
}

impl ClosedLoop {
    /// Whether `flow` waits for another to end, and does not begin at its start.
    //= docs/specs/closed-loop.md#CL-1 the next message when
    fn waits(&self, flow: usize, hosts: usize) -> bool {
        flow / hosts >= self.open as usize
    }

    /// One trigger a host: every message that waits does so for it, and every one signals it.
    pub(super) fn triggers(&self, flows: usize, hosts: usize) -> Triggers {
        let of = |flow: usize| {
            let own = Some(flow % hosts);
            FlowTriggers { start: own.filter(|_| self.waits(flow, hosts)), on_sent: own, on_received: None }
        };
        let kind = self.until_ps.map_or(TriggerKind::Multishot, TriggerKind::MultishotUntil);
        Triggers { list: vec![Trigger::new(kind); hosts], of_flow: (0..flows).map(of).collect() }
    }
}

impl Triggers {
    /// Adds those of `flows` more flows; they need not have any.
    pub(super) fn append(&mut self, more: Self, flows: usize) {
        let first = self.list.len();
        let moved = |trigger: Option<usize>| trigger.map(|trigger| trigger + first);
        self.list.extend(more.list.into_iter().map(|trigger| Trigger { then: moved(trigger.then), ..trigger }));
        let all = self.of_flow.len() + flows;
        self.of_flow.extend(more.of_flow.into_iter().map(|own| FlowTriggers {
            start: moved(own.start),
            on_sent: moved(own.on_sent),
            on_received: moved(own.on_received),
        }));
        self.of_flow.resize(all, FlowTriggers::default());
    }

    /// The first flow that never starts even if every started flow ends; `None` if all flows start.
    pub fn never_started(&self) -> Option<usize> {
        let start = |own: &FlowTriggers| (own.start.map_or(Start::At(0), Start::On), None);
        let ended = |flow: usize| [self.of_flow[flow].on_sent, self.of_flow[flow].on_received].into_iter().flatten();
        Starts::new(self.of_flow.iter().map(start), &self.list).never_started(ended)
    }
}
