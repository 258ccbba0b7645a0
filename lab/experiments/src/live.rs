//! A run with somebody at its controls.

use std::sync::atomic::{AtomicU8, Ordering};

use spray_core::path::BalancerKind;
use spray_fabric::LinkEvent;
use spray_fabric::live::{Answer, LinkSchedule, Operator, Snapshot};

/// The balancer of flows that have yet to send something.
#[derive(Debug)]
pub struct NewFlows(AtomicU8);

impl NewFlows {
    /// Begins with this one.
    pub fn new(balancer: BalancerKind) -> Self {
        Self(AtomicU8::new(balancer as u8))
    }

    /// The balancer of flows that begin now.
    pub fn get(&self) -> BalancerKind {
        BalancerKind::ALL[usize::from(self.0.load(Ordering::Relaxed))]
    }

    /// Changes it. [`Order::Rechoose`](spray_fabric::live::Order::Rechoose) has to follow.
    pub fn set(&self, balancer: BalancerKind) {
        self.0.store(balancer as u8, Ordering::Relaxed);
    }
}

/// The operator of a run, and what they may change.
pub struct Live<'a> {
    /// The operator.
    pub operator: &'a mut dyn Operator,
    /// The balancer that they choose; at first that of the run.
    pub new_flows: &'a NewFlows,
}

/// An operator whose orders are put down, for the results.
pub(crate) struct Recorded<'a> {
    operator: &'a mut dyn Operator,
    schedule: LinkSchedule,
}

impl<'a> Recorded<'a> {
    /// In a run with these events.
    pub(crate) fn new(operator: &'a mut dyn Operator, events: &[LinkEvent]) -> Self {
        Self { operator, schedule: LinkSchedule::new(events) }
    }

    /// The events of the scenario and what was ordered.
    pub(crate) fn into_events(self) -> Vec<LinkEvent> {
        self.schedule.into_events()
    }
}

impl Operator for Recorded<'_> {
    fn look(&mut self, run: &Snapshot) -> Answer {
        let answer = self.operator.look(run);
        let now_ps = u64::try_from(run.now_ps).unwrap_or(0);
        answer.orders.iter().for_each(|order| drop(self.schedule.enter(now_ps, order)));
        answer
    }
}
