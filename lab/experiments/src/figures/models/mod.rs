//! Figures that need no simulation: formulas and balls.
//!
//! A model takes parameters in a table and a seed, and gives numbers by name.

mod balls;
mod imbalance;
mod memory;
mod sizes;
mod slices;

use toml::Table;

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

/// The parameters of a model.
struct Parameters<'a>(&'a Table);

impl Parameters<'_> {
    fn number(&self, name: &str) -> Result<f64, String> {
        let value =
            self.0.get(name).and_then(|value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64)));
        value.ok_or_else(|| format!("the model needs a number `{name}`"))
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        self.0.get(name).and_then(toml::Value::as_str).ok_or_else(|| format!("the model needs a text `{name}`"))
    }

    fn count(&self, name: &str) -> Result<usize, String> {
        let value = self.0.get(name).and_then(toml::Value::as_integer).and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| format!("the model needs a whole number `{name}`"))
    }
}
