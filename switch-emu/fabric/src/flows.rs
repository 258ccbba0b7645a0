//! Flows as engines take them: who sends what to whom, on which connection, and what starts it.

use std::collections::VecDeque;

/// One flow: a message from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Sending host.
    pub src: usize,
    /// Receiving host, another one.
    pub dst: usize,
    /// Payload bytes; 0 goes as one empty packet.
    pub bytes: u64,
    /// An earlier flow from the same host to the same host, whose connection this one uses; `None` is a connection of its own.
    ///
    /// How the connection works follows from its first flow: balancer, congestion control, path seed. What hosts count for a whole
    /// connection is shared out: a flow has what was counted from the end of the flow that ended before it to its own.
    pub connection: Option<usize>,
    /// See [`Path::seed`](spray_core::path::Path::seed).
    pub path_seed: Option<u64>,
    /// When it starts.
    pub start: Start,
    /// The trigger to signal when the sender has the last acknowledgement.
    //= docs/specs/triggers.md#TRG-1 signals
    pub on_sent: Option<usize>,
    /// The trigger to signal when the receiver has the last byte.
    pub on_received: Option<usize>,
}

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time, in ps.
    At(u64),
    /// When the trigger with this index starts it.
    On(usize),
}

/// Starts flows when others end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Which signals make it fire, and what it starts then.
    pub kind: TriggerKind,
    /// Time from its firing to the start of its flows, in ps: what hosts compute in between.
    pub delay_ps: u64,
    /// Another trigger, which it signals at the end of the delay whenever it has fired.
    //= docs/specs/triggers.md#TRG-4 chains
    pub then: Option<usize>,
}

/// Which signals make a trigger fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// The first one; all its flows start.
    Oneshot,
    /// Each one; the next of its flows starts.
    Multishot,
    /// Each one before this time, in ps; the next of its flows starts.
    MultishotUntil(u64),
    /// The signal of this number, from 1; all its flows start.
    Barrier(u32),
}

impl Trigger {
    /// A trigger without delay that signals no other.
    pub const fn new(kind: TriggerKind) -> Self {
        Self { kind, delay_ps: 0, then: None }
    }
}

/// Why flows cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// A flow from a host to itself, or to or from one that does not exist.
    #[error("flow {flow}: host {src} to host {dst} of {hosts}; allowed: two different hosts")]
    Hosts {
        /// The flow's index.
        flow: usize,
        /// Its source.
        src: usize,
        /// Its destination.
        dst: usize,
        /// How many hosts there are.
        hosts: usize,
    },
    /// A flow names a trigger that does not exist.
    #[error("flow {flow} names trigger {trigger} of {triggers}")]
    Trigger {
        /// The flow's index.
        flow: usize,
        /// The trigger's index.
        trigger: usize,
        /// How many triggers there are.
        triggers: usize,
    },
    /// A flow uses the connection of one that is not before it, or not between the same hosts.
    #[error(
        "flow {flow} uses the connection of flow {of}; allowed: an earlier flow from the same host to the same host"
    )]
    Connection {
        /// The flow's index.
        flow: usize,
        /// The index of the flow whose connection it is to use.
        of: usize,
    },
    /// A trigger signals one that does not exist, or itself, at once or by way of others.
    #[error("trigger {trigger} of {triggers} signals one that does not exist, or itself by way of others")]
    Then {
        /// The trigger's index.
        trigger: usize,
        /// How many triggers there are.
        triggers: usize,
    },
}

