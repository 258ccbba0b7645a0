//! The table of runs on a terminal.

use super::incomplete::{completed, incomplete_notes};
use super::measures::named;
use super::{FlowFigures, Summary};

/// Measures of the table. Drops have three columns, by cause: full queue, failed link, random loss.
const SHOWN: [&str; 12] = [
    "goodput_gbps",
    "fct_mean_us",
    "fct_p99_us",
    "fct_max_us",
    "drops_queue",
    "drops_link",
    "drops_random",
    "trims",
    "retransmits",
    "reordered_packets",
    "loss_duration_us",
    DRAIN,
];
/// Omitted if no flow drained.
const DRAIN: &str = "drain_percent_of_fct";

/// Formats a line per run, and notes below.
pub fn table(runs: &[Summary]) -> String {
    let (header, rows) = lines(runs);
    align(&header, WORDS, &rows) + &notes(runs)
}

pub(super) fn notes(runs: &[Summary]) -> String {
    let notes = incomplete_notes(runs).into_iter().chain(few_flows_note(runs)).chain(lateness_note(runs));
    notes.chain(runs.iter().filter_map(loss_note)).map(|note| note + "\n").collect()
}

/// Number of text columns: condition, switches, balancer.
pub(crate) const WORDS: usize = 3;

pub(crate) fn lines(runs: &[Summary]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let is_drained = runs.iter().any(|run| run.flows.drain_percent_of_fct > 0.0);
    let measures: Vec<_> = named(SHOWN).into_iter().filter(|own| is_drained || own.key != DRAIN).collect();
    let titles = measures.iter().map(|measure| measure.title);
    let header = ["condition", "switch", "balancer"].into_iter().chain(titles).chain(["payload"]).collect();
    let row = |run: &Summary| {
        let values = measures.iter().map(|measure| measure.text(run));
        let words = [&run.condition, &run.switch, &run.balancer].map(String::clone);
        words.into_iter().chain(values).chain([payload(run)]).collect()
    };
    (header, runs.iter().map(row).collect())
}

pub(super) fn progress(flows: &FlowFigures) -> String {
    let [count, share] = completed([flows]);
    format!("{count} flows, {share}")
}

fn payload(s: &Summary) -> String {
    match (s.flows.flows_completed == s.flows.flows_total, s.payload_verified) {
        (false, _) => progress(&s.flows),
        (true, None) => "-".into(),
        (true, Some(true)) => "verified".into(),
        (true, Some(false)) => "WRONG".into(),
    }
}

/// Number of values that leaves ten beyond a 99th percentile: 10 / (1 - 0.99).
const FOR_P99: u64 = 1_000;

/// Returns a note about percentiles of too few flows, which are close to the maximum.
pub(crate) fn few_flows_note(summaries: &[Summary]) -> Option<String> {
    let fewest = summaries.iter().map(|s| s.flows.flows_completed).filter(|flows| *flows > 0).min()?;
    (fewest < FOR_P99).then(|| {
        let beyond = match fewest.div_ceil(100) {
            1 => "the slowest".into(),
            slowest => format!("the slowest {slowest}"),
        };
        format!("p99 of {fewest} flows rests on {beyond}; a p99 to rely on needs {FOR_P99} flows")
    })
}

/// Returns a note about late frames on engines other than the simulator.
pub(crate) fn lateness_note(summaries: &[Summary]) -> Option<String> {
    let timed: Vec<&Summary> =
        summaries.iter().filter(|s| s.engine_figures.dilation > 0.0 && s.engine != "sim").collect();
    let worst =
        timed.iter().max_by(|a, b| a.engine_figures.lateness_p99_us.total_cmp(&b.engine_figures.lateness_p99_us))?;
    let dilations = range(timed.iter().map(|s| s.engine_figures.dilation));
    let late = range(timed.iter().map(|s| s.engine_figures.late_packets as f64));
    let lateness = match worst.engine_figures.lateness_p99_us {
        us if us > 0.0 => format!("at most {us:.3} us ({}, {})", worst.condition, worst.balancer),
        _ => "0 us".into(),
    };
    Some(format!(
        "time dilated {dilations} times; late frames per run (emulation error, 0 is exact): {late}; p99 {lateness}"
    ))
}

fn range(values: impl Iterator<Item = f64> + Clone) -> String {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = (format!("{low:.0}"), format!("{high:.0}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Returns a note about frames lost by the testbed itself, if any.
pub(crate) fn loss_note(s: &Summary) -> Option<String> {
    let l = s.testbed_losses;
    let places =
        format!("veth {}, rx ring {}, fill ring {}, other {}", l.veth, l.rx_ring_full, l.fill_ring_empty, l.other);
    (l.total() > 0).then(|| {
        format!("warning: {}, {}: the testbed itself lost {} frames ({places})", s.condition, s.balancer, l.total())
    })
}

/// Formats a table with a rule under the header; the first `words` columns are left-aligned.
///
/// # Panics
/// When a row has fewer cells than the header.
pub fn align(header: &[&str], words: usize, rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    let pad = |(column, (cell, width)): (usize, (&String, &usize))| {
        if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let line = |cells: &Vec<String>| {
        let padded: Vec<String> = cells.iter().zip(&widths).enumerate().map(pad).collect();
        padded.join("  ").trim_end().to_string() + "\n"
    };
    [&header, &rule].into_iter().chain(rows).map(line).collect()
}
