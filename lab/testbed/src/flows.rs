//! State shared by the hosts of a run: starts of flows, their progress, and the end of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::{Action, FlowOutcome, FlowScheduler, FlowSpec, Start, first_flows, share_out};

use super::TestbedSpec;

/// The flows of a run and their results. Hosts report virtual times; outcomes are in scenario time.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<FlowSpec>,
    pub payloads: Vec<Bytes>,
    /// The first flow of each flow's connection, and all flows of a connection by its first one.
    pub first: Vec<usize>,
    pub series: Vec<Vec<usize>>,
    /// Virtual time at scenario time 0.
    pub lead_in_ps: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    starts: FlowScheduler,
    /// Future signals: (time, trigger).
    signals: BinaryHeap<Reverse<(u64, usize)>>,
    /// By host the flows that it has to start: (time, flow).
    due: Vec<Vec<(u64, usize)>>,
    outcomes: Vec<FlowOutcome>,
    /// Flows with a known start time, their number, and the number of them delivered or failed.
    is_due: Vec<bool>,
    started: usize,
    ended: usize,
    delivered: u64,
    arrived: u64,
    /// By first flow.
    failed: Vec<bool>,
    /// Whether all received messages equal those sent.
    verified: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// Number of messages received.
    pub arrived: u64,
    /// Whether no flow is in progress and none will start.
    pub over: bool,
}

impl Flows {
    pub fn new(spec: &TestbedSpec<'_>, lead_in_ps: u64) -> Self {
        let flows = spec.flows.to_vec();
        let first = first_flows(flows.iter().map(|flow| flow.connection));
        let mut series = vec![Vec::new(); flows.len()];
        first.iter().enumerate().for_each(|(flow, first)| series[*first].push(flow));
        let state = State {
            starts: FlowScheduler::new(flows.iter().map(|flow| (flow.start, flow.connection)), spec.triggers),
            due: vec![Vec::new(); spec.fabric.network.hosts.len()],
            outcomes: vec![FlowOutcome::default(); flows.len()],
            is_due: vec![false; flows.len()],
            failed: vec![false; flows.len()],
            verified: true,
            ..State::default()
        };
        let plan =
            Self { first, series, payloads: spec.payloads.to_vec(), lead_in_ps, state: Mutex::new(state), flows };
        let mut follows = Vec::new();
        plan.state().starts.begin(&mut |at_ps, due| follows.push((at_ps, due)));
        plan.follow(&mut plan.state(), follows);
        plan
    }

    /// Whether all start times are known in advance.
    pub fn is_static(&self) -> bool {
        self.flows.iter().all(|flow| matches!(flow.start, Start::At(_)))
    }

    /// Applies the signals that are due at `now_ps`.
    pub fn advance(&self, now_ps: u64) {
        let now_ps = self.scenario(now_ps);
        let mut state = self.state();
        while let Some(Reverse((at_ps, trigger))) = state.signals.peek().copied().filter(|next| next.0.0 <= now_ps) {
            state.signals.pop();
            self.signal(&mut state, at_ps, Some(trigger));
        }
    }

    /// Takes the (time, flow) pairs that a host has to start.
    pub fn take_due(&self, host: usize) -> Vec<(u64, usize)> {
        std::mem::take(&mut self.state().due[host])
    }

    pub fn on_started(&self, flow: usize, at_ps: u64) {
        let at_ps = self.scenario(at_ps);
        self.state().outcomes[flow].started_ps = Some(at_ps);
    }

    /// Records a received message, and verifies `data`; the connection begins with flow `first`.
    pub fn on_received(&self, first: usize, message: u32, at_ps: u64, data: Option<&Bytes>, stats: ReceiverStats) {
        let Some(&flow) = self.series[first].get(message as usize) else { return self.on_unknown_message() };
        let at_ps = self.scenario(at_ps);
        let is_right = data.is_none_or(|data| *data == self.payloads[flow]);
        let mut state = self.state();
        state.verified &= is_right;
        state.arrived += 1;
        (state.outcomes[flow].received_ps, state.outcomes[flow].receiver) = (Some(at_ps), stats);
        self.signal(&mut state, at_ps, self.flows[flow].on_received);
    }

