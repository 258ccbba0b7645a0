//! The page that compares runs: plots by balancer, condition and seed, and a table.

use spray_settings::AxisValue;

use super::data::overview::{OverviewData, distinct, has_several_switches};
use super::html::{Row, WITHOUT_SCRIPTS, escape, more, page_with, paragraph, plots, section, table};
use super::run::{warnings, workloads};
use crate::results::{FinishedRun, Summary, WORDS, lateness_note, lines};

/// Returns the page that compares runs. Rows of its table link to the runs' own pages.
pub fn overview_page(runs: &[FinishedRun]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(|run| run.summary.clone()).collect();
    let several = has_several_switches(summaries.iter());
    let conditions = distinct(summaries.iter().map(|s| condition(s, several)));
    let balancers = distinct(summaries.iter().map(|s| s.balancer.clone()));
    let scenario = title(&summaries);
    let data = OverviewData::of(runs);
    let mut body = format!("<header><h1>{}</h1>\n", escape(&scenario));
    body += &format!("<p class=\"soft\">{}</p></header>\n", escape(&lead(&summaries, &conditions, &balancers)));
    if data.left_out > 0 {
        body += &paragraph("soft", &format!("{} more runs are in runs.csv and sweep.json only.", data.left_out));
    }
    body += &warnings(&summaries);
    body += WITHOUT_SCRIPTS;
    body += "<div id=\"choices\" hidden=\"\"></div>\n";
    body += &plots(data.plots(), about);
    body += &workloads(&summaries);
    let lateness = lateness_note(&summaries).map_or_else(String::new, |note| paragraph("soft", &note));
    body += &section("All runs", &(compared(runs, &summaries) + &lateness));
    page_with(&scenario, &body, &data)
}

fn about(id: &str) -> (&'static str, &'static str) {
    match id {
        "measure" => ("Figures by balancer and condition", INTERVAL),
        "axis" => ("Figures along an axis of the sweep", BAND),
        "fct" => ("Flow completion times", BAND),
        "goodput" => ("Goodput over time", BAND),
        "sizes" => (
            "Slowdown by flow size",
            "Completion time over that of the same message alone in the fabric; means over the seeds.",
        ),
        _ => ("Frames lost and trimmed, by place and cause", "Means over the seeds."),
    }
}

/// Maximum number of conditions named in the first sentence.
const CONDITIONS: usize = 12;

/// Labels a run by condition and axis values, and by switch scheme if `several` are compared.
fn condition(s: &Summary, several: bool) -> String {
    let axis = |(path, value): (&String, &AxisValue)| format!("{} {value}", path.rsplit('.').next().unwrap_or(path));
    let switch = several.then(|| format!("switch {}", s.switch));
    std::iter::once(s.condition.clone()).chain(s.axes.iter().map(axis)).chain(switch).collect::<Vec<_>>().join(", ")
}

const BAND: &str = "Bands: 95 % interval of the mean over the seeds.";
const INTERVAL: &str = "Means over the seeds, with their 95 % intervals.";

fn lead(summaries: &[Summary], conditions: &[String], balancers: &[String]) -> String {
    let verified = summaries.iter().filter(|s| s.is_complete()).count();
    let what = if summaries.iter().all(|s| s.sim.is_some()) { "All flows completed" } else { "Payload verified" };
    let runs = if summaries.len() == 1 { "run" } else { "runs" };
    format!(
        "{} {runs}: {} under {}. {what} in {verified} of {}. Times are the scenario's own, not the machine's.",
        summaries.len(),
        balancers.join(", "),
        some(conditions),
        summaries.len(),
    )
}

/// Returns the scenarios' common prefix: `demo` for `demo-healthy` and `demo-slow-uplink`.
fn title(summaries: &[Summary]) -> String {
    let names = distinct(summaries.iter().map(|s| s.scenario.clone()));
    let [first, rest @ ..] = names.as_slice() else { return "no runs".into() };
    let is_common = |prefix: &&str| rest.iter().all(|name| name.starts_with(*prefix));
    let ends = first.char_indices().map(|(at, _)| &first[..at]).chain([first.as_str()]);
    let common = ends.rev().find(is_common).unwrap_or_default();
    let common = if rest.is_empty() { common } else { common.trim_end_matches(|c: char| !c.is_alphanumeric()) };
    if common.is_empty() { format!("{} scenarios", names.len()) } else { common.into() }
}

fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(CONDITIONS)].join("; ");
    if names.len() > CONDITIONS { format!("{shown} and {} more", names.len() - CONDITIONS) } else { shown }
}

fn compared(runs: &[FinishedRun], summaries: &[Summary]) -> String {
    let mut last = None;
    let mut rows = Vec::new();
    let (header, lines) = lines(summaries);
    let several = distinct(summaries.iter().map(|s| s.seed.to_string())).len() > 1;
    let switches = has_several_switches(summaries.iter());
    let balancer = WORDS - 1;
    for ((run, s), line) in runs.iter().zip(summaries).zip(lines).take(LISTED) {
        let label = condition(s, switches);
        let mut cells: Vec<String> = line.iter().map(|cell| escape(cell)).collect();
        cells[0] = escape(&label);
        if several {
            cells[balancer] += &format!(", seed {}", s.seed);
        }
        if run.has_report {
            cells[balancer] = format!("<a href=\"{}/report.html\">{}</a>", escape(&run.folder), cells[balancer]);
        }
        if let Some(cell) = cells.last_mut() {
            *cell = format!("<span class=\"{}\">{cell}</span>", if s.is_complete() { "good" } else { "bad" });
        }
        rows.push(Row { cells, first: last.is_some_and(|last| last != label) });
        last = Some(label);
    }
    table(&header, WORDS, rows) + &more(runs.len().saturating_sub(LISTED), "runs.csv")
}

/// Maximum number of rows of the table of runs.
const LISTED: usize = 500;
