//! The page about one run.

use spray_fabric::PortOutcome;

use super::html::{Row, escape, figure, figures, page, section, table};
use super::{chart, series};
use crate::results::{Lines, RunResult, Summary, loss_note, workload_lines};

/// Most uplinks per plot: one for each colour.
const UPLINKS: usize = 8;
/// Most queues per plot. Their lines cross often, and nobody could follow more of them.
const QUEUES: usize = 4;
/// Most rows of the list of events; `events.csv` has all of them.
const LISTED_EVENTS: usize = 60;

/// Most rows of the table of workloads; the tables called `workloads` have all of them.
const LISTED_WORKLOADS: usize = 200;

/// The page about one run: figures, goodput, queues and uplinks over time, completion times, events, flows, ports.
#[must_use]
pub fn run_page(run: &RunResult) -> String {
    let s = run.summary();
    let title = format!("{} · {} · {}", s.scenario, s.condition, s.balancer);
    let mut body = format!("<h1>{}</h1>\n{}", escape(&title), subtitle(&s));
    body += &section("Figures", &(figures(&figures_of(&s)) + &notes(&s)));
    body += &workloads(std::slice::from_ref(&s));
    body += &over_time(run);
    body += &completion(run);
    body += &section("Flows", &flows(run));
    body += &section("Ports", &ports(run));
    page(&title, &body)
}

/// The figures of each workload, where there are several or collectives.
pub(super) fn workloads(summaries: &[Summary]) -> String {
    let Some(Lines { header, words, rows }) = workload_lines(summaries) else { return String::new() };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let row = |cells: Vec<String>| Row { cells: cells.iter().map(|cell| escape(cell)).collect(), first: false };
    let rows: Vec<Row> = rows.into_iter().take(LISTED_WORKLOADS).map(row).collect();
    section("Workloads", &table(&header, words, &rows))
}

fn subtitle(s: &Summary) -> String {
    let parts = format!("engine {}, congestion control {}, seed {}", s.engine, s.congestion_control, s.seed);
    format!("<p class=\"soft\">{}. Times are the scenario's own, not the machine's.</p>\n", escape(&parts))
}

fn notes(s: &Summary) -> String {
    let verdict = if s.is_complete() && s.sim.is_some() {
        "<p class=\"good\">Every flow completed.</p>\n"
    } else if s.is_complete() {
        "<p class=\"good\">Every flow completed, and its payload is what was sent.</p>\n"
    } else {
        "<p class=\"bad\">Not every flow completed with the payload that was sent.</p>\n"
    };
    let losses = loss_note(s).map(|note| format!("<p class=\"bad\">{}</p>\n", escape(&note)));
    verdict.to_string() + &losses.unwrap_or_default()
}

fn figures_of(s: &Summary) -> Vec<(&'static str, String)> {
    let us = |value: f64| format!("{value:.1} us");
    vec![
        ("goodput", format!("{:.1} Gb/s", s.goodput_gbps)),
        ("flows completed", format!("{} of {}", s.flows_completed, s.flows_total)),
        ("FCT mean", us(s.fct_mean_us)),
        ("FCT p99", us(s.fct_p99_us)),
        ("FCT max", us(s.fct_max_us)),
        ("packets sent", s.packets_sent.to_string()),
        ("retransmits", s.retransmits.to_string()),
        ("timeouts", s.timeouts.to_string()),
        ("drops, full queue", s.drops_queue.to_string()),
        ("drops, failed link", s.drops_link.to_string()),
        ("drops, random", s.drops_random.to_string()),
        ("trims", s.trims.to_string()),
        ("ECN marks", s.ecn_marks.to_string()),
        ("reordered packets", s.reordered_packets.to_string()),
        ("places behind", places(&s.reordering_degrees)),
        ("unexpected packets", s.unexpected_packets.to_string()),
        ("freezes", s.freeze_entries.to_string()),
        ("recovery", s.recovery_us.map_or_else(|| "–".into(), us)),
        ("dilation", format!("{:.0}×", s.dilation)),
        ("late frames", s.late_packets.to_string()),
        ("lateness p99", format!("{:.3} us", s.lateness_p99_us)),
        ("run took", format!("{:.2} s", s.wall_s)),
    ]
}

