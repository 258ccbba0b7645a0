//! The page that compares runs: bars by balancer and condition, and the table.

use std::collections::HashSet;

use spray_settings::AxisValue;

use super::html::{Row, escape, figure, page, section, table};
use super::run::workloads;
use super::{chart, series};
use crate::results::{Finished, Spread, Summary, columns, lateness_note, loss_note};

/// The page that compares runs; each row of its table links to the run's own page in its folder.
#[must_use]
pub fn overview_page(runs: &[Finished]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(|run| run.summary.clone()).collect();
    let conditions = distinct(summaries.iter().map(condition));
    let balancers = distinct(summaries.iter().map(|s| s.balancer.clone()));
    let scenario = title(&summaries);
    let mut body = format!("<h1>{}</h1>\n", escape(&scenario));
    body += &format!("<p class=\"soft\">{}</p>\n", escape(&lead(&summaries, &conditions, &balancers)));
    let shown = &conditions[..conditions.len().min(CONDITIONS)];
    if shown.len() < conditions.len() {
        let rest = conditions.len() - shown.len();
        body += &format!(
            "<p class=\"soft\">The figures show the first {CONDITIONS}; the table and sweep.json have {rest} more.</p>\n"
        );
    }
    body += "<div class=\"two\">\n";
    for (title, unit, value) in MEASURES {
        let groups = grouped(&summaries, shown, &balancers, value);
        body += &figure(title, &balancers, &chart::bars(unit, balancers.len(), &groups), "");
    }
    body += &by_workload(&summaries, shown, &balancers);
    body += "</div>\n";
    body += &along_axes(&summaries, &balancers);
    body += &curves(runs, shown, "FCT", "FCT (us)", ("% of flows", 100.0), series::fct_cdf_of);
    body += &curves(runs, shown, "Goodput", "time (us)", ("Gb/s", 1.0), series::goodput_of);
    body += &workloads(&summaries);
    body += &section("All runs", &(compared(runs, &summaries) + &notes(&summaries)));
    page(&scenario, &body)
}

/// Most conditions with figures of their own: more would make the page long and its bars thin.
const CONDITIONS: usize = 12;

/// The condition of a run, and its values of the axes.
fn condition(s: &Summary) -> String {
    let axis = |(path, value): (&String, &AxisValue)| format!("{} {value}", path.rsplit('.').next().unwrap_or(path));
    std::iter::once(s.condition.clone()).chain(s.axes.iter().map(axis)).collect::<Vec<_>>().join(", ")
}

