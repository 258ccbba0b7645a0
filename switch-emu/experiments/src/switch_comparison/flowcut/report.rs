//! The figures as a section of a document.

use std::fmt::Write;

use super::{Contender, Figure, Metric, Row, Verdict};

/// The section's first line.
pub const HEADING: &str = "## Flowcut's figures";

const HEAD: &str = "
As in its §III: 200 Gb/s, 1 us a link, a lossless network (here by priority flow control, with one bandwidth-delay product of memory for each link), a
fixed window of 1.5 such products in place of its RDMA transport, packets of 4 KiB; the paper has 1,024 hosts. MP-RDMA runs with its own congestion control (`dctcp`).
Flowcut drains at 4 times the base RTT (§III-C2). Flowlets are `letflow` at the gap, out of eleven from 0.25 to 32 us, that does best in the figure's own measure without
reordering more than it may. *Unexpected* packets did not have the number after that of the packet before, which is what the paper counts as out of order; *overtaken* ones came after one with a
higher number; both in per cent of the packets. Times are in us, means over seeds 1 to 3. \"On
par\" and the like count as within a tenth, \"slightly\" as up to a fifth.
";

/// The section about `figures` and their rows.
#[must_use]
pub fn markdown(figures: &[(Figure, Vec<Row>)]) -> String {
    let mut text = format!("{HEADING}\n{HEAD}");
    let (trees, rest): (Vec<_>, Vec<_>) = figures.iter().partition(|(figure, _)| figure.number < VARIANTS);
    let sections = |figures: &[&(Figure, Vec<Row>)]| -> String {
        figures.iter().map(|(figure, rows)| section(figure, rows)).collect()
    };
    text += &sections(&trees);
    if !trees.is_empty() {
        text += &variants(&trees);
    }
    text + &sections(&rest)
}

/// The figure that compares variants in those before it.
const VARIANTS: u32 = 12;

/// Figure 12: the variants, and how much longer each takes than the best of them.
fn variants(figures: &[&(Figure, Vec<Row>)]) -> String {
    let mut text = format!(
        "\n### Figure {VARIANTS}: the variants of Flowcut\n\n\
         Their p99 in the figures above, and how many per cent above that of the best.\n\n"
    );
    let titles: Vec<String> = figures.iter().map(|(figure, _)| format!("figure {}", figure.number)).collect();
    let _ = writeln!(text, "| | {} |\n|---|{}", titles.join(" | "), "--:|".repeat(titles.len()));
    for contender in [Contender::Ecmp, Contender::FlowcutNic, Contender::FlowcutIngress, Contender::FlowcutSwitch] {
        let cell = |(_, rows): &&(Figure, Vec<Row>)| {
            let (own_us, above) = above_best(rows, contender);
            format!("{own_us:.1} (+{above:.0} %)")
        };
        let _ = writeln!(text, "| {contender} | {} |", figures.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
    text += "\n| the paper | ours | |\n|---|---|---|\n";
    for (says, contender, most) in [
        ("The full switch is always the best", Contender::FlowcutSwitch, 0.0),
        ("NIC only is within 10 % of it", Contender::FlowcutNic, 10.0),
        ("and so is ingress only", Contender::FlowcutIngress, 10.0),
    ] {
        let above = figures.iter().map(|(_, rows)| above_best(rows, contender).1).fold(0.0, f64::max);
        let verdict = if above <= most { Verdict::Confirmed } else { Verdict::Contradicted };
        let _ = writeln!(text, "| {says} | at most {above:.0} % above the best | {} |", verdict.text());
    }
    text
}

/// A contender's p99 in us, and by how many per cent it is above that of the best variant of Flowcut.
fn above_best(rows: &[Row], contender: Contender) -> (f64, f64) {
    let p99 = |row: &Row| row.mean(Metric::P99);
    let best = rows.iter().filter(|row| row.contender.is_flowcut()).map(p99).fold(f64::INFINITY, f64::min);
    let own = rows.iter().find(|row| row.contender == contender).map_or(f64::NAN, p99);
    (own, 100.0 * (own / best - 1.0))
}

fn section(figure: &Figure, rows: &[Row]) -> String {
    let Figure { number, title, about, .. } = figure;
    let mut text = format!("\n### Figure {number}: {title}\n\n{about}\n\n");
    text += "| | hosts | switches | gap | p99 | mean | runtime | unexpected | overtaken | drained |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    text += "\n| the paper | ours | |\n|---|---|---|\n";
    for statement in figure.statements {
        let (ours, verdict) = match statement.check.against(rows) {
            None => ("not run".into(), ""),
            Some(found) => (found.ours, found.verdict.text()),
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
        "| {}{incomplete} | {} | {} | {gap} | {} | {:.2} | {:.2} | {:.1} |",
        row.contender,
        setting.balancer,
        setting.scheme,
        times.join(" | "),
        row.mean(Metric::Unexpected),
        row.mean(Metric::Reordered),
        row.mean(Metric::Drained),
    )
}
