//! The page that compares runs: bars by balancer and condition, and the table.

use super::html::{Row, escape, figure, page, section, table};
use super::{chart, series};
use crate::results::{RunResult, Summary, columns, lateness_note, loss_note};

/// The page that compares runs; each row of its table links to the run's own page in [`RunResult::folder`].
#[must_use]
pub fn overview_page(runs: &[RunResult]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(RunResult::summary).collect();
    let conditions = distinct(summaries.iter().map(|s| &s.condition));
    let balancers = distinct(summaries.iter().map(|s| &s.balancer));
    let scenario = title(&summaries);
    let mut body = format!("<h1>{}</h1>\n", escape(&scenario));
    body += &format!("<p class=\"soft\">{}</p>\n", escape(&lead(&summaries, &conditions, &balancers)));
    body += "<div class=\"two\">\n";
    for (title, unit, value) in MEASURES {
        let groups = grouped(&summaries, &conditions, &balancers, value);
        body += &figure(title, &balancers, &chart::bars(unit, balancers.len(), &groups), "");
    }
    body += "</div>\n";
    body += &cdfs(runs, &conditions);
    body += &section("All runs", &(compared(runs, &summaries) + &notes(&summaries)));
    page(&scenario, &body)
}

/// Goodput by condition and balancer, as an SVG file.
#[must_use]
pub fn goodput_picture(runs: &[RunResult]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(RunResult::summary).collect();
    let conditions = distinct(summaries.iter().map(|s| &s.condition));
    let balancers = distinct(summaries.iter().map(|s| &s.balancer));
    let (_, unit, value) = GOODPUT;
    let groups = grouped(&summaries, &conditions, &balancers, value);
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
        conditions.join(", "),
        summaries.len(),
    )
}

/// What the scenarios' names begin with: `demo` for `demo-healthy` and `demo-slow-uplink`.
fn title(summaries: &[Summary]) -> String {
    let names = distinct(summaries.iter().map(|s| &s.scenario));
    let [first, rest @ ..] = names.as_slice() else { return "no runs".into() };
    let is_common = |prefix: &&str| rest.iter().all(|name| name.starts_with(*prefix));
    let ends = first.char_indices().map(|(at, _)| &first[..at]).chain([first.as_str()]);
    let common = ends.rev().find(is_common).unwrap_or_default();
    let common = if rest.is_empty() { common } else { common.trim_end_matches(|c: char| !c.is_alphanumeric()) };
    if common.is_empty() { format!("{} scenarios", names.len()) } else { common.into() }
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen
}

fn grouped(summaries: &[Summary], conditions: &[String], balancers: &[String], value: Measure) -> Vec<chart::Group> {
    let of = |condition: &String, balancer: &String| {
        let found = summaries.iter().find(|s| s.condition == *condition && s.balancer == *balancer);
        found.map_or(0.0, value)
    };
    let group = |condition: &String| chart::Group {
        label: condition.clone(),
        values: balancers.iter().map(|balancer| of(condition, balancer)).collect(),
    };
    conditions.iter().map(group).collect()
}

fn cdfs(runs: &[RunResult], conditions: &[String]) -> String {
    let figure_of = |condition: &String| {
        let chosen = runs.iter().filter(|run| run.condition == *condition);
        let lines: Vec<chart::Line> = chosen.map(|run| series::fct_cdf(&run.balancer, run)).collect();
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        let axes = chart::Axes { width: chart::THIRD, x: "FCT (us)", y: "% of flows", y_at_least: 100.0 };
        figure(&format!("FCT: {condition}"), &names, &chart::lines(&axes, &lines, &[]), "")
    };
    format!("<div class=\"three\">\n{}</div>\n", conditions.iter().map(figure_of).collect::<String>())
}

fn compared(runs: &[RunResult], summaries: &[Summary]) -> String {
    let mut last = None;
    let mut rows = Vec::new();
    let columns = columns(summaries);
    for (run, s) in runs.iter().zip(summaries) {
        let mut cells: Vec<String> = columns.iter().map(|(_, cell)| escape(&cell(s))).collect();
        cells[1] = format!("<a href=\"{}/report.html\">{}</a>", run.folder(), cells[1]);
        if let Some(cell) = cells.last_mut() {
            *cell = format!("<span class=\"{}\">{cell}</span>", if s.is_complete() { "good" } else { "bad" });
        }
        rows.push(Row { cells, first: last.is_some_and(|condition| condition != &s.condition) });
        last = Some(&s.condition);
    }
    table(&columns.iter().map(|(title, _)| *title).collect::<Vec<_>>(), 2, &rows)
}

fn notes(summaries: &[Summary]) -> String {
    let lateness = lateness_note(summaries).map(|note| format!("<p class=\"soft\">{}</p>\n", escape(&note)));
    let losses = summaries.iter().filter_map(loss_note).map(|note| format!("<p class=\"bad\">{}</p>\n", escape(&note)));
    lateness.into_iter().chain(losses).collect()
}
