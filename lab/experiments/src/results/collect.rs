//! Builds the result of a run from an engine's outcome, for both engines.

use spray_core::event::Event;
use spray_core::path::BalancerKind;
use spray_fabric::{FlowOutcome, LinkAction, LinkEvent, PortOutcome};

use super::{EngineFigures, EventKind, EventRow, FlowResult, Incomplete, RunResult, Shape, us};
use crate::scenario::{FctEnd, Paths, Scenario, UnloadedTimes};
use crate::workload::{Flow, FlowClass, Plan, classes};

/// A run and the outcomes common to both engines. Times are ps of scenario time.
pub(crate) struct Collect<'a> {
    pub scenario: &'a Scenario,
    pub paths: &'a Paths,
    pub balancer: BalancerKind,
    pub seed: u64,
    pub plan: &'a Plan,
    pub link_events: &'a [LinkEvent],
    pub reroutes_ps: &'a [u64],
    pub ports: &'a [PortOutcome],
    pub end_ps: u64,
    pub limit_ps: u64,
}

impl Collect<'_> {
    /// Builds the result without its engine-specific parts; `reported` are rows of hosts.
    pub fn result(
        &self,
        engine: &str,
        outcomes: &[FlowOutcome],
        reported: impl Iterator<Item = EventRow>,
    ) -> RunResult {
        let Scenario { name, condition, .. } = self.scenario;
        let last_drop = self.last_drop();
        let mut events = self.link_rows();
        let reroute = |ps: &u64| row(us(*ps), EventKind::Reroute, "routing");
        events.extend(self.reroutes_ps.iter().map(reroute));
        events.retain(|row| row.time_us <= us(self.end_ps));
        events.extend(last_drop.iter().map(|(drop, _)| drop.clone()));
        events.extend(reported);
        events.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        let classes = classes(&self.scenario.workloads);
        let of_run = |((flow, of), _): &((&Flow, &FlowOutcome), UnloadedTimes)| self.is_part(flow, of.started_ps);
        let alone = self.scenario.unloaded_times(self.paths, &self.plan.flows);
        let flows = self.plan.flows.iter().zip(outcomes).zip(alone).filter(of_run);
        let flow = |((flow, outcome), alone): ((&Flow, _), _)| {
            self.flow(flow, &classes[usize::from(flow.class)], outcome, alone)
        };
        let flows: Vec<_> = flows.map(flow).collect();
        let is_incomplete = flows.iter().any(|flow| flow.incomplete.is_some());
        RunResult {
            end_us: us(self.end_ps),
            time_limit_us: (is_incomplete && self.end_ps >= self.limit_ps).then(|| us(self.limit_ps)),
            give_up_us: self.give_up_ps(&flows).map(us),
            engine_figures: EngineFigures::of_freezing(self, &flows, &events),
            engine: engine.into(),
            scenario: name.clone(),
            condition: condition.clone(),
            balancer: self.scenario.own.balancer_name(self.balancer).into(),
            congestion_control: self.scenario.own.cc_name(self.scenario.transport.cc).into(),
            switching: self.scenario.network.switching.clone(),
            seed: self.seed,
            axes: self.scenario.settings.axes.clone(),
            shape: Shape::of(&self.scenario.network),
            flows,
            loss_duration_us: last_drop.map(|(_, after_us)| after_us),
            events,
            ..RunResult::default()
        }
    }

    fn flow(&self, flow: &Flow, class: &FlowClass, outcome: &FlowOutcome, alone: UnloadedTimes) -> FlowResult {
        let start_us = us(outcome.started_ps.unwrap_or(flow.start_ps));
        let end_us = self.end_ps(outcome).map(us);
        let fct_us = end_us.map(|end| end - start_us);
        let incomplete = match (end_us, outcome.started_ps, outcome.given_up_ps) {
            (Some(_), ..) => None,
            (None, None, _) => Some(Incomplete::NotStarted),
            (None, _, Some(_)) => Some(Incomplete::GivenUp),
            (None, _, None) => Some(Incomplete::CutOff),
        };
        let given_up_us = outcome.given_up_ps.filter(|_| incomplete == Some(Incomplete::GivenUp)).map(us);
        let has_time = incomplete.is_some_and(|why| why != Incomplete::NotStarted);
        FlowResult {
            flow: flow.flow,
            workload: class.name.clone(),
            balancer: self.scenario.own.balancer_name(class.own.balancer.unwrap_or(self.balancer)).into(),
            congestion_control: self.scenario.own.cc_name(class.own.cc.unwrap_or(self.scenario.transport.cc)).into(),
            src: self.host(flow.src).into(),
            dst: self.host(flow.dst).into(),
            bytes: flow.bytes,
            start_us,
            end_us,
            fct_us,
            last_bit_us: us(alone.last_bit_ps),
            link_us: us(self.scenario.link_ps(flow)),
            unloaded_fct_us: us(alone.time_ps),
            incomplete,
            given_up_us,
            elapsed_us: has_time.then(|| given_up_us.unwrap_or(us(self.end_ps)) - start_us),
            step: flow.step,
            sender: outcome.sender,
            receiver: outcome.receiver,
        }
    }

    /// Returns the longest `give_up_ps` of the connections that gave up.
    fn give_up_ps(&self, flows: &[FlowResult]) -> Option<u64> {
        let given_up = flows.iter().filter(|flow| flow.incomplete == Some(Incomplete::GivenUp));
        let classes = classes(&self.scenario.workloads);
        let config = |flow: &FlowResult| {
            let flow = &self.plan.flows[flow.flow as usize];
            self.scenario.connection(self.paths, self.balancer, &classes, flow, flow.bytes)
        };
        given_up.map(|flow| config(flow).give_up_ps).max()
    }

    fn end_ps(&self, outcome: &FlowOutcome) -> Option<u64> {
        match self.scenario.simulation.fct_end {
            FctEnd::Received => outcome.received_ps,
            FctEnd::Acked => outcome.acked_ps,
        }
    }

    fn is_part(&self, flow: &Flow, started_ps: Option<u64>) -> bool {
        started_ps.is_some() || !self.plan.may_be_left_out(flow.flow as usize)
    }

    pub fn host(&self, host: usize) -> &str {
        &self.scenario.network.hosts[host]
    }

    pub fn name(&self, flow: usize) -> String {
        format!("{}->{}", self.host(self.plan.flows[flow].src), self.host(self.plan.flows[flow].dst))
    }

    /// Returns a row for the start and one for the end of each link event.
    fn link_rows(&self) -> Vec<EventRow> {
        let rows = self.link_events.iter().flat_map(|event| {
            let (action, until_us) = (event.action.name(), event.until_ps.map(us));
            let begins = row(us(event.at_ps), EventKind::Failure, &event.name);
            let begins = EventRow { action, value: event.action.share(), until_us, ..begins };
            let ends = until_us.map(|at| EventRow { action, ..row(at, EventKind::Recovered, &event.name) });
            std::iter::once(begins).chain(ends)
        });
        rows.collect()
    }

    /// Returns the row of the last data frame dropped by a failing link, and the loss time in us.
    fn last_drop(&self) -> Option<(EventRow, f64)> {
        let dropped = self.ports.iter().filter(|port| port.counters.last_link_drop_ps > 0);
        let drops = dropped.map(|port| (port.name.as_str(), us(port.counters.last_link_drop_ps)));
        let (port, at_us) = drops.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let hits = |event: &&LinkEvent| {
            event.links.iter().any(|link| self.scenario.network.links[*link].name == port)
                && !matches!(event.action, LinkAction::Rate { .. })
        };
        let begun_ps = self.link_events.iter().filter(hits).map(|event| event.at_ps).min()?;
        let drop = EventRow { until_us: Some(us(begun_ps)), ..row(at_us, EventKind::LastDrop, port) };
        Some((drop, at_us - us(begun_ps)))
    }
}

fn row(time_us: f64, kind: EventKind, subject: &str) -> EventRow {
    EventRow { time_us, kind, subject: subject.into(), ..EventRow::default() }
}

/// Returns the row of an event of the host or flow `subject`, if it has one.
pub(crate) fn reported(event: Event, time_us: f64, subject: &str) -> Option<EventRow> {
    match event {
        Event::FreezeEntered { .. } => Some(row(time_us, EventKind::FreezeEntered, subject)),
        Event::FreezeExited => Some(row(time_us, EventKind::FreezeExited, subject)),
        Event::Timeout { psn } => Some(EventRow { packet: Some(psn), ..row(time_us, EventKind::Timeout, subject) }),
        _ => None,
    }
}

pub(crate) fn given_up(time_us: f64, subject: &str, why: &str) -> EventRow {
    EventRow { action: "given-up", detail: why.into(), ..row(time_us, EventKind::Failure, subject) }
}