/// Checks that flows are between different ones of `hosts` hosts, and name only what exists.
///
/// # Errors
/// [`FlowError`] about the first flow or trigger that is wrong.
pub fn check_flows(flows: &[FlowSpec], triggers: &[Trigger], hosts: usize) -> Result<(), FlowError> {
    for (flow, spec) in flows.iter().enumerate() {
        let FlowSpec { src, dst, .. } = *spec;
        if src == dst || src >= hosts || dst >= hosts {
            return Err(FlowError::Hosts { flow, src, dst, hosts });
        }
        let start = if let Start::On(trigger) = spec.start { Some(trigger) } else { None };
        let named = [start, spec.on_sent, spec.on_received].into_iter().flatten();
        if let Some(trigger) = named.into_iter().find(|trigger| *trigger >= triggers.len()) {
            return Err(FlowError::Trigger { flow, trigger, triggers: triggers.len() });
        }
        if let Some(of) = spec.connection
            && (of >= flow || (flows[of].src, flows[of].dst) != (src, dst))
        {
            return Err(FlowError::Connection { flow, of });
        }
    }
    for trigger in 0..triggers.len() {
        // A chain that is longer than there are triggers has one of them twice.
        let chain = std::iter::successors(Some(trigger), |at| triggers.get(*at)?.then);
        if chain.take(triggers.len() + 1).enumerate().any(|(step, at)| step == triggers.len() || at >= triggers.len()) {
            return Err(FlowError::Then { trigger, triggers: triggers.len() });
        }
    }
    Ok(())
}

/// By flow the first flow of its connection, from what each says of its [connection](FlowSpec::connection).
pub fn first_flows(connections: impl IntoIterator<Item = Option<usize>>) -> Vec<usize> {
    let mut first = Vec::new();
    for (flow, of) in connections.into_iter().enumerate() {
        first.push(of.map_or(flow, |of| first[of]));
    }
    first
}

/// Shares out what a connection has counted among its messages. `ended` says of each when it ended and what had been counted then;
/// `total` was counted in the end, and `until` says what lies between two counts.
//= docs/specs/triggers.md#TRG-7 what was added from the end of the flow that ended before it
pub fn share_out<T: Copy + Default>(ended: &[Option<(u64, T)>], total: T, until: impl Fn(&T, &T) -> T) -> Vec<T> {
    let at = |(message, end): (usize, &Option<(u64, T)>)| end.map(|(at_ps, counted)| (at_ps, message, counted));
    let mut ends: Vec<_> = ended.iter().enumerate().filter_map(at).collect();
    ends.sort_by_key(|(at_ps, message, _)| (*at_ps, *message));
    match ended.iter().position(Option::is_none) {
        Some(open) => ends.push((u64::MAX, open, total)),
        None => ends.iter_mut().next_back().into_iter().for_each(|(.., counted)| *counted = total),
    }
    let mut shares = vec![T::default(); ended.len()];
    let mut before = T::default();
    for (_, message, counted) in ends {
        shares[message] = until(&before, &counted);
        before = counted;
    }
    shares
}

/// What follows from a signal, or from the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This flow starts.
    Flow(usize),
    /// This trigger gets a signal.
    Signal(usize),
}

/// Which flows start, and when: the rule of triggers, and that of connections, on which messages go in the order of the list.
///
/// Whoever runs the flows tells it of signals, and does what it says at the times that it says.
#[derive(Debug, Default)]
pub struct Starts {
    triggers: Vec<Waiting>,
    flows: Vec<QueuedFlow>,
}

/// A trigger, and what it has come to.
#[derive(Debug)]
struct Waiting {
    trigger: Trigger,
    signals: u32,
    /// The time of the latest signal.
    latest_ps: u64,
    /// Flows that wait for it.
    flows: VecDeque<u32>,
}

/// A flow in its connection.
#[derive(Clone, Copy, Debug)]
struct QueuedFlow {
    start: Start,
    /// The flow behind it on its connection.
    next: Option<u32>,
    /// When the flow before it started; 0 where there is none, `None` while it has yet to start.
    before_ps: Option<u64>,
    /// From when on it may start, as far as its own start says.
    ready_ps: Option<u64>,
}

impl Starts {
    /// Flows by their starts and [connections](FlowSpec::connection), of which none has started; both and the triggers were
    /// [checked](check_flows).
    pub fn new(flows: impl IntoIterator<Item = (Start, Option<usize>)>, triggers: &[Trigger]) -> Self {
        let waiting =
            |trigger: &Trigger| Waiting { trigger: *trigger, signals: 0, latest_ps: 0, flows: VecDeque::new() };
        let mut triggers: Vec<_> = triggers.iter().map(waiting).collect();
        let mut places: Vec<QueuedFlow> = Vec::new();
        // By first flow of a connection its last one so far.
        let mut last: Vec<u32> = Vec::new();
        let mut first: Vec<u32> = Vec::new();
        for (start, connection) in flows {
            let flow = places.len() as u32;
            if let Start::On(trigger) = start {
                triggers[trigger].flows.push_back(flow);
            }
            let own = connection.map_or(flow, |of| first[of]);
            first.push(own);
            last.push(flow);
            if own != flow {
                let before = std::mem::replace(&mut last[own as usize], flow);
                places[before as usize].next = Some(flow);
            }
            places.push(QueuedFlow { start, next: None, before_ps: (own == flow).then_some(0), ready_ps: None });
        }
        Self { triggers, flows: places }
    }

