//! Models that replace a simulation: formulas, and balls into bins.
//!
//! A model maps a table of parameters and a seed to numbers by key.

mod balls;
mod imbalance;
mod memory;
mod parameters;
mod sizes;
mod slices;

use toml::Table;

use self::parameters::Parameters;
use super::measures::Measures;

/// Runs a model.
///
/// # Errors
/// When the model is unknown or a parameter is missing.
pub fn run(name: &str, parameters: &Table, seed: u64) -> Result<Measures, String> {
    let parameters = Parameters(parameters);
    match name {
        "balls" => balls::balls(&parameters, seed),
        "imbalance" => imbalance::imbalance(&parameters, seed),
        "reps-memory" => memory::reps(&parameters),
        "flowcut-memory" => memory::flowcut(&parameters),
        "sizes" => sizes::sizes(&parameters),
        "slices" => slices::slices(&parameters, seed),
        _ => Err(format!("there is no model `{name}`")),
    }
}
