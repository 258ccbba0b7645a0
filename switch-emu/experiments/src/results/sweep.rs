//! Tables of several runs: per balancer the mean, spread and interval over seeds, and two engines side by side.

use std::path::Path;

use serde_json::json;

use super::table::{align, lateness_note, loss_note};
use super::{RunResult, Spread, Summary, WriteError, files};

/// A figure of a run.
struct Figure {
    /// Its key in `summary.json`.
    key: &'static str,
    /// Its name in tables, with the unit.
    title: &'static str,
    of: fn(&Summary) -> f64,
}

const FIGURES: [Figure; 10] = [
    Figure { key: "fct_mean_us", title: "mean us", of: |s| s.fct_mean_us },
    Figure { key: "fct_p99_us", title: "p99 us", of: |s| s.fct_p99_us },
    Figure { key: "fct_max_us", title: "max us", of: |s| s.fct_max_us },
    Figure { key: "makespan_us", title: "makespan us", of: |s| s.makespan_us },
    Figure { key: "goodput_gbps", title: "Gb/s", of: |s| s.goodput_gbps },
    Figure { key: "drops", title: "drops", of: |s| (s.drops_queue + s.drops_link + s.drops_random) as f64 },
    Figure { key: "trims", title: "trims", of: |s| s.trims as f64 },
    Figure { key: "retransmits", title: "retx", of: |s| s.retransmits as f64 },
    Figure { key: "reordered_packets", title: "reordered", of: |s| s.reordered_packets as f64 },
    DRAIN,
];
const DRAIN: Figure = Figure { key: "drain_percent_of_fct", title: "drain % of FCT", of: |s| s.drain_percent_of_fct };
/// Figures that fit into a table on a terminal.
const SHOWN: [usize; 5] = [0, 1, 2, 3, 4];

/// Runs of one condition and balancer.
struct Group<'a> {
    condition: &'a str,
    balancer: &'a str,
    runs: Vec<&'a Summary>,
}

impl Group<'_> {
    fn spread(&self, figure: &Figure) -> Spread {
        Spread::of(&self.runs.iter().map(|run| (figure.of)(run)).collect::<Vec<_>>())
    }

    fn completed(&self) -> usize {
        self.runs.iter().filter(|run| run.is_complete()).count()
    }
}

/// `runs` by condition and balancer, in the order of the first run of each.
fn groups(runs: &[Summary]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        let same = |group: &&mut Group<'_>| (group.condition, group.balancer) == (&run.condition, &run.balancer);
        match groups.iter_mut().find(same) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { condition: &run.condition, balancer: &run.balancer, runs: vec![run] }),
        }
    }
    groups
}

/// A table with a line per condition and balancer. A cell has a figure's mean over the runs, half of its 95 % interval, and in
/// brackets its standard deviation.
#[must_use]
pub fn sweep_table(runs: &[RunResult]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(RunResult::summary).collect();
    let titles = SHOWN.map(|index| format!("{} ±95 % (sd)", FIGURES[index].title));
    let mut header = vec!["condition", "balancer", "runs"];
    header.extend(titles.iter().map(String::as_str));
    let cell = |spread: Spread| match spread.ci95 {
        Some(ci) => format!("{:.1} ±{ci:.1} ({:.1})", spread.mean, spread.sd),
        None => format!("{:.1}", spread.mean),
    };
    let row = |group: &Group<'_>| {
        let runs = match (group.completed(), group.runs.len()) {
            (completed, all) if completed == all => all.to_string(),
            (completed, all) => format!("{completed}/{all} complete"),
        };
        let mut row = vec![group.condition.to_string(), group.balancer.to_string(), runs];
        row.extend(SHOWN.map(|index| cell(group.spread(&FIGURES[index]))));
        row
    };
    align(&header, 2, &groups(&summaries).iter().map(row).collect::<Vec<_>>())
}

