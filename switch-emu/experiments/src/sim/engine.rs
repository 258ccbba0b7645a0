//! The simulator as an engine.

use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;

use super::{SimOptions, Simulation};
use crate::engine::{Engine, EngineError, Prepared, Progress};
use crate::results::RunResult;
use crate::scenario::Scenario;

/// The engine that runs under virtual time; any number of runs at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl Engine for Sim {
    fn is_exclusive(&self) -> bool {
        false
    }

    fn prepare<'a>(
        &'a self,
        scenario: &'a Scenario,
        _: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Prepared + 'a>, EngineError> {
        Ok(Box::new(Simulation::new(scenario)))
    }
}

impl Prepared for Simulation<'_> {
    fn run(
        &self,
        balancer: BalancerKind,
        seed: u64,
        _: &mut dyn FnMut(Progress),
        _: &AtomicBool,
    ) -> Result<RunResult, EngineError> {
        let events = self.failures(seed).map_err(|error| EngineError::Refused(error.to_string()))?;
        let options = SimOptions { balancer, seed, events };
        Simulation::run(self, &options).map_err(|error| EngineError::Refused(error.to_string()))
    }
}
