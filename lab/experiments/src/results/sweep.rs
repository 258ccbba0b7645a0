//! Tables of several runs: spreads over seeds by balancer, and two engines side by side.

use std::path::Path;

use serde_json::json;

use super::incomplete::{completed as flows_completed, incomplete_notes};
use super::measures::{self, named};
use super::table::{align, lateness_note, loss_note, notes};
use super::{Spread, Summary, WriteError, files, grouped, tables};

/// Measures of a sweep's table; more do not fit on a terminal.
const SHOWN: [&str; 5] = ["fct_mean_us", "fct_p99_us", "fct_max_us", "makespan_us", "goodput_gbps"];

const COMPARED: [&str; 11] = [
    "flows_completed",
    "fct_mean_us",
    "fct_p99_us",
    "fct_max_us",
    "makespan_us",
    "goodput_gbps",
    "drops",
    "trims",
    "retransmits",
    "reordered_packets",
    "drain_percent_of_fct",
];

/// Groups `runs` by condition, axes, switches and balancer, in the order of first occurrence.
fn groups(runs: &[Summary]) -> Vec<Vec<&Summary>> {
    let key = |run: &Summary| format!("{}\0{}\0{}\0{:?}", run.condition, run.switch, run.balancer, run.axes);
    grouped(runs.iter().map(|run| (key(run), run))).into_iter().map(|(_, group)| group).collect()
}

fn completed(group: &[&Summary]) -> usize {
    group.iter().filter(|run| run.is_complete()).count()
}

/// Formats a line per condition, axis values, switches and balancer: means and 95 % intervals.
pub fn sweep_table(runs: &[Summary]) -> String {
    let several = groups(runs).iter().any(|group| group.len() > 1);
    let interval = if several { " (95 %)" } else { "" };
    let shown = named(SHOWN);
    let titles = shown.map(|measure| format!("{}{interval}", measure.title));
    let axes: Vec<&String> = runs.first().map_or_else(Vec::new, |run| run.axes.keys().collect());
    let mut header = vec!["condition"];
    header.extend(axes.iter().map(|axis| axis.as_str()));
    header.extend(["switch", "balancer", "runs", "flows"]);
    header.extend(titles.iter().map(String::as_str));
    let row = |group: &Vec<&Summary>| {
        let one = group[0];
        let count = match (completed(group), group.len()) {
            (completed, all) if completed == all => all.to_string(),
            (completed, all) => format!("{completed}/{all} complete"),
        };
        let mut row = vec![one.condition.clone()];
        row.extend(axes.iter().map(|axis| one.axes.get(*axis).map(ToString::to_string).unwrap_or_default()));
        let [_, share] = flows_completed(group.iter().map(|run| &run.flows));
        row.extend([one.switch.clone(), one.balancer.clone(), count, share]);
        row.extend(shown.map(|measure| measure.spread(group.iter().copied()).text(measure.digits)));
        row
    };
    let table = align(&header, 3 + axes.len(), &groups(runs).iter().map(row).collect::<Vec<_>>());
    let spreads: Vec<Spread> =
        groups(runs).iter().flat_map(|group| shown.map(|measure| measure.spread(group.iter().copied()))).collect();
    table + &few_runs_note(&spreads).map_or_else(String::new, |note| note + "\n") + &notes(runs)
}

/// Returns a note about intervals that are too wide, if there are any.
fn few_runs_note(spreads: &[Spread]) -> Option<String> {
    let wide = spreads.iter().filter(|spread| spread.is_wide()).count();
    let runs = spreads.iter().filter(|spread| spread.is_wide()).map(|spread| spread.runs).min()?;
    Some(format!(
        "{wide} of {} intervals reach from one value to more than twice it: {runs} runs are too few to tell; more --seeds narrow them",
        spreads.len()
    ))
}

/// Writes `runs.csv`, `runs.parquet` and `sweep.json`, which has every measure's spread, into
/// `dir`.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write_sweep(dir: &Path, runs: &[Summary]) -> Result<(), WriteError> {
    // A measure without values has no spread.
    let spread = |spread: Spread| json!(Some(spread).filter(|spread| spread.runs > 0));
    let group = |group: &Vec<&Summary>| {
        let one = group[0];
        let figures: serde_json::Map<_, _> = measures::all()
            .map(|measure| (measure.key.to_string(), spread(measure.spread(group.iter().copied()))))
            .collect();
        let seeds: Vec<u64> = group.iter().map(|run| run.seed).collect();
        json!({
            "condition": one.condition, "axes": one.axes, "switch": one.switch, "balancer": one.balancer, "seeds": seeds,
            "runs_completed": completed(group), "figures": figures,
        })
    };
    files::write_table(dir, &tables::of_sweep(runs))?;
    let groups: Vec<_> = groups(runs).iter().map(group).collect();
    files::write(dir, "sweep.json", &files::json(&groups))
}