    /// Records a message of an unknown connection.
    pub fn on_unknown_message(&self) {
        self.state().verified = false;
    }

    /// Records that a message of the connection that begins with flow `first` is acknowledged.
    pub fn on_delivered(&self, first: usize, message: u32, at_ps: u64, stats: SenderStats) {
        let Some(&flow) = self.series[first].get(message as usize) else { return };
        let at_ps = self.scenario(at_ps);
        let mut state = self.state();
        state.delivered += 1;
        state.ended += 1;
        (state.outcomes[flow].acked_ps, state.outcomes[flow].sender) = (Some(at_ps), stats);
        self.signal(&mut state, at_ps, self.flows[flow].on_sent);
    }

    /// Records that the sender of the connection that begins with flow `first` gave up at `at_ps`.
    //= docs/specs/triggers.md#TRG-8 all of its flows that are not delivered
    pub fn on_failed(&self, first: usize, at_ps: u64) {
        let mut state = self.state();
        if std::mem::replace(&mut state.failed[first], true) {
            return;
        }
        for &flow in &self.series[first] {
            if state.outcomes[flow].acked_ps.is_none() {
                state.outcomes[flow].given_up_ps = Some(self.scenario(at_ps));
                state.ended += usize::from(state.is_due[flow]);
            }
        }
    }

    /// Once it is over, receivers have reported every message that senders report as delivered.
    pub fn completion(&self) -> Completion {
        let state = self.state();
        let ended = state.ended >= state.started && state.arrived >= state.delivered;
        Completion { arrived: state.arrived, over: ended && state.signals.is_empty() }
    }

    /// Returns the outcomes, and whether all messages arrived intact. `counted` returns the final
    /// counters of a connection, by its first flow.
    pub fn outcomes(&self, counted: impl Fn(usize) -> (SenderStats, ReceiverStats)) -> (Vec<FlowOutcome>, bool) {
        let state = self.state();
        let mut outcomes = state.outcomes.clone();
        for series in self.series.iter().filter(|series| !series.is_empty()) {
            let (sender, receiver) = counted(series[0]);
            let own = || series.iter().map(|flow| &state.outcomes[*flow]);
            let sent: Vec<_> = own().map(|flow| Some((flow.acked_ps?, flow.sender))).collect();
            let received: Vec<_> = own().map(|flow| Some((flow.received_ps?, flow.receiver))).collect();
            let sent = share_out(&sent, sender, SenderStats::delta_to);
            let received = share_out(&received, receiver, ReceiverStats::delta_to);
            for (flow, counted) in series.iter().zip(sent.into_iter().zip(received)) {
                (outcomes[*flow].sender, outcomes[*flow].receiver) = counted;
            }
        }
        (outcomes, state.verified)
    }

    fn signal(&self, state: &mut State, at_ps: u64, trigger: Option<usize>) {
        let Some(trigger) = trigger else { return };
        let mut follows = Vec::new();
        state.starts.signal(at_ps, trigger, &mut |at_ps, due| follows.push((at_ps, due)));
        self.follow(state, follows);
    }

    fn follow(&self, state: &mut State, follows: Vec<(u64, Action)>) {
        for (at_ps, due) in follows {
            match due {
                Action::SignalTrigger(trigger) => state.signals.push(Reverse((at_ps, trigger))),
                Action::StartFlow(flow) if state.failed[self.first[flow]] => {}
                Action::StartFlow(flow) => {
                    state.started += 1;
                    state.is_due[flow] = true;
                    state.due[self.flows[flow].src].push((at_ps.saturating_add(self.lead_in_ps), flow));
                }
            }
        }
    }

    fn scenario(&self, at_ps: u64) -> u64 {
        at_ps.saturating_sub(self.lead_in_ps)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
