//! In place of the view of `spray run --live`, in a build without it.

use std::convert::Infallible;
use std::sync::Arc;

use spray_core::path::BalancerKind;
use spray_experiments::live::NewFlows;
use spray_experiments::scenario::Scenario;
use spray_fabric::live::{Answer, Operator, Snapshot};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::stop::Stop;

/// Refuses to view anything.
pub fn check(_: usize) -> Outcome {
    Err(Failure::refused("this spray is built without `--live`: `cargo xtask build` makes one with it"))
}

/// There is none.
pub struct View(Infallible);

impl View {
    /// Never called, as [`check`] refuses.
    ///
    /// # Panics
    /// Always.
    pub fn new(_: &Scenario, _: (&str, bool), _: (BalancerKind, u64), _: &Stop) -> Self {
        unreachable!("`check` refuses a view")
    }

    /// As of a view.
    pub fn new_flows(&self) -> Arc<NewFlows> {
        match self.0 {}
    }
}

impl Operator for View {
    fn look(&mut self, _: &Snapshot) -> Answer {
        match self.0 {}
    }
}