/// Writes `runs.csv` (a line per run) and `sweep.json` (per condition and balancer every figure's spread) into `dir`.
///
/// # Errors
/// When the folder or one of the files cannot be written.
pub fn write_sweep(dir: &Path, runs: &[RunResult]) -> Result<(), WriteError> {
    let summaries: Vec<Summary> = runs.iter().map(RunResult::summary).collect();
    let keys: Vec<&str> = FIGURES.iter().map(|figure| figure.key).collect();
    let mut csv =
        format!("condition,balancer,congestion_control,seed,flows_completed,flows_total,{}\n", keys.join(","));
    for s in &summaries {
        let figures: Vec<String> = FIGURES.iter().map(|figure| (figure.of)(s).to_string()).collect();
        let condition = s.condition.replace([',', '"', '\n'], " ");
        let head = [condition, s.balancer.clone(), s.congestion_control.clone()].join(",");
        csv += &format!("{head},{},{},{},{}\n", s.seed, s.flows_completed, s.flows_total, figures.join(","));
    }
    let group = |group: &Group<'_>| {
        let figures: serde_json::Map<_, _> =
            FIGURES.iter().map(|figure| (figure.key.to_string(), json!(group.spread(figure)))).collect();
        let seeds: Vec<u64> = group.runs.iter().map(|run| run.seed).collect();
        json!({
            "condition": group.condition, "balancer": group.balancer, "seeds": seeds,
            "runs_completed": group.completed(), "figures": figures,
        })
    };
    let groups: Vec<_> = groups(&summaries).iter().map(group).collect();
    let text = serde_json::to_string_pretty(&groups).expect("plain numbers and strings always serialise");
    files::write(dir, "runs.csv", &csv)?;
    files::write(dir, "sweep.json", &(text + "\n"))
}

/// A table of two engines: for each pair of runs a line per figure, with the difference in per cent of the first engine's
/// figure. Below it stands what an engine reports about its own accuracy.
#[must_use]
pub fn compare_table(pairs: &[(RunResult, RunResult)]) -> String {
    let Some((first, second)) = pairs.first() else { return String::new() };
    let header = ["condition", "balancer", "figure", &first.engine, &second.engine, "difference"];
    let mut rows = Vec::new();
    for (a, b) in pairs.iter().map(|(a, b)| (a.summary(), b.summary())) {
        let completed = Figure { key: "", title: "flows completed", of: |s| s.flows_completed as f64 };
        for figure in std::iter::once(&completed).chain(&FIGURES) {
            let (x, y) = ((figure.of)(&a), (figure.of)(&b));
            if figure.key == DRAIN.key && (x, y) == (0.0, 0.0) {
                continue;
            }
            let difference = if x == 0.0 { String::from("-") } else { format!("{:+.1} %", (y / x - 1.0) * 100.0) };
            let difference = if x == y { "0".into() } else { difference };
            let number = |value: f64| if value.fract() == 0.0 { value.to_string() } else { format!("{value:.1}") };
            let words = [&a.condition, &a.balancer, figure.title].map(String::from);
            rows.push([words.to_vec(), vec![number(x), number(y), difference]].concat());
        }
    }
    let summaries: Vec<Summary> = pairs.iter().flat_map(|(a, b)| [a.summary(), b.summary()]).collect();
    let notes = lateness_note(&summaries).into_iter().chain(summaries.iter().filter_map(loss_note));
    align(&header, 3, &rows) + &notes.map(|note| note + "\n").collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn run(balancer: &str, seed: u64, fct: f64) -> RunResult {
        RunResult { seed, ..sample(balancer, "healthy", &[fct, fct]) }
    }

    #[test]
    fn a_line_for_each_balancer_has_mean_interval_and_spread() {
        let runs = [run("ops", 1, 100.0), run("reps", 1, 90.0), run("ops", 2, 110.0), run("ops", 3, 120.0)];
        let table = sweep_table(&runs);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[2].contains("healthy") && lines[2].contains("ops") && lines[2].contains(" 3  "), "{table}");
        assert!(lines[2].contains("110.0 ±24.8 (10.0)"), "{table}");
        assert!(lines[3].contains("reps") && !lines[3].contains('±'), "{table}");
    }

    #[test]
    fn files_hold_every_run_and_every_figures_spread() {
        let folder = spray_test_support::Folder::new();
        write_sweep(folder.path(), &[run("ops", 1, 100.0), run("ops", 2, 110.0)]).unwrap();
        let csv = folder.read("runs.csv");
        assert_eq!(csv.lines().count(), 3, "{csv}");
        assert!(csv.lines().nth(2).unwrap().starts_with("healthy,ops,dctcp,2,2,2,110,"), "{csv}");
        let json: serde_json::Value = serde_json::from_str(&folder.read("sweep.json")).unwrap();
        assert_eq!(json[0]["figures"]["fct_mean_us"]["mean"], 105.0);
        assert_eq!(json[0]["seeds"], json!([1, 2]));
    }

    #[test]
    fn engines_stand_side_by_side() {
        let sim = RunResult { engine: "sim".into(), ..run("reps", 1, 95.0) };
        let table = compare_table(&[(run("reps", 1, 100.0), sim)]);
        assert!(table.lines().next().unwrap().contains("xdp") && table.contains("-5.0 %"), "{table}");
        assert!(
            table.lines().any(|line| line.contains("flows completed") && line.trim_end().ends_with('0')),
            "{table}"
        );
    }
}
