//! Figures that need no simulation: formulas and balls.
//!
//! A model takes parameters in a table and a seed, and gives numbers by name.

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
/// When there is no such model, or a parameter is missing.
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
