//! The table of workloads on a terminal.

use super::incomplete::completed;
use super::measures::{Measure, named};
use super::{Collectives, Summary, WorkloadSummary, align, grouped};

/// Measures of the table, and further ones with collectives.
const SHOWN: [&str; 6] = ["goodput_gbps", "fct_mean_us", "fct_p99_us", "fct_max_us", "slowdown_p99", "jain"];
const SHOWN_OF_COLLECTIVES: [&str; 4] = ["cct_mean_us", "cct_p99_us", "bus_bandwidth_gbps", "step_mean_us"];

/// Formats a line per workload, condition and balancer; `None` for one without collectives.
pub fn workload_table(runs: &[Summary]) -> Option<String> {
    workload_lines(runs).map(|Lines { header, words, rows }| {
        align(&header.iter().map(String::as_str).collect::<Vec<_>>(), words, &rows)
    })
}

pub(crate) struct Lines {
    pub header: Vec<String>,
    pub words: usize,
    pub rows: Vec<Vec<String>>,
}

pub(crate) fn workload_lines(runs: &[Summary]) -> Option<Lines> {
    let collectives = runs.iter().flat_map(|run| &run.workloads).any(|own| own.collectives.is_some());
    if !collectives && runs.iter().all(|run| run.workloads.len() < 2) {
        return None;
    }
    let axes: Vec<&String> = runs.first().map_or_else(Vec::new, |run| run.axes.keys().collect());
    let words = |run: &Summary| {
        let values = axes.iter().map(|axis| run.axes.get(*axis).map(ToString::to_string).unwrap_or_default());
        let switch = [run.switch.clone(), run.balancer.clone()];
        std::iter::once(run.condition.clone()).chain(values).chain(switch).collect::<Vec<String>>()
    };
    // In the order of first occurrence, with the workload's results in all runs.
    let all = runs.iter().flat_map(|run| run.workloads.iter().map(move |own| (run, own)));
    let lines = grouped(all.map(|(run, own)| ([words(run), vec![own.name.clone()]].concat(), own)));
    let of_collectives = named(SHOWN_OF_COLLECTIVES).into_iter().filter(|_| collectives);
    let measures: Vec<&Measure> = named(SHOWN).into_iter().chain(of_collectives).collect();
    let row = |(words, own): &(Vec<String>, Vec<&WorkloadSummary>)| {
        let [completed, share] = completed(own.iter().map(|own| &own.flows));
        let cell = |measure: &&Measure| measure.spread_of_workloads(own).text(measure.digits);
        let sum =
            |of: fn(&Collectives) -> u64| own.iter().filter_map(|own| own.collectives.as_ref()).map(of).sum::<u64>();
        let count = match (sum(|own| own.collectives), sum(|own| own.collectives_total)) {
            (_, 0) => "-".into(),
            (done, total) => format!("{done}/{total}"),
        };
        let flows = [own[0].balancer.clone(), format!("{completed}, {share}")];
        let count = collectives.then_some(count);
        words.iter().cloned().chain(flows).chain(count).chain(measures.iter().map(cell)).collect::<Vec<String>>()
    };
    let words = std::iter::once("condition").chain(axes.iter().map(|axis| axis.as_str()));
    let words =
        words.chain(["switch", "run", "workload", "balancer", "flows"]).chain(collectives.then_some("collectives"));
    let header = words.chain(measures.iter().map(|measure| measure.title)).map(String::from).collect();
    Some(Lines { header, words: 5 + axes.len(), rows: lines.iter().map(row).collect() })
}