/// Figures over the values of the sweep's axis, if it has one and that has numbers: a line for each balancer, with the mean's 95 %
/// interval as a band.
fn along_axes(summaries: &[Summary], balancers: &[String]) -> String {
    let paths = distinct(summaries.iter().flat_map(|s| s.axes.keys().cloned()));
    let conditions = distinct(summaries.iter().map(|s| s.condition.clone()));
    let ([path], [_]) = (paths.as_slice(), conditions.as_slice()) else { return String::new() };
    let at = |s: &Summary| s.axes.get(path).and_then(AxisValue::number);
    let mut values: Vec<f64> = summaries.iter().filter_map(at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() < 2 {
        return String::new();
    }
    let plot = |(title, unit, measure): (&str, &'static str, Measure)| {
        let line = |balancer: &String| {
            let of = |value: &f64| {
                let chosen = summaries.iter().filter(|s| s.balancer == *balancer && at(s) == Some(*value));
                Some((*value, Spread::of(&chosen.map(measure).collect::<Vec<_>>())))
                    .filter(|(_, spread)| spread.runs > 0)
            };
            let spreads: Vec<(f64, Spread)> = values.iter().filter_map(of).collect();
            let side =
                |sign: f64| spreads.iter().map(move |(x, s)| (*x, (s.mean + sign * s.ci95.unwrap_or(0.0)).max(0.0)));
            let several = spreads.iter().any(|(_, spread)| spread.ci95.is_some());
            let band = if several { side(-1.0).chain(side(1.0).rev()).collect() } else { Vec::new() };
            chart::Line { name: balancer.clone(), points: side(0.0).collect(), band }
        };
        let lines: Vec<chart::Line> = balancers.iter().map(line).collect();
        let axes = chart::Axes { width: chart::HALF, x: path, y: unit, y_at_least: 1.0 };
        figure(title, balancers, &chart::lines(&axes, &lines, &[]), BAND)
    };
    format!("<div class=\"two\">\n{}</div>\n", MEASURES.map(plot).concat())
}

const BAND: &str = "Bands: 95 % interval of the mean over the seeds.";

/// Goodput by condition and balancer, as an SVG file.
#[must_use]
pub fn goodput_picture(runs: &[Finished]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(|run| run.summary.clone()).collect();
    let conditions = distinct(summaries.iter().map(condition));
    let balancers = distinct(summaries.iter().map(|s| s.balancer.clone()));
    let (_, unit, value) = GOODPUT;
    let groups = grouped(&summaries, &conditions[..conditions.len().min(CONDITIONS)], &balancers, value);
    let unit = format!("goodput ({unit})");
    chart::picture(&balancers, &chart::bars(&unit, balancers.len(), &groups))
}

type Measure = fn(&Summary) -> f64;

const GOODPUT: (&str, &str, Measure) = ("Goodput (more is better)", "Gb/s", |s| s.goodput_gbps);

const MEASURES: [(&str, &str, Measure); 4] = [
    ("Slowest flow's completion time (less is better)", "us", |s| s.fct_max_us),
    ("Mean flow completion time (less is better)", "us", |s| s.fct_mean_us),
    GOODPUT,
    ("Packets dropped (less is better)", "packets", |s| (s.drops_queue + s.drops_link + s.drops_random) as f64),
];

fn lead(summaries: &[Summary], conditions: &[String], balancers: &[String]) -> String {
    let verified = summaries.iter().filter(|s| s.is_complete()).count();
    let what = if summaries.iter().all(|s| s.sim.is_some()) { "All flows completed" } else { "Payload verified" };
    format!(
        "{} runs: {} under {}. {what} in {verified} of {}. Times are the scenario's own, not the machine's.",
        summaries.len(),
        balancers.join(", "),
        some(conditions),
        summaries.len(),
    )
}

/// What the scenarios' names begin with: `demo` for `demo-healthy` and `demo-slow-uplink`.
fn title(summaries: &[Summary]) -> String {
    let names = distinct(summaries.iter().map(|s| s.scenario.clone()));
    let [first, rest @ ..] = names.as_slice() else { return "no runs".into() };
    let is_common = |prefix: &&str| rest.iter().all(|name| name.starts_with(*prefix));
    let ends = first.char_indices().map(|(at, _)| &first[..at]).chain([first.as_str()]);
    let common = ends.rev().find(is_common).unwrap_or_default();
    let common = if rest.is_empty() { common } else { common.trim_end_matches(|c: char| !c.is_alphanumeric()) };
    if common.is_empty() { format!("{} scenarios", names.len()) } else { common.into() }
}

/// The first names of a list.
fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(CONDITIONS)].join("; ");
    if names.len() > CONDITIONS { format!("{shown} and {} more", names.len() - CONDITIONS) } else { shown }
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}

fn grouped(summaries: &[Summary], conditions: &[String], balancers: &[String], value: Measure) -> Vec<chart::Group> {
    let of = |label: &String, balancer: &String| {
        let found = summaries.iter().filter(|s| s.balancer == *balancer && condition(s) == *label);
        let spread = Spread::of(&found.map(value).collect::<Vec<_>>());
        chart::Bar { value: spread.mean, interval: spread.ci95 }
    };
    let group = |label: &String| chart::Group {
        label: label.clone(),
        values: balancers.iter().map(|balancer| of(label, balancer)).collect(),
    };
    conditions.iter().map(group).collect()
}

