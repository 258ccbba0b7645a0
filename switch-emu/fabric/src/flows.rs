//! Flows, connections and triggers, as engines run them.

use std::collections::VecDeque;

/// A flow: one message between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Sending host.
    pub src: usize,
    /// Receiving host, different from `src`.
    pub dst: usize,
    /// Payload bytes; 0 is sent as one empty packet.
    pub bytes: u64,
    /// An earlier flow with the same hosts and direction, whose connection is used; `None` opens
    /// one. The first flow determines balancer, congestion control and path seed. Counters of a
    /// connection are divided: a flow has those from the end of the previous flow to its own end.
    pub connection: Option<usize>,
    /// See [`Path::seed`](spray_core::path::Path::seed).
    pub path_seed: Option<u64>,
    /// Start condition.
    pub start: Start,
    /// Trigger signalled when the sender has the last acknowledgement.
    //= docs/specs/triggers.md#TRG-1 signals
    pub on_sent: Option<usize>,
    /// Trigger signalled when the receiver has the last byte.
    pub on_received: Option<usize>,
}

/// The start condition of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time, in ps.
    At(u64),
    /// When this trigger starts it.
    OnTrigger(usize),
}

/// Starts flows when others end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// When it fires, and what it starts.
    pub kind: TriggerKind,
    /// Delay from its firing to the start of its flows, in ps: computation of the hosts.
    pub delay_ps: u64,
    /// Another trigger, signalled at the end of the delay each time that it fires.
    //= docs/specs/triggers.md#TRG-4 chains
    pub then: Option<usize>,
}

/// The condition under which a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// The first signal; starts all its flows.
    Oneshot,
    /// Each signal; starts the next of its flows.
    Multishot,
    /// Each signal before this time, in ps; starts the next of its flows.
    MultishotUntil(u64),
    /// The signal of this number, from 1; starts all its flows.
    Barrier(u32),
}

impl Trigger {
    /// Creates a trigger without delay and successor.
    pub const fn new(kind: TriggerKind) -> Self {
        Self { kind, delay_ps: 0, then: None }
    }
}

/// A reason why flows cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FlowError(String);

/// Checks that flows are between different ones of `hosts` hosts, and that all references exist.
///
/// # Errors
/// [`FlowError`] for the first invalid flow or trigger.
pub fn check_flows(flows: &[FlowSpec], triggers: &[Trigger], hosts: usize) -> Result<(), FlowError> {
    for (flow, spec) in flows.iter().enumerate() {
        let FlowSpec { src, dst, .. } = *spec;
        if src == dst || src >= hosts || dst >= hosts {
            let allowed = "allowed: two different hosts";
            return Err(FlowError(format!("flow {flow}: host {src} to host {dst} of {hosts}; {allowed}")));
        }
        let start = if let Start::OnTrigger(trigger) = spec.start { Some(trigger) } else { None };
        let named = [start, spec.on_sent, spec.on_received].into_iter().flatten();
        if let Some(trigger) = named.into_iter().find(|trigger| *trigger >= triggers.len()) {
            return Err(FlowError(format!("flow {flow} names trigger {trigger} of {}", triggers.len())));
        }
        if let Some(of) = spec.connection
            && (of >= flow || (flows[of].src, flows[of].dst) != (src, dst))
        {
            let allowed = "allowed: an earlier flow from the same host to the same host";
            return Err(FlowError(format!("flow {flow} uses the connection of flow {of}; {allowed}")));
        }
    }
    for trigger in 0..triggers.len() {
        // A chain longer than the number of triggers has a cycle.
        let chain = std::iter::successors(Some(trigger), |at| triggers.get(*at)?.then);
        if chain.take(triggers.len() + 1).enumerate().any(|(step, at)| step == triggers.len() || at >= triggers.len()) {
            let wrong = "signals one that does not exist, or itself by way of others";
            return Err(FlowError(format!("trigger {trigger} of {} {wrong}", triggers.len())));
        }
    }
    Ok(())
}

/// Returns the first flow of each connection by flow, given [`FlowSpec::connection`] of each.
pub fn first_flows(connections: impl IntoIterator<Item = Option<usize>>) -> Vec<usize> {
    let mut first = Vec::new();
    for (flow, of) in connections.into_iter().enumerate() {
        first.push(of.map_or(flow, |of| first[of]));
    }
    first
}