    /// The run begins: flows whose times are known start then.
    pub fn begin(&mut self, due: &mut impl FnMut(u64, Due)) {
        for flow in 0..self.flows.len() {
            if let Start::At(at_ps) = self.flows[flow].start {
                self.ready(at_ps, flow, due);
            }
        }
    }

    /// A trigger gets a signal. Where signals are not told in the order of their times, it fires at the latest of those that it took.
    //= docs/specs/triggers.md#TRG-2 when a trigger fires
    pub fn signal(&mut self, at_ps: u64, trigger: usize, due: &mut impl FnMut(u64, Due)) {
        let waiting = &mut self.triggers[trigger];
        waiting.signals = waiting.signals.saturating_add(1);
        waiting.latest_ps = waiting.latest_ps.max(at_ps);
        let starts = match waiting.trigger.kind {
            TriggerKind::Oneshot if waiting.signals == 1 => waiting.flows.len(),
            TriggerKind::Barrier(count) if waiting.signals == count => waiting.flows.len(),
            TriggerKind::Multishot => 1,
            TriggerKind::MultishotUntil(until_ps) if at_ps < until_ps => 1,
            TriggerKind::Oneshot | TriggerKind::Barrier(_) | TriggerKind::MultishotUntil(_) => return,
        };
        let at_ps = match waiting.trigger.kind {
            TriggerKind::Barrier(_) => waiting.latest_ps,
            _ => at_ps,
        };
        //= docs/specs/triggers.md#TRG-3 the delay
        let Trigger { delay_ps, then, .. } = waiting.trigger;
        let at_ps = at_ps.saturating_add(delay_ps);
        for _ in 0..starts {
            let Some(flow) = self.triggers[trigger].flows.pop_front() else { break };
            self.ready(at_ps, flow as usize, due);
        }
        if let Some(then) = then {
            due(at_ps, Due::Signal(then));
        }
    }

    /// The first flow that never starts even if every started flow ends; `None` if all start. `ended` says which triggers a flow
    /// signals at its end.
    pub fn never_started<T: IntoIterator<Item = usize>>(mut self, ended: impl Fn(usize) -> T) -> Option<usize> {
        let mut started = vec![false; self.flows.len()];
        let mut todo = Vec::new();
        self.begin(&mut |_, due| todo.push(due));
        while let Some(due) = todo.pop() {
            match due {
                Due::Flow(flow) => {
                    started[flow] = true;
                    ended(flow).into_iter().for_each(|trigger| self.signal(0, trigger, &mut |_, due| todo.push(due)));
                }
                Due::Signal(trigger) => self.signal(0, trigger, &mut |_, due| todo.push(due)),
            }
        }
        started.iter().position(|started| !started)
    }

    /// A flow may start from `at_ps` on. It does as soon as those before it on its connection have started; those behind it that may
    /// start follow.
    //= docs/specs/triggers.md#TRG-5 messages of a connection
    fn ready(&mut self, at_ps: u64, mut flow: usize, due: &mut impl FnMut(u64, Due)) {
        self.flows[flow].ready_ps = Some(at_ps);
        while let QueuedFlow { before_ps: Some(before_ps), ready_ps: Some(ready_ps), next, .. } = self.flows[flow] {
            let at_ps = before_ps.max(ready_ps);
            due(at_ps, Due::Flow(flow));
            let Some(next) = next else { break };
            flow = next as usize;
            self.flows[flow].before_ps = Some(at_ps);
        }
    }
}

#[cfg(test)]
mod tests;
