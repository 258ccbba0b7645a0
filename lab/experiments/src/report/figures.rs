//! Pages of the papers' figures: plots, tables and statements of the papers.

use serde::Serialize;

use super::data::Line;
use super::html::{WITHOUT_SCRIPTS, escape, page, page_with, paragraph, plot, section, table};
use crate::figures::Plot as Kind;
use crate::figures::{
    Cell, Claim, Condition, Count, Figure, FigureResults, Grid, Measure, PortSeries, Series, Verdict, grids,
};

/// Returns the page that lists figures, with links to those that were run.
pub fn figures_page(figures: &[(Figure, Option<FigureResults>)]) -> String {
    let row = |(figure, results): &(Figure, Option<FigureResults>)| {
        let name = escape(&figure.heading());
        let (name, count) = match results {
            Some(results) => (
                format!("<a href=\"{}.html\">{name}</a>", escape(&figure.file_name())),
                Count::of(figure, results).text(),
            ),
            None => (name, String::new()),
        };
        let size = figure.what_was_run(results.as_ref());
        vec![name, escape(&size), escape(&count)]
    };
    let list = wrapped(&table(&["figure", "what was run", "statements of the paper"], 3, figures.iter().map(row)));
    page(TITLE, &format!("<h1>{TITLE}</h1>\n{}", section("All figures", &list)))
}

const TITLE: &str = "The papers' figures";

pub fn figure_page(figure: &Figure, results: &FigureResults) -> String {
    let size = figure.size(results.scale);
    let mut text =
        format!("<p class=\"soft\">{} ({}). {}</p>\n", sentence(&figure.paper), figure.section, escape(&figure.ours));
    text += &paragraph("soft", &format!("Here: {}; seeds: {}.", size.about, size.seeds));
    if !figure.claim.is_empty() {
        text += &wrapped(&statements(figure, results));
    }
    let mut plots: Vec<Plot> = figure.measure.iter().flat_map(|measure| of_measure(figure, results, measure)).collect();
    for (series, lines) in figure.series.iter().zip(&results.port_series).filter(|(_, lines)| !lines.is_empty()) {
        let time_series = |what: &str, unit, of: fn(&PortSeries) -> &Vec<(f64, f64)>| {
            let line = |port: &PortSeries| Drawn { line: Line::new(&port.port, of(port).iter().copied()), band: None };
            Plot::of_lines(format!("{}: {what}", series.name), "time (us)", unit, lines.iter().map(line))
        };
        plots.push(time_series("what leaves each uplink", "Gb/s", |lines| &lines.gbps));
        plots.push(time_series("queues", "bytes", |lines| &lines.queue_bytes));
    }
    plots.iter_mut().enumerate().for_each(|(number, plot)| plot.id = format!("plot{number}"));
    let mut body = format!("<header><h1>{}</h1></header>\n", escape(&figure.heading()));
    body += &section("What the paper says", &text);
    let cards: String = plots.iter().map(|Plot { id, title, .. }| plot(id, title, "")).collect();
    body += &format!("{WITHOUT_SCRIPTS}<div class=\"two\">\n{cards}</div>\n");
    body += &section("Values", &grids(figure, results, true).iter().map(values).collect::<String>());
    body += "<p><a href=\"report.html\">All figures</a></p>\n";
    page_with(&figure.heading(), &body, &FigureData { kind: "figure", plots })
}

#[derive(Serialize)]
struct FigureData {
    kind: &'static str,
    plots: Vec<Plot>,
}

#[derive(Default, Serialize)]
struct Plot {
    id: String,
    title: String,
    x: String,
    unit: String,
    lines: Vec<Drawn>,
    bars: Vec<Bar>,
}

/// A line and the outline of its confidence band.
#[derive(Serialize)]
struct Drawn {
    #[serde(flatten)]
    line: Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<Line>,
}

