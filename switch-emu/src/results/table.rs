//! The table that ends a demo: one line per run, aligned, plain text.

use super::{RunResult, Summary};

const HEADER: [&str; 17] = [
    "condition",
    "balancer",
    "Gb/s",
    "mean us",
    "p99 us",
    "max us",
    "queue",
    "link",
    "random",
    "trims",
    "retx",
    "reord",
    "recovery us",
    "payload",
    "dilation",
    "late",
    "late p99 us",
];
/// Columns before this one hold words and are aligned to the left.
const FIRST_NUMBER: usize = 2;

/// One line per run: goodput, FCTs, drops by cause, trims, retransmissions, reordering, recovery, verification, lateness.
///
/// Losses of the testbed itself follow as lines of their own, where there were any.
#[must_use]
pub fn table(runs: &[RunResult]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(RunResult::summary).collect();
    let rows: Vec<Vec<String>> = summaries.iter().map(row).collect();
    let header: Vec<String> = HEADER.iter().map(ToString::to_string).collect();
    let mut out = align(&header, &rows);
    out.extend(summaries.iter().filter_map(warning));
    out
}

fn row(s: &Summary) -> Vec<String> {
    let verified = match (s.flows_completed == s.flows_total, s.payload_verified) {
        (false, _) => format!("{}/{} flows", s.flows_completed, s.flows_total),
        (true, true) => "ok".into(),
        (true, false) => "WRONG".into(),
    };
    vec![
        s.condition.clone(),
        s.balancer.clone(),
        format!("{:.1}", s.goodput_gbps),
        format!("{:.1}", s.fct_mean_us),
        format!("{:.1}", s.fct_p99_us),
        format!("{:.1}", s.fct_max_us),
        s.drops_queue.to_string(),
        s.drops_link.to_string(),
        s.drops_random.to_string(),
        s.trims.to_string(),
        s.retransmits.to_string(),
        s.reordered_packets.to_string(),
        s.recovery_us.map_or_else(|| "-".into(), |us| format!("{us:.1}")),
        verified,
        format!("{:.0}x", s.dilation),
        s.late_packets.to_string(),
        format!("{:.2}", s.lateness_p99_us),
    ]
}

fn warning(s: &Summary) -> Option<String> {
    let losses = s.testbed_losses;
    (losses.total() > 0).then(|| {
        format!(
            "warning: {}, {}: the testbed itself lost {} frames (veth {}, rx ring {}, fill ring {}, other {})\n",
            s.condition,
            s.balancer,
            losses.total(),
            losses.veth,
            losses.rx_ring_full,
            losses.fill_ring_empty,
            losses.other,
        )
    })
}

/// Aligns cells in columns two spaces apart, a rule under the header.
pub(crate) fn align(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    [header, &rule]
        .into_iter()
        .chain(rows.iter().map(Vec::as_slice))
        .map(|cells| aligned_line(cells, &widths))
        .collect()
}

fn aligned_line(cells: &[String], widths: &[usize]) -> String {
    let pad = |(column, (cell, width)): (usize, (&String, &usize))| {
        if column < FIRST_NUMBER { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let padded: Vec<String> = cells.iter().zip(widths).enumerate().map(pad).collect();
    padded.join("  ").trim_end().to_string() + "\n"
}