/// Formats a line per measure of each pair of runs of two engines; differences are in per cent.
pub fn compare_table(pairs: &[(Summary, Summary)]) -> String {
    let Some((first, second)) = pairs.first() else { return String::new() };
    let header = ["condition", "balancer", "figure", &first.engine, &second.engine, "difference"];
    let mut rows = Vec::new();
    for (a, b) in pairs {
        for measure in named(COMPARED) {
            let (x, y) = (measure.of(a), measure.of(b));
            if measure.key == "drain_percent_of_fct" && (x, y) == (Some(0.0), Some(0.0)) {
                continue;
            }
            let bounds = [a, b].map(|run| measure.is_bound(run));
            let difference = match (x, y) {
                _ if bounds != [false; 2] => "-".into(),
                (Some(x), Some(y)) if x == y => "0".into(),
                (Some(x), Some(y)) if x != 0.0 => format!("{:+.1} %", (y / x - 1.0) * 100.0),
                _ => "-".into(),
            };
            let number = |value: Option<f64>, is_bound: bool| {
                let mark = if is_bound { "> " } else { "" };
                match value {
                    None => "-".into(),
                    Some(value) if value.fract() == 0.0 => format!("{mark}{value}"),
                    Some(value) => format!("{mark}{value:.1}"),
                }
            };
            let words = [&a.condition, &a.balancer, measure.title].map(String::from);
            rows.push([words.to_vec(), vec![number(x, bounds[0]), number(y, bounds[1]), difference]].concat());
        }
    }
    let summaries: Vec<Summary> = pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    let notes = incomplete_notes(&summaries).into_iter().chain(lateness_note(&summaries));
    let notes = notes.chain(summaries.iter().filter_map(loss_note));
    align(&header, 3, &rows) + &notes.map(|note| note + "\n").collect::<String>()
}

#[cfg(test)]
mod tests {
    use spray_settings::AxisValue;

    use super::super::tests::sample;
    use super::*;

    fn summary(balancer: &str, seed: u64, fct: f64) -> Summary {
        Summary { seed, ..sample(balancer, "healthy", &[fct, fct]).summary() }
    }

    #[test]
    fn a_line_for_each_balancer_has_mean_interval_and_spread() {
        let runs = [("ops", 1, 100.0), ("reps", 1, 90.0), ("ops", 2, 110.0), ("ops", 3, 120.0)];
        let runs = runs.map(|(balancer, seed, fct)| summary(balancer, seed, fct));
        let table = sweep_table(&runs);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 6, "{table}");
        assert!(lines[2].contains("healthy") && lines[2].contains("ops") && lines[2].contains(" 3  "), "{table}");
        assert!(lines[2].contains("110.0 (87.8 to 137.9)"), "{table}");
        assert!(lines[3].contains("reps") && !lines[3].contains('('), "{table}");
    }

    #[test]
    fn insignificant_differences_are_reported() {
        let wide = sweep_table(&[summary("ops", 1, 365.0), summary("ops", 2, 1475.0)]);
        assert!(wide.contains("5 of 5 intervals reach") && wide.contains("2 runs are too few"), "{wide}");
        assert!(wide.contains("p99 of 2 flows rests on the slowest;"), "{wide}");
        let close = sweep_table(&[summary("ops", 1, 100.0), summary("ops", 2, 100.0)]);
        assert!(!close.contains("too few"), "{close}");
    }

    #[test]
    fn files_have_every_run_and_the_spread_of_every_measure() {
        let folder = spray_test_support::Folder::new();
        let with = |evs: i64, seed, fct| {
            let axes = [("transport.evs".to_string(), AxisValue::Whole(evs))].into();
            Summary { axes, ..summary("ops", seed, fct) }
        };
        let runs = [with(32, 1, 100.0), with(32, 2, 110.0), with(64, 1, 90.0)];
        write_sweep(folder.path(), &runs).unwrap();
        let csv = folder.read("runs.csv");
        assert_eq!(csv.lines().count(), 4, "{csv}");
        assert!(
            csv.starts_with(
                "engine,scenario,condition,balancer,congestion_control,switch,seed,transport.evs,complete,flows_total,"
            ),
            "{csv}"
        );
        assert!(
            csv.lines()
                .nth(2)
                .unwrap()
                .starts_with("xdp,demo,healthy,ops,dctcp,ecmp,2,32,true,2,2,100.000,0,0,0,110.000,"),
            "{csv}"
        );
        let json: serde_json::Value = serde_json::from_str(&folder.read("sweep.json")).unwrap();
        assert_eq!(
            (&json[0]["figures"]["fct_mean_us"]["mean"], &json[0]["axes"]["transport.evs"]),
            (&json!(105.0), &json!(32))
        );
        assert_eq!((&json[0]["seeds"], &json[1]["seeds"]), (&json!([1, 2]), &json!([1])));
        let table = sweep_table(&runs);
        assert!(table.starts_with("condition  transport.evs  switch  balancer  runs"), "{table}");
        assert!(table.lines().nth(3).unwrap().starts_with("healthy    64             ecmp    ops"), "{table}");
    }

    #[test]
    fn engines_are_shown_side_by_side() {
        let sim = Summary { engine: "sim".into(), ..summary("reps", 1, 95.0) };
        let table = compare_table(&[(summary("reps", 1, 100.0), sim)]);
        assert!(table.lines().next().unwrap().contains("xdp") && table.contains("-5.0 %"), "{table}");
        assert!(
            table.lines().any(|line| line.contains("flows completed") && line.trim_end().ends_with('0')),
            "{table}"
        );
    }
}
