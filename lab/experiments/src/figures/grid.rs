//! The tables of a figure as text.

use super::file::{Figure, Measure};
use super::run::{Cell, FigureResults};
use super::verdict::number;
use crate::results::align;

/// A table with a row for each series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub corner: String,
    pub titles: Vec<String>,
    pub rows: Vec<(String, Vec<String>)>,
}

impl Grid {
    /// Formats it as an aligned table.
    pub fn text(&self) -> String {
        let header: Vec<&str> = std::iter::once(&self.corner).chain(&self.titles).map(String::as_str).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|(name, cells)| [std::slice::from_ref(name), cells].concat()).collect();
        align(&header, 1, &rows)
    }
}

/// Returns a table by condition for each measure, or by measure; `with_intervals`: of 95 %.
pub fn grids(figure: &Figure, results: &FigureResults, with_intervals: bool) -> Vec<Grid> {
    let cell = |own: &Cell, measure: &Measure| cell(own, measure, with_intervals);
    let conditions: Vec<String> = figure.conditions(results.scale).map(|condition| condition.name.clone()).collect();
    let grid = |corner: &str, titles: Vec<String>, row: &dyn Fn(&Vec<Cell>) -> Vec<String>| Grid {
        corner: corner.into(),
        titles,
        rows: figure.series.iter().zip(&results.cells).map(|(one, cells)| (one.name.clone(), row(cells))).collect(),
    };
    if let [condition] = conditions.as_slice() {
        let row = |cells: &Vec<Cell>| figure.measure.iter().map(|measure| cell(&cells[0], measure)).collect();
        return vec![grid(condition, figure.measure.iter().map(titled).collect(), &row)];
    }
    let one = |measure: &Measure| {
        let row = |cells: &Vec<Cell>| cells.iter().map(|own| cell(own, measure)).collect();
        grid(&titled(measure), conditions.clone(), &row)
    };
    figure.measure.iter().map(one).collect()
}

pub(crate) fn titled(measure: &Measure) -> String {
    if measure.unit.is_empty() { measure.title.clone() } else { format!("{}, {}", measure.title, measure.unit) }
}

/// Formats a value with its interval and the tuned setting's value.
fn cell(cell: &Cell, measure: &Measure, with_interval: bool) -> String {
    let Some(value) = cell.value(&measure.key) else { return "-".into() };
    if value.is_infinite() {
        return format!("{} never end", cell.incomplete);
    }
    let spread = cell.values.get(&measure.key).filter(|_| with_interval);
    let interval = spread.and_then(|spread| spread.ci95).filter(|[low, high]| low < high);
    let interval = interval.map_or_else(String::new, |[low, high]| format!(" ({} to {})", number(low), number(high)));
    let tuned = cell.tuned.as_ref().map_or_else(String::new, |value| format!(" (at {value})"));
    format!("{}{interval}{tuned}", number(value))
}
