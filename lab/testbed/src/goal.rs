//! The goal and the progress of a run.

use spray_fabric::Progress;

use super::plan::Plan;

pub(super) struct Goal<'a> {
    pub plan: &'a Plan,
    pub flows: u64,
    pub total_bytes: u64,
    /// Virtual time at scenario time 0.
    pub lead_in_ps: u64,
    /// Virtual time limit.
    pub until_ps: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// Virtual time that every thread has reached.
    pub now_ps: u64,
    pub delivered_bytes: u64,
    /// Number of messages received.
    pub arrived: u64,
}

impl Report {
    pub fn progress(&self, goal: &Goal<'_>) -> Progress {
        Progress::Running {
            time_us: self.now_ps.saturating_sub(goal.lead_in_ps) as f64 / 1e6,
            delivered_bytes: self.delivered_bytes,
            total_bytes: goal.total_bytes,
            flows_completed: self.arrived,
            flows_total: goal.flows,
        }
    }
}
