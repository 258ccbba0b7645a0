//! The papers' figures as a table of values.

use std::path::Path;

use super::columns::{Column, Values, count, flag, real, text};
use super::files::{WriteError, write, write_table};
use crate::figures::{Figure, FigureResults};
use crate::report;

/// A measure of a series under a condition.
struct Row {
    figure: String,
    scale: &'static str,
    series: String,
    condition: String,
    x: Option<f64>,
    measure: String,
    unit: String,
    tuned: Option<String>,
    incomplete: u64,
    spread: super::Spread,
}

const COLUMNS: [Column<Row>; 17] = [
    text("figure", "The figure, as `--figure` takes it.", |row| row.figure.clone()),
    text("scale", "`full` or `quick`.", |row| row.scale.into()),
    text("series", "What is compared.", |row| row.series.clone()),
    text("condition", "Under which condition.", |row| row.condition.clone()),
    real(["x", ""], "Where the condition stands on the x axis, if the figure has one.", |row| row.x),
    text("measure", "A key of `summary.json`, or one derived from it.", |row| row.measure.clone()),
    text("unit", "Its unit.", |row| row.unit.clone()),
    text("tuned", "The best value of what was tuned for the series.", |row| row.tuned.clone().unwrap_or_default()),
    count(["runs", ""], "Runs, one for each seed.", |row| Some(row.spread.runs)),
    count(["incomplete", "flows"], "Incomplete flows, which count with their elapsed time.", |row| {
        Some(row.incomplete)
    }),
    flag("lower_bound", "Whether the mean is a lower bound, since flows never ended.", |row| row.spread.lower_bound),
    real(["mean", ""], "Mean over the runs.", |row| Some(row.spread.mean)),
    real(["ci95_low", ""], "Where its 95 % confidence interval begins.", |row| Some(row.spread.ci95?[0])),
    real(["ci95_high", ""], "Where it ends.", |row| Some(row.spread.ci95?[1])),
    real(["sd", ""], "Standard deviation.", |row| Some(row.spread.sd)),
    real(["min", ""], "The least.", |row| Some(row.spread.min)),
    real(["max", ""], "The largest.", |row| Some(row.spread.max)),
];

/// Writes `report.html` with a page for each figure, `figures.csv` and `figures.parquet` into
/// `dir`.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write_figures(dir: &Path, figures: &[(Figure, Option<FigureResults>)]) -> Result<(), WriteError> {
    let rows: Vec<Row> =
        figures.iter().filter_map(|(figure, results)| Some(rows(figure, results.as_ref()?))).flatten().collect();
    let columns: Vec<Values> = COLUMNS.iter().map(|column| column.values(&rows)).collect();
    write_table(dir, &("figures", columns))?;
    for (figure, results) in figures.iter().filter_map(|(figure, results)| Some((figure, results.as_ref()?))) {
        write(dir, &format!("{}.html", figure.file_name()), &report::figure_page(figure, results))?;
    }
    write(dir, "report.html", &report::figures_page(figures))
}

pub(super) fn documentation() -> String {
    super::columns::markdown(&COLUMNS)
}

fn rows(figure: &Figure, results: &FigureResults) -> Vec<Row> {
    let mut rows = Vec::new();
    for (series, cells) in figure.series.iter().zip(&results.cells) {
        for (condition, cell) in figure.conditions(results.scale).zip(cells) {
            for measure in &figure.measure {
                let Some(spread) = cell.values.get(&measure.key).copied() else { continue };
                rows.push(Row {
                    figure: figure.id.clone(),
                    scale: results.scale.name(),
                    series: series.name.clone(),
                    condition: condition.name.clone(),
                    x: condition.x,
                    measure: measure.key.clone(),
                    unit: measure.unit.clone(),
                    tuned: cell.tuned.clone(),
                    incomplete: cell.incomplete,
                    spread,
                });
            }
        }
    }
    rows
}
