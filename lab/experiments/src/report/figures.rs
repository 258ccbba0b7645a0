//! The page of the papers' figures: plots, tables, and what the papers say.

use super::chart::{self, Axes, Line};
use super::html::{Row, escape, page, section, table};
use crate::figures::{Cell, Count, Figure, Grid, Lines, Measure, Shown, Verdict, grids};

/// The page that lists figures, with a link to the page of each that was run.
pub fn figures_page(figures: &[(Figure, Option<Shown>)]) -> String {
    let row = |(figure, shown): &(Figure, Option<Shown>)| {
        let name = escape(&figure.heading());
        let (name, count) = match shown {
            Some(shown) => (
                format!("<a href=\"{}.html\">{name}</a>", escape(&figure.file_name())),
                Count::of(figure, shown).text(),
            ),
            None => (name, String::new()),
        };
        let size = figure.what_was_run(shown.as_ref());
        Row { cells: vec![name, escape(&size), escape(&count)], first: false }
    };
    let rows: Vec<Row> = figures.iter().map(row).collect();
    let list = wrapped(&table(&["figure", "what was run", "statements of the paper"], 3, &rows));
    page(TITLE, &format!("<h1>{TITLE}</h1>\n{}", section("All figures", &list)))
}

const TITLE: &str = "The papers' figures";

/// The page of a figure.
pub fn figure_page(figure: &Figure, shown: &Shown) -> String {
    let size = figure.size(shown.scale);
    let mut text =
        format!("<p class=\"soft\">{} ({}). {}</p>\n", sentence(&figure.paper), figure.section, escape(&figure.ours));
    text += &format!("<p class=\"soft\">Here: {}; seeds: {}.</p>\n", escape(&size.about), size.seeds);
    if !figure.claim.is_empty() {
        text += &wrapped(&statements(figure, shown));
    }
    let mut body = format!("<h1>{}</h1>\n", escape(&figure.heading()));
    body += &section("What the paper says", &text);
    body += "<div class=\"two\">\n";
    for measure in &figure.measure {
        body += &plot(figure, shown, measure);
    }
    for (series, lines) in figure.series.iter().zip(&shown.watched).filter(|(_, lines)| !lines.is_empty()) {
        body += &over_time(&format!("{}: what leaves each uplink", series.name), "Gb/s", lines, |lines| &lines.gbps);
        body += &over_time(&format!("{}: queues", series.name), "bytes", lines, |lines| &lines.queue_bytes);
    }
    body += "</div>\n";
    body += &section("Values", &grids(figure, shown, true).iter().map(values).collect::<String>());
    body += "<p><a href=\"report.html\">All figures</a></p>\n";
    page(&figure.heading(), &body)
}

/// A table whose words may take several lines.
fn wrapped(table: &str) -> String {
    format!("<div class=\"wrap\">{table}</div>")
}

fn sentence(text: &str) -> String {
    escape(text.trim_end_matches('.'))
}

fn statements(figure: &Figure, shown: &Shown) -> String {
    let row = |claim: &crate::figures::Claim| {
        let found = claim.against(figure, shown);
        let class = match found.verdict {
            Verdict::Confirmed | Verdict::Better => "good",
            Verdict::Contradicted => "bad",
            Verdict::Off(_) | Verdict::NotRun => "soft",
        };
        let paper = claim.paper.map_or_else(String::new, |paper| paper.to_string());
        let verdict = format!("<span class=\"{class}\">{}</span>", escape(&found.text()));
        Row { cells: vec![escape(&claim.says), paper, escape(&found.ours), verdict], first: false }
    };
    table(&["the paper says", "its number", "ours", ""], 1, &figure.claim.iter().map(row).collect::<Vec<_>>())
}

fn plot(figure: &Figure, shown: &Shown, measure: &Measure) -> String {
    let conditions: Vec<_> = figure.conditions(shown.scale).collect();
    let value = |cell: &Cell| cell.value(&measure.key).filter(|value| value.is_finite());
    let interval = |cell: &Cell| cell.values.get(&measure.key).and_then(|spread| spread.ci95);
    if figure.has_lines() && conditions.len() > 1 {
        let line = |(series, cells): (&crate::figures::Series, &Vec<Cell>)| {
            // The values, or an end of their intervals.
            let at = |end: Option<usize>| {
                let of = move |(condition, cell): (&&crate::figures::Condition, &Cell)| {
                    let value = value(cell)?;
                    let end = end.and_then(|end| Some(interval(cell)?[end]));
                    Some((condition.x?, end.unwrap_or(value).max(0.0)))
                };
                conditions.iter().zip(cells).filter_map(of).collect::<Vec<_>>()
            };
            let band = [at(Some(0)), at(Some(1)).into_iter().rev().collect()].concat();
            Line { name: series.name.clone(), points: at(None), band }
        };
        let lines: Vec<Line> = figure.series.iter().zip(&shown.cells).map(line).collect();
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        let axes = Axes { x: &figure.x, y: &measure.unit, y_at_least: 1.0 };
        return card(&measure.title, &names, &chart::lines(&axes, &lines), "");
    }
    let ranked = |(index, condition): (usize, &&crate::figures::Condition)| {
        let bar = |(series, cells): (&crate::figures::Series, &Vec<Cell>)| chart::Ranked {
            name: series.name.clone(),
            value: value(&cells[index]),
            interval: interval(&cells[index]),
        };
        let bars: Vec<chart::Ranked> = figure.series.iter().zip(&shown.cells).map(bar).collect();
        let title =
            if conditions.len() > 1 { format!("{}: {}", condition.name, measure.title) } else { measure.title.clone() };
        card(&title, &[], &chart::ranked(&measure.unit, &bars), "")
    };
    conditions.iter().enumerate().map(ranked).collect()
}

fn over_time(title: &str, unit: &str, lines: &[Lines], of: fn(&Lines) -> &Vec<(f64, f64)>) -> String {
    let names: Vec<String> = lines.iter().map(|lines| lines.port.clone()).collect();
    let line = |lines: &Lines| Line { name: lines.port.clone(), points: of(lines).clone(), band: Vec::new() };
    let drawn: Vec<Line> = lines.iter().map(line).collect();
    card(title, &names, &chart::lines(&Axes { x: "time (us)", y: unit, y_at_least: 1.0 }, &drawn), "")
}

/// A card with a plot, the names of its series and a remark below.
fn card(title: &str, names: &[String], plot: &str, remark: &str) -> String {
    let remark = if remark.is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>\n", escape(remark)) };
    section(title, &format!("{}{plot}{remark}", legend(names)))
}

fn legend(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let item = |(index, name): (usize, &String)| {
        format!("<li><i style=\"background:{}\"></i>{}</li>", chart::colour(index), escape(name))
    };
    format!("<ul class=\"legend\">{}</ul>\n", names.iter().enumerate().map(item).collect::<String>())
}

fn values(grid: &Grid) -> String {
    let heads: Vec<&str> = std::iter::once(&grid.corner).chain(&grid.titles).map(String::as_str).collect();
    let row = |(name, cells): &(String, Vec<String>)| Row {
        cells: std::iter::once(name).chain(cells).map(|text| escape(text)).collect(),
        first: false,
    };
    table(&heads, 1, &grid.rows.iter().map(row).collect::<Vec<_>>())
}