/// Divides the counters of a connection, in the end `total`, among its messages. `ended` has the
/// end of each with the counters then; `until` subtracts.
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

/// A consequence of a signal, or of the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This flow starts.
    StartFlow(usize),
    /// This trigger is signalled.
    SignalTrigger(usize),
}

/// Determines which flows start, and when, by the rules of triggers and of connections, whose
/// messages start in the order of the list. The caller reports signals, and executes [`Action`]s.
#[derive(Debug, Default)]
pub struct FlowScheduler {
    triggers: Vec<QueueState>,
    flows: Vec<QueuedFlow>,
}

#[derive(Debug)]
struct QueueState {
    trigger: Trigger,
    signals: u32,
    /// Time of the latest signal.
    latest_ps: u64,
    flows: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedFlow {
    start: Start,
    /// The next flow of its connection.
    next: Option<u32>,
    /// Start of the previous flow; 0 for the first, `None` while that has not started.
    before_ps: Option<u64>,
    /// Time allowed by its own start condition.
    ready_ps: Option<u64>,
}

impl FlowScheduler {
    /// Takes starts and [`FlowSpec::connection`] of [checked](check_flows) flows.
    pub fn new(flows: impl IntoIterator<Item = (Start, Option<usize>)>, triggers: &[Trigger]) -> Self {
        let waiting =
            |trigger: &Trigger| QueueState { trigger: *trigger, signals: 0, latest_ps: 0, flows: VecDeque::new() };
        let mut triggers: Vec<_> = triggers.iter().map(waiting).collect();
        let mut places: Vec<QueuedFlow> = Vec::new();
        // The last flow so far, by the first flow of its connection.
        let mut last: Vec<u32> = Vec::new();
        let mut first: Vec<u32> = Vec::new();
        for (start, connection) in flows {
            let flow = places.len() as u32;
            if let Start::OnTrigger(trigger) = start {
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

    /// Starts the flows with known times.
    pub fn begin(&mut self, due: &mut impl FnMut(u64, Action)) {
        for flow in 0..self.flows.len() {
            if let Start::At(at_ps) = self.flows[flow].start {
                self.ready(at_ps, flow, due);
            }
        }
    }

    /// Signals a trigger. If signals are reported out of order, a barrier fires at the latest time.
    //= docs/specs/triggers.md#TRG-2 when a trigger fires
    pub fn signal(&mut self, at_ps: u64, trigger: usize, due: &mut impl FnMut(u64, Action)) {
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
            due(at_ps, Action::SignalTrigger(then));
        }
    }

    /// Returns a flow that never starts even if every other one ends, if there is any. `ended`
    /// returns the triggers signalled at the end of a flow.
    pub fn never_started<T: IntoIterator<Item = usize>>(mut self, ended: impl Fn(usize) -> T) -> Option<usize> {
        let mut started = vec![false; self.flows.len()];
        let mut todo = Vec::new();
        self.begin(&mut |_, due| todo.push(due));
        while let Some(due) = todo.pop() {
            match due {
                Action::StartFlow(flow) => {
                    started[flow] = true;
                    ended(flow).into_iter().for_each(|trigger| self.signal(0, trigger, &mut |_, due| todo.push(due)));
                }
                Action::SignalTrigger(trigger) => self.signal(0, trigger, &mut |_, due| todo.push(due)),
            }
        }
        started.iter().position(|started| !started)
    }

    /// Lets a flow, and ready ones behind it, start at `at_ps` or after those before it.
    //= docs/specs/triggers.md#TRG-5 messages of a connection
    fn ready(&mut self, at_ps: u64, mut flow: usize, due: &mut impl FnMut(u64, Action)) {
        self.flows[flow].ready_ps = Some(at_ps);
        while let QueuedFlow { before_ps: Some(before_ps), ready_ps: Some(ready_ps), next, .. } = self.flows[flow] {
            let at_ps = before_ps.max(ready_ps);
            due(at_ps, Action::StartFlow(flow));
            let Some(next) = next else { break };
            flow = next as usize;
            self.flows[flow].before_ps = Some(at_ps);
        }
    }
}

#[cfg(test)]
mod tests;