#[derive(Serialize)]
struct Bar {
    name: String,
    /// `None` where a run never ended.
    value: Option<f64>,
    interval: Option<[f64; 2]>,
}

impl Plot {
    fn of_lines(title: String, x: &str, unit: &str, lines: impl Iterator<Item = Drawn>) -> Self {
        Self { title, x: x.into(), unit: unit.into(), lines: lines.collect(), ..Self::default() }
    }
}

/// Lets the cells of a table wrap.
fn wrapped(table: &str) -> String {
    format!("<div class=\"wrap\">{table}</div>")
}

fn sentence(text: &str) -> String {
    escape(text.trim_end_matches('.'))
}

fn statements(figure: &Figure, results: &FigureResults) -> String {
    let row = |claim: &Claim| {
        let found = claim.against(figure, results);
        let class = match found.verdict {
            Verdict::Confirmed | Verdict::Better => "good",
            Verdict::Contradicted => "bad",
            Verdict::Off(_) | Verdict::NotRun => "soft",
        };
        let paper = claim.paper.map_or_else(String::new, |paper| paper.to_string());
        let verdict = format!("<span class=\"{class}\">{}</span>", escape(&found.text()));
        vec![escape(&claim.says), paper, escape(&found.ours), verdict]
    };
    table(&["the paper says", "its number", "ours", ""], 1, figure.claim.iter().map(row))
}

/// Returns one plot with lines, or one with bars for each condition.
fn of_measure(figure: &Figure, results: &FigureResults, measure: &Measure) -> Vec<Plot> {
    let conditions: Vec<_> = figure.conditions(results.scale).collect();
    let value = |cell: &Cell| cell.value(&measure.key).filter(|value| value.is_finite());
    let interval = |cell: &Cell| cell.values.get(&measure.key).and_then(|spread| spread.ci95);
    if figure.plot == Kind::Lines && conditions.len() > 1 {
        let line = |(series, cells): (&Series, &Vec<Cell>)| {
            // The values, or one end of their intervals.
            let at = |end: Option<usize>| {
                let of = move |(condition, cell): (&&Condition, &Cell)| {
                    let value = value(cell)?;
                    let end = end.and_then(|end| Some(interval(cell)?[end]));
                    Some((condition.x?, end.unwrap_or(value).max(0.0)))
                };
                conditions.iter().zip(cells).filter_map(of).collect::<Vec<_>>()
            };
            let band = at(Some(0)).into_iter().chain(at(Some(1)).into_iter().rev());
            let is_there = cells.iter().any(|cell| interval(cell).is_some());
            Drawn { line: Line::new(&series.name, at(None).into_iter()), band: is_there.then(|| Line::new("", band)) }
        };
        let lines = figure.series.iter().zip(&results.cells).map(line);
        return vec![Plot::of_lines(measure.title.clone(), &figure.x, &measure.unit, lines)];
    }
    let bars = |(index, condition): (usize, &&Condition)| {
        let bar = |(series, cells): (&Series, &Vec<Cell>)| {
            let value = value(&cells[index]);
            let name = if value.is_some() { series.name.clone() } else { format!("{} (never ends)", series.name) };
            Bar { name, value, interval: interval(&cells[index]) }
        };
        let title =
            if conditions.len() > 1 { format!("{}: {}", condition.name, measure.title) } else { measure.title.clone() };
        let bars = figure.series.iter().zip(&results.cells).map(bar).collect();
        Plot { title, unit: measure.unit.clone(), bars, ..Plot::default() }
    };
    conditions.iter().enumerate().map(bars).collect()
}

fn values(grid: &Grid) -> String {
    let heads: Vec<&String> = std::iter::once(&grid.corner).chain(&grid.titles).collect();
    let row = |(name, cells): &(String, Vec<String>)| -> Vec<String> {
        std::iter::once(name).chain(cells).map(|text| escape(text)).collect()
    };
    table(&heads, 1, grid.rows.iter().map(row))
}
