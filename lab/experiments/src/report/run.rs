//! The page about one run.

use spray_fabric::PortOutcome;

use super::data::run::RunData;
use super::html::{WITHOUT_SCRIPTS, escape, figures, more, page_with, paragraph, plots, section, table};
use crate::results::measures::{Measure, named};
use crate::results::{EventRow, FlowResult, Lines, RunResult, Summary, incomplete_notes, loss_note, workload_lines};

/// Maximum number of listed events; `events.csv` has all of them.
const LISTED_EVENTS: usize = 60;

/// Maximum number of listed flows, and of listed ports.
const LISTED: usize = 256;
/// Maximum number of listed workloads; the `workloads` tables have all of them.
const LISTED_WORKLOADS: usize = 200;

/// Returns the page about one run: measures, interactive plots, events, flows and ports.
pub fn run_page(run: &RunResult) -> String {
    let s = run.summary();
    let title = format!("{} · {} · {}", s.scenario, s.condition, s.balancer);
    let data = RunData::of(run);
    let mut body = format!("<header><h1>{}</h1>\n{}</header>\n", escape(&title), subtitle(&s));
    body += &section("Figures", &(figures(&figures_of(&s)) + &notes(&s)));
    body += WITHOUT_SCRIPTS;
    body += &plot_cards(&data);
    body += &workloads(std::slice::from_ref(&s));
    body += &events(run);
    body += &section("Flows", &flows(run));
    body += &section("Ports", &ports(run));
    page_with(&title, &body, &data)
}

fn plot_cards(data: &RunData) -> String {
    let (rows, sampled) = data.rows();
    let ports = if rows < sampled {
        format!(
            "{rows} of {sampled} ports: those at failed links, and those with the longest queues. queues.parquet has all."
        )
    } else {
        String::new()
    };
    let fabric = if data.is_whole() {
        "Both directions of each cable, by their load. Links that are slow or lossy are dashed; those that carry nothing have a cross too."
    } else {
        "Alike switches of this large fabric are drawn as one, but for those at failed links. A line stands for all links between two of \
         them, and has a cross where one of these carries nothing."
    };
    plots(data.plots(), |id| match id {
        "goodput" => ("Goodput over time", ""),
        "topology" => ("Load of the fabric", fabric),
        "ports" => ("Ports over time", ports.as_str()),
        "fct" => ("Flow completion times", ""),
        "sizes" => ("Slowdown by flow size", "Completion time over that of the same message alone in the fabric."),
        "drops" => ("Frames lost and trimmed, by place and cause", ""),
        "evs" => (
            "Entropy values of some connections",
            "Where each packet's entropy value came from: a new one, one that came back unmarked, or one kept while frozen.",
        ),
        _ => ("Events over time", ""),
    })
}

/// Returns the table of workloads, if there are several or collectives.
pub(super) fn workloads(summaries: &[Summary]) -> String {
    let Some(Lines { header, words, rows }) = workload_lines(summaries) else { return String::new() };
    let row = |cells: Vec<String>| cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>();
    section("Workloads", &table(&header, words, rows.into_iter().take(LISTED_WORKLOADS).map(row)))
}

fn subtitle(s: &Summary) -> String {
    let parts = format!("engine {}, congestion control {}, seed {}", s.engine, s.congestion_control, s.seed);
    paragraph("soft", &format!("{parts}. Times are the scenario's own, not the machine's."))
}

fn notes(s: &Summary) -> String {
    let verdict = match (s.is_complete(), s.payload_verified) {
        (true, _) if s.sim.is_some() => paragraph("good", "Every flow completed."),
        (true, _) => paragraph("good", "Every flow completed, and its payload is what was sent."),
        (false, Some(false)) => paragraph("bad", "A payload differs from what was sent."),
        (false, _) => String::new(),
    };
    verdict + &warnings(std::slice::from_ref(s))
}

pub(super) fn warnings(summaries: &[Summary]) -> String {
    let notes = incomplete_notes(summaries).into_iter().chain(summaries.iter().filter_map(loss_note));
    notes.map(|note| paragraph("bad", &note)).collect()
}

const SHOWN: [&str; 27] = [
    "goodput_gbps",
    "flows_total",
    "flows_completed",
    "flows_given_up",
    "flows_cut_off",
    "flows_not_started",
    "fct_mean_us",
    "fct_p99_us",
    "fct_max_us",
    "jct_ratio",
    "packets_sent",
    "retransmits",
    "timeouts",
    "drops_queue",
    "drops_link",
    "drops_random",
    "drops_ttl",
    "trims",
    "ecn_marks",
    "reordered_packets",
    "unexpected_packets",
    "freeze_entries",
    "loss_duration_us",
    "dilation",
    "late_packets",
    "lateness_p99_us",
    "wall_s",
];

fn figures_of(s: &Summary) -> Vec<(&'static str, String)> {
    let figure = |measure: &'static Measure| (measure.name, format!("{} {}", measure.text(s), measure.unit));
    let measures = named(SHOWN).into_iter().map(figure);
    measures.chain([("Reordering distance, packets", distances(&s.reordering_degrees))]).collect()
}

fn distances(degrees: &[u64]) -> String {
    let range = |(power, count): (usize, &u64)| match power {
        0 => format!("1: {count}"),
        power => format!("{} to {}: {count}", 1_u64 << power, (2_u64 << power) - 1),
    };
    if degrees.is_empty() { "–".into() } else { degrees.iter().enumerate().map(range).collect::<Vec<_>>().join(", ") }
}

fn events(run: &RunResult) -> String {
    if run.events.is_empty() {
        return String::new();
    }
    let row =
        |e: &EventRow| vec![format!("{:.3}", e.time_us), e.kind.to_string(), escape(&e.subject), escape(&e.words())];
    let rows = run.events.iter().take(LISTED_EVENTS).map(row);
    let more = more(run.events.len().saturating_sub(LISTED_EVENTS), "events.csv");
    section("Events", &(table(&["time (us)", "event", "where", "detail"], 4, rows) + &more))
}

fn flows(run: &RunResult) -> String {
    let time = |f: &FlowResult| match (f.fct_us, f.incomplete) {
        (Some(us), _) => format!("{us:.3}"),
        (None, why) => why.map(|why| why.to_string()).unwrap_or_default(),
    };
    let row = |f: &FlowResult| {
        vec![
            f.flow.to_string(),
            format!("{} → {}", escape(&f.src), escape(&f.dst)),
            f.bytes.to_string(),
            format!("{:.3}", f.start_us),
            time(f),
            f.sender.retransmits.to_string(),
            f.receiver.order.reordered.to_string(),
            f.receiver.order.unexpected.to_string(),
        ]
    };
    let heads = ["flow", "hosts", "bytes", "start (us)", "FCT (us)", "retransmits", "reordered", "unexpected"];
    table(&heads, 2, run.flows.iter().take(LISTED).map(row))
}

fn ports(run: &RunResult) -> String {
    let row = |p: &PortOutcome| {
        let c = &p.counters;
        let counts = [c.frames, c.bytes, c.control_frames, c.marks, c.trims];
        let rest = [c.drops_queue, c.drops_link(), c.drops_random, c.drops_ttl, c.queue_max];
        let mean = format!("{:.0}", p.queue_mean_bytes);
        let numbers = counts.iter().chain(&rest).map(ToString::to_string).chain([mean]);
        [escape(&p.name)].into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let heads = "port|frames|bytes|control|marks|trims|drops: queue|link|random|TTL|queue (B): max|mean";
    table(&heads.split('|').collect::<Vec<_>>(), 1, run.ports.iter().take(LISTED).map(row))
}
