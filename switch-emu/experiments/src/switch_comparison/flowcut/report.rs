//! The figures as a section of a document.

use std::fmt::Write;

use super::{Figure, Metric, Row};

/// The section's first line.
pub const HEADING: &str = "## Flowcut's figures";

const HEAD: &str = "
As in its §III: 200 Gb/s, 1 us a link, a lossless network (here by priority flow control, with one bandwidth-delay product of memory for each link), a
fixed window of 1.5 such products in place of its RDMA transport, packets of 4 KiB; the paper has 1,024 hosts. MP-RDMA runs with its own congestion control (`dctcp`).
Flowcut drains at 4 times the base RTT (§III-C2). Flowlets are `letflow` at the gap, out of eight from 0.25 to 32 us, that does best in the figure's own measure without
reordering more than it may. *Out of order* is below the highest number seen, in per cent of the packets. Times are in us, means over seeds 1 to 3. \"On
par\" and the like count as within a tenth, \"slightly\" as up to a fifth.
";

/// The section about `figures` and their rows.
#[must_use]
pub fn markdown(figures: &[(Figure, Vec<Row>)]) -> String {
    let mut text = format!("{HEADING}\n{HEAD}");
    for (figure, rows) in figures {
        text += &section(figure, rows);
    }
    text
}

fn section(figure: &Figure, rows: &[Row]) -> String {
    let Figure { number, title, about, .. } = figure;
    let mut text = format!("\n### Figure {number}: {title}\n\n{about}\n\n");
    text += "| | hosts | switches | gap | p99 | mean | runtime | out of order | drained |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    text += "\n| the paper | ours | |\n|---|---|---|\n";
    for statement in figure.statements {
        let (ours, verdict) = match statement.check.against(rows) {
            None => ("not run".into(), ""),
            Some(found) => (found.ours, if found.holds { "confirmed" } else { "**contradicted**" }),
        };
        let _ = writeln!(text, "| {} | {ours} | {verdict} |", statement.says);
    }
    text
}

fn line(row: &Row) -> String {
    let setting = &row.setting;
    let gap = setting.gap_us.map_or(String::new(), |gap| gap.to_string());
    let times = [Metric::P99, Metric::Mean, Metric::Runtime].map(|metric| format!("{:.1}", row.mean(metric)));
    let incomplete = if row.is_complete() { "" } else { ", incomplete" };
    format!(
        "| {}{incomplete} | {} | {} | {gap} | {} | {:.2} | {:.1} |",
        row.contender,
        setting.balancer,
        setting.scheme,
        times.join(" | "),
        row.mean(Metric::Reordered),
        row.mean(Metric::Drained),
    )
}
