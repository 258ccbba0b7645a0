//! The flows of a run, of all workloads.

use std::collections::HashMap;

use spray_fabric::{FlowSpec, Network, Start, Trigger, TriggerKind, mix};

use super::members::shuffled;
use super::streams::MEMBER_STREAM;
use super::{Flow, FlowTriggers, Triggers, Workload, members};

/// The flows of a run and their triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The flows; numbers are indices.
    pub flows: Vec<Flow>,
    /// Triggers; `None` if no flow waits for another.
    pub triggers: Option<Triggers>,
    /// Total computation time of hosts in ps.
    pub compute_ps: u64,
}

impl Plan {
    /// Creates the flows of `workloads` in a run with root `seed`.
    //= docs/specs/workloads.md#WL-1 several at once
    pub fn new(workloads: &[Workload], network: &Network, seed: u64) -> Self {
        let mut plan = Self::default();
        let mut first_class = 0;
        for (number, (workload, members)) in
            workloads.iter().zip(members(workloads, network.hosts.len(), seed)).enumerate()
        {
            // Workloads of the same kind draw differently.
            let seed = if number == 0 { seed } else { mix(seed ^ mix(number as u64)) };
            let (mut flows, triggers) = workload.flows(network, &members, seed);
            let parts = Parts::new(workload, &flows, seed);
            let first = plan.flows.len() as u32;
            for flow in &mut flows {
                flow.class = first_class + parts.of(flow.src);
                flow.flow += first;
                flow.connection = flow.connection.map(|connection| connection + first);
            }
            plan.add(flows, triggers);
            plan.compute_ps = plan.compute_ps.max(workload.compute_ps());
            first_class += 1 + workload.parts.len() as u16;
        }
        plan
    }

    fn add(&mut self, flows: Vec<Flow>, triggers: Option<Triggers>) {
        if self.triggers.is_some() || triggers.is_some() {
            let all = self.triggers.get_or_insert_default();
            all.of_flow.resize(self.flows.len(), FlowTriggers::default());
            all.append(triggers.unwrap_or_default(), flows.len());
        }
        self.flows.extend(flows);
    }

    /// Converts the flows of a run with root `seed` for engines.
    pub fn specs(&self, seed: u64) -> Vec<FlowSpec> {
        let spec = |flow: &Flow| {
            let own = self.triggers.as_ref().map(|triggers| triggers.of_flow[flow.flow as usize]).unwrap_or_default();
            FlowSpec {
                src: flow.src,
                dst: flow.dst,
                bytes: flow.bytes,
                connection: flow.connection.map(|flow| flow as usize),
                path_seed: Some(flow.path_seed(seed)),
                start: own.start.map_or(Start::At(flow.start_ps), Start::OnTrigger),
                on_sent: own.on_sent,
                on_received: own.on_received,
            }
        };
        self.flows.iter().map(spec).collect()
    }

    /// Returns the triggers for engines.
    pub fn trigger_list(&self) -> &[Trigger] {
        self.triggers.as_ref().map_or(&[], |triggers| &triggers.list)
    }

    /// Whether a flow that has not started is excluded from the run, as its turn came too late.
    //= docs/specs/closed-loop.md#CL-2 are not part of the run
    pub fn may_be_left_out(&self, flow: usize) -> bool {
        let Some(triggers) = &self.triggers else { return false };
        let late = |trigger: usize| matches!(triggers.list[trigger].kind, TriggerKind::MultishotUntil(_));
        triggers.of_flow[flow].start.is_some_and(late)
    }
}

/// The part of a workload that each host is drawn for.
struct Parts(HashMap<usize, u16>);

impl Parts {
    /// Draws the hosts of each part among the senders; larger shares include smaller ones.
    //= docs/specs/workloads.md#WL-3 shares of the hosts
    fn new(workload: &Workload, flows: &[Flow], seed: u64) -> Self {
        if workload.parts.is_empty() {
            return Self(HashMap::new());
        }
        let mut senders: Vec<usize> = flows.iter().map(|flow| flow.src).collect();
        senders.sort_unstable();
        senders.dedup();
        let all = senders.len() as u64;
        let mut order = shuffled(senders, seed, MEMBER_STREAM + 1).into_iter();
        let count = |ppm: u32| ((all * u64::from(ppm) + 500_000) / 1_000_000) as usize;
        let parts = workload.parts.iter().zip(1..);
        let hosts = parts.flat_map(|(part, number)| {
            order.by_ref().take(count(part.ppm)).map(|host| (host, number)).collect::<Vec<_>>()
        });
        Self(hosts.collect())
    }

    /// Returns the part's number from 1, or 0 for the rest.
    fn of(&self, src: usize) -> u16 {
        self.0.get(&src).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