/// How many reordered packets were behind by how much.
fn places(degrees: &[u64]) -> String {
    let range = |(power, count): (usize, &u64)| match power {
        0 => format!("1: {count}"),
        power => format!("{} to {}: {count}", 1_u64 << power, (2_u64 << power) - 1),
    };
    if degrees.is_empty() { "–".into() } else { degrees.iter().enumerate().map(range).collect::<Vec<_>>().join(", ") }
}

fn over_time(run: &RunResult) -> String {
    let moments = series::moments(run);
    let remark = if moments.is_empty() { "" } else { "Dashed: a link fails or works again." };
    let plot = |title: &str, y: &'static str, y_at_least: f64, lines: Vec<chart::Line>| {
        if lines.iter().all(|line| line.points.is_empty()) {
            return String::new();
        }
        let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        let axes = chart::Axes { width: chart::WIDE, x: "time (us)", y, y_at_least };
        figure(title, &names, &chart::lines(&axes, &lines, &moments), remark)
    };
    plot("Goodput over time", "Gb/s", 1.0, series::goodput(run))
        + &plot("Queue depth of the busiest ports", "kB waiting", 1.0, series::queues(run, QUEUES))
        + &plot("Use of the uplinks", "% of full rate", 100.0, series::uplinks(run, UPLINKS))
}

fn completion(run: &RunResult) -> String {
    let line = series::fct_cdf("flows", run);
    let axes = chart::Axes { width: chart::WIDE, x: "flow completion time (us)", y: "% of flows", y_at_least: 100.0 };
    let cdf = figure("Flow completion times", &[], &chart::lines(&axes, &[line], &[]), "");
    let rows = series::event_rows(run);
    if rows.is_empty() {
        return cdf;
    }
    let start = run.flows.iter().map(|f| f.start_us).fold(f64::INFINITY, f64::min).min(run.events[0].time_us);
    let last_event = run.events.iter().map(|e| e.time_us).fold(start, f64::max);
    let end = run.flows.iter().filter_map(|f| f.end_us).fold(last_event, f64::max);
    cdf + &section("Events", &(chart::timeline(start..end, &rows) + &events(run)))
}

fn events(run: &RunResult) -> String {
    let row = |e: &crate::results::EventRow| Row {
        cells: vec![format!("{:.3}", e.time_us), e.kind.to_string(), escape(&e.subject), escape(&e.words())],
        first: false,
    };
    let rows: Vec<Row> = run.events.iter().take(LISTED_EVENTS).map(row).collect();
    let more = run.events.len().saturating_sub(LISTED_EVENTS);
    let rest = if more > 0 { format!("<p class=\"soft\">{more} more in events.csv</p>\n") } else { String::new() };
    table(&["time (us)", "event", "where", "detail"], 4, &rows) + &rest
}

fn flows(run: &RunResult) -> String {
    let time = |us: Option<f64>| us.map_or_else(|| "never".to_string(), |us| format!("{us:.3}"));
    let row = |f: &crate::results::FlowResult| Row {
        cells: vec![
            f.flow.to_string(),
            format!("{} → {}", escape(&f.src), escape(&f.dst)),
            f.bytes.to_string(),
            format!("{:.3}", f.start_us),
            time(f.fct_us),
            f.retransmits.to_string(),
            f.reordered.to_string(),
            f.unexpected.to_string(),
        ],
        first: false,
    };
    let rows: Vec<Row> = run.flows.iter().take(256).map(row).collect();
    table(&["flow", "hosts", "bytes", "start (us)", "FCT (us)", "retransmits", "reordered", "unexpected"], 2, &rows)
}

fn ports(run: &RunResult) -> String {
    let row = |p: &PortOutcome| {
        let c = &p.counters;
        let counts = [c.frames, c.bytes, c.control_frames, c.marks, c.trims];
        let rest = [c.drops_queue, c.drops_link(), c.drops_random, c.drops_ttl, c.queue_max];
        let mean = format!("{:.0}", p.queue_mean_bytes);
        let numbers = counts.iter().chain(&rest).map(ToString::to_string).chain([mean]);
        Row { cells: [escape(&p.name)].into_iter().chain(numbers).collect(), first: false }
    };
    let rows: Vec<Row> = run.ports.iter().take(256).map(row).collect();
    let heads = "port|frames|bytes|control|marks|trims|drops: queue|link|random|TTL|queue (B): max|mean";
    table(&heads.split('|').collect::<Vec<_>>(), 1, &rows)
}
