//! From a figure's file to the settings of each run.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::file::{Condition, Figure, Preset, Scale, Series, Tune};
use crate::scenario::{Document, Scenario};
use crate::sim::preset;

/// The settings of a cell, or of one value tried for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    /// Path and value; later ones override earlier ones.
    assigned: Vec<(String, Value)>,
}

impl Settings {
    /// Combines the settings of size, condition, series and tuned value.
    pub fn new(figure: &Figure, scale: Scale, series: &Series, condition: &Condition, tuned: Option<&Value>) -> Self {
        let quick = if scale == Scale::Quick { condition.quick.clone() } else { Table::new() };
        let tuned = series.tune.iter().zip(tuned).map(|(Tune { path, .. }, value)| (path.clone(), value.clone()));
        let tables = [&figure.size(scale).set, &condition.set, &quick, &series.set];
        let pairs =
            tables.into_iter().flat_map(|table| table.iter().map(|(path, value)| (path.clone(), value.clone())));
        Self { assigned: pairs.chain(tuned).collect() }
    }

    /// Returns a key that is the same for the same effective settings in any order.
    pub fn key(&self) -> String {
        let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
        for (path, value) in &self.assigned {
            let is_within = |known: &str| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
            last.retain(|known, _| !is_within(known));
            last.insert(path, value);
        }
        last.iter().map(|(path, value)| format!("{path}={value}\n")).collect()
    }

    /// Builds the scenario.
    pub fn scenario(&self, figure: &Figure) -> Result<Scenario, String> {
        let file = Path::new("figure.toml");
        let text = toml::to_string(&figure.scenario).map_err(|error| error.to_string())?;
        let mut document = match figure.preset {
            None => Document::parse(file, &text).map_err(|mistake| mistake.to_string())?,
            Some(Preset::Reference) => {
                let mut document = preset();
                let pairs = flat(&figure.scenario);
                pairs.iter().try_for_each(|(path, value)| assign(&mut document, path, value))?;
                document
            }
        };
        self.assigned.iter().try_for_each(|(path, value)| assign(&mut document, path, value))?;
        Scenario::read(&document).map_err(|mistake| mistake.to_string())
    }

    pub fn parameters(&self, figure: &Figure) -> Table {
        let mut parameters = figure.scenario.clone();
        parameters.extend(self.assigned.iter().cloned());
        parameters
    }
}

fn assign(document: &mut Document, path: &str, value: &Value) -> Result<(), String> {
    document.assign(path, &value.to_string(), path).map_err(|mistake| mistake.to_string())
}

/// Flattens nested tables into paths, except tables with a `kind` and tables in lists.
fn flat(table: &Table) -> Vec<(String, Value)> {
    let one = |(name, value): (&String, &Value)| match value {
        Value::Table(inner) if !inner.contains_key("kind") => {
            flat(inner).into_iter().map(|(path, value)| (format!("{name}.{path}"), value)).collect()
        }
        value => vec![(name.clone(), value.clone())],
    };
    table.iter().flat_map(one).collect()
}
