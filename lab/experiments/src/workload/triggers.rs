//! Triggers, which start flows at the end of others.

use spray_fabric::{FlowScheduler, Start, Trigger, TriggerKind};

/// Triggers, and the flows that signal and wait for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggers {
    pub list: Vec<Trigger>,
    /// By flow, indices into `list`.
    pub of_flow: Vec<FlowTriggers>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowTriggers {
    /// Starts the flow, in place of a start time.
    pub start: Option<usize>,
    /// Signalled when the sender has the last acknowledgement.
    pub on_sent: Option<usize>,
    /// Signalled when the receiver has the last byte.
    pub on_received: Option<usize>,
}

/// Hosts that send messages in turn. Flow `f` of `n` hosts belongs to host `f % n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedLoop {
    /// Maximum number of concurrent messages of a host.
    pub open: u32,
    /// End of message starts.
    pub until_ps: Option<u64>,
}

impl ClosedLoop {
    //= docs/specs/closed-loop.md#CL-1 the next message when
    fn waits(&self, flow: usize, hosts: usize) -> bool {
        flow / hosts >= self.open as usize
    }

    /// Creates a trigger for each host, which all its messages signal, and waiting ones wait for.
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

    /// Returns the first flow that never starts even if all started ones end.
    pub fn never_started(&self) -> Option<usize> {
        let start = |own: &FlowTriggers| (own.start.map_or(Start::At(0), Start::OnTrigger), None);
        let ended = |flow: usize| [self.of_flow[flow].on_sent, self.of_flow[flow].on_received].into_iter().flatten();
        FlowScheduler::new(self.of_flow.iter().map(start), &self.list).never_started(ended)
    }
}
