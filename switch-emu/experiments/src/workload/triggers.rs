//! What starts flows at the end of others.

use spray_sim::Trigger;

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

impl Triggers {
    /// The first flow that never starts even if every started flow ends; `None` if all flows start.
    pub fn never_started(&self) -> Option<usize> {
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.list.len()];
        for (flow, triggers) in self.of_flow.iter().enumerate() {
            triggers.start.into_iter().for_each(|trigger| waiting[trigger].push(flow));
        }
        waiting.iter_mut().for_each(|flows| flows.reverse());
        let mut signals = vec![0u32; self.list.len()];
        let mut started: Vec<bool> = self.of_flow.iter().map(|triggers| triggers.start.is_none()).collect();
        let mut running: Vec<usize> = (0..started.len()).filter(|flow| started[*flow]).collect();
        while let Some(flow) = running.pop() {
            for trigger in [self.of_flow[flow].on_sent, self.of_flow[flow].on_received].into_iter().flatten() {
                signals[trigger] += 1;
                let starts = match self.list[trigger] {
                    Trigger::Oneshot if signals[trigger] == 1 => waiting[trigger].len(),
                    Trigger::Barrier(count) if signals[trigger] == count => waiting[trigger].len(),
                    Trigger::Multishot | Trigger::MultishotUntil(_) => waiting[trigger].len().min(1),
                    Trigger::Oneshot | Trigger::Barrier(_) => 0,
                };
                for _ in 0..starts {
                    let next = waiting[trigger].pop().unwrap_or(flow);
                    started[next] = true;
                    running.push(next);
                }
            }
        }
        started.iter().position(|started| !started)
    }
}
