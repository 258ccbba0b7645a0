//! A row: one scenario of a reference, and how it is run.

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;

use spray_experiments::scenario::Scenario;
use spray_experiments::sim::published;
use spray_fabric::{LinkAction, LinkEvent};

use super::Chooser;

/// One scenario of a reference.
#[derive(Debug)]
pub struct Row {
    /// Its name in the file of the reference.
    pub scenario: &'static str,
    pub(super) topology: &'static str,
    pub(super) matrix: Flows,
    pub(super) evs: u32,
    pub(super) ack_every: u32,
    pub(super) cc: CcKind,
    /// Links that are impaired from the start, and how.
    pub(super) links: Option<(&'static str, LinkAction)>,
    /// Whether it has few flows. Single runs then vary widely with `ecmp`.
    pub few: bool,
    /// Whether the makespan is compared instead of completion times.
    pub makespan: bool,
    /// Whether it is small enough for every test run.
    pub small: bool,
    /// The reasons why figures differ from the reference, by balancer.
    pub(super) explained: &'static [(BalancerKind, &'static str)],
    pub(super) choosers: &'static [Chooser],
}

/// The flows of a row, as the text of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flows {
    File(&'static str),
    /// A long matrix, which is generated.
    Made(fn() -> String),
}

impl Row {
    /// Returns its fabric and flows with the settings common to all published simulations.
    pub(super) fn scenario(&self) -> Scenario {
        let text = match self.matrix {
            Flows::File(text) => text.into(),
            Flows::Made(text) => text(),
        };
        let mut scenario = published(self.scenario, self.topology, &text);
        (scenario.transport.evs, scenario.transport.ack_every) = (Some(self.evs), self.ack_every);
        scenario.transport.cc = self.cc;
        if let Some((name, action)) = self.links {
            let links = scenario.network.links_named(name).unwrap();
            scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
        }
        scenario
    }
}