/// Where there are several workloads, for each condition the slowest flows of each workload.
fn by_workload(summaries: &[Summary], conditions: &[String], balancers: &[String]) -> String {
    let names = distinct(summaries.iter().flat_map(|s| s.workloads.iter().map(|own| own.name.clone())));
    if names.len() < 2 {
        return String::new();
    }
    let of = |label: &String, name: &String, balancer: &String| {
        let runs = summaries.iter().filter(|s| s.balancer == *balancer && condition(s) == *label);
        let own = runs.filter_map(|s| s.workloads.iter().find(|own| own.name == *name));
        let spread = Spread::of(&own.map(|own| own.fct_p99_us).collect::<Vec<_>>());
        chart::Bar { value: spread.mean, interval: spread.ci95 }
    };
    let figure_of = |label: &String| {
        let group = |name: &String| chart::Group {
            label: name.clone(),
            values: balancers.iter().map(|balancer| of(label, name, balancer)).collect(),
        };
        let groups: Vec<chart::Group> = names.iter().take(CONDITIONS).map(group).collect();
        let title = format!("99th percentile of the completion time, by workload: {label}");
        figure(&title, balancers, &chart::bars("us", balancers.len(), &groups), "")
    };
    conditions.iter().map(figure_of).collect()
}

/// A plot for each condition with a line for each balancer.
fn curves(
    runs: &[Finished],
    conditions: &[String],
    title: &str,
    x: &str,
    (y, y_at_least): (&'static str, f64),
    line: fn(&str, &[&Finished]) -> chart::Line,
) -> String {
    let figure_of = |label: &String| {
        let chosen: Vec<&Finished> = runs.iter().filter(|run| condition(&run.summary) == *label).collect();
        let names = distinct(chosen.iter().map(|run| run.summary.balancer.clone()));
        let of = |name: &String| {
            line(name, &chosen.iter().filter(|run| run.summary.balancer == *name).copied().collect::<Vec<_>>())
        };
        let lines: Vec<chart::Line> = names.iter().map(of).collect();
        let remark = if lines.iter().any(|line| !line.band.is_empty()) { BAND } else { "" };
        let axes = chart::Axes { width: chart::THIRD, x, y, y_at_least };
        figure(&format!("{title}: {label}"), &names, &chart::lines(&axes, &lines, &[]), remark)
    };
    format!("<div class=\"three\">\n{}</div>\n", conditions.iter().map(figure_of).collect::<String>())
}

fn compared(runs: &[Finished], summaries: &[Summary]) -> String {
    let mut last = None;
    let mut rows = Vec::new();
    let columns = columns(summaries);
    let several = distinct(summaries.iter().map(|s| s.seed.to_string())).len() > 1;
    for (run, s) in runs.iter().zip(summaries).take(LISTED) {
        let mut cells: Vec<String> = columns.iter().map(|(_, cell)| escape(&cell(s))).collect();
        cells[0] = escape(&condition(s));
        if several {
            cells[1] += &format!(", seed {}", s.seed);
        }
        cells[1] = format!("<a href=\"{}/report.html\">{}</a>", escape(&run.folder), cells[1]);
        if let Some(cell) = cells.last_mut() {
            *cell = format!("<span class=\"{}\">{cell}</span>", if s.is_complete() { "good" } else { "bad" });
        }
        let label = condition(s);
        rows.push(Row { cells, first: last.is_some_and(|last| last != label) });
        last = Some(label);
    }
    let more = runs.len().saturating_sub(LISTED);
    let rest = if more > 0 { format!("<p class=\"soft\">{more} more in runs.csv</p>\n") } else { String::new() };
    table(&columns.iter().map(|(title, _)| *title).collect::<Vec<_>>(), 2, &rows) + &rest
}

/// Most rows of the table of runs.
const LISTED: usize = 500;

fn notes(summaries: &[Summary]) -> String {
    let lateness = lateness_note(summaries).map(|note| format!("<p class=\"soft\">{}</p>\n", escape(&note)));
    let losses = summaries.iter().filter_map(loss_note).map(|note| format!("<p class=\"bad\">{}</p>\n", escape(&note)));
    lateness.into_iter().chain(losses).collect()
}
