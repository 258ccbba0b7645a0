//! The text of `spray explain results`.

use super::columns::markdown;
use super::tables::{EVENTS, EVS, FLOWS, GOODPUT, PORTS, QUEUES, RUN, RUNS, TRACE, WORKLOADS};
use super::{Record, Summary, figures, measures};

/// Returns the documentation of the files of a results folder, in Markdown.
pub fn documentation() -> String {
    let tables: [(&str, &str, String); 10] = [
        (
            "flows",
            "A row per flow. A closed loop that ends at a time leaves out what had not begun by then.",
            markdown(&FLOWS),
        ),
        (
            "workloads",
            "A row per workload, and per part of one: these columns, then the [measures](#measures) of workloads.",
            markdown(&WORKLOADS),
        ),
        (
            "ports",
            "A row per egress port of a switch; of hosts' own links only those that lost something.",
            markdown(&PORTS),
        ),
        ("events", "A row per thing that happened, by time.", markdown(&EVENTS)),
        (
            "goodput",
            "A row per bin of time; `sample_us` in the scenario says how long they are. They double when the run is long. The last one \
             ends with the run or after it.",
            markdown(&GOODPUT),
        ),
        ("queues", "A row per egress port of a switch and bin of time, as in `goodput`.", markdown(&QUEUES)),
        (
            "evs",
            "A row per bin of time of each of the first 8 connections; `sample_us = 0` turns it off. Bins are as long as all of them take \
             that have passed.",
            markdown(&EVS),
        ),
        (
            "runs",
            "In the folder of the sweep, a row per run: these columns, then the [measures](#measures) that any of the runs has.",
            markdown(&RUNS),
        ),
        (
            "figures",
            "In the folder of `spray figures`: a row per measure, series and condition of each.",
            figures::documentation(),
        ),
        (
            "trace",
            "What `spray trace` writes, as Parquet or as lines of JSON, without the columns of every table: a row per thing in the life of \
             a packet, by time. On the xdp engine what happens at ports between switches is not seen.",
            markdown(&TRACE),
        ),
    ];
    let sections = tables.iter().map(|(name, about, table)| format!("\n## `{name}`\n\n{about}\n\n{table}"));
    let keys = |name: &str, about: &str, keys: String| format!("\n## `{name}`\n\n{about}\n\n{keys}");
    let summary = "The [measures](#measures) of a run by their keys, those of a workload under `workloads[]`, and these. Keys of engines, switches and \
                   settings that a run does not have are left out.";
    let record = "How a run came about. A folder with this file is a run that is done.";
    format!(
        "{HEAD}\n## Measures\n\n{MEASURES}{}\n## Columns of every table\n\n{}{}{}{}",
        measures::documentation(),
        markdown(&RUN),
        sections.collect::<String>(),
        keys("summary.json", summary, without_measures(&spray_settings::keys::<Summary>())),
        keys("run.json", record, spray_settings::keys::<Record>()),
    )
}

/// Filters out the keys of measures.
fn without_measures(keys: &str) -> String {
    let key = |line: &str| line.split('`').nth(1).map(|key| key.trim_start_matches("workloads[].").to_string());
    let is_other = |line: &&str| key(line).is_none_or(|key| measures::find(&key).is_none());
    keys.lines().filter(is_other).map(|line| format!("{line}\n")).collect()
}

const MEASURES: &str = "Each has one meaning wherever it is shown: in `summary.json`, as a column of `runs` and `workloads`, in `sweep.json`, in reports, as a \
measure of a figure, and in metrics (`spray_run_KEY`). Percentiles are by nearest rank. JCT ratio, bus bandwidth, Jain's index, max-mean ratio, out-of-order \
rate and loss duration are as the drafts of IETF's benchmarking group for AI fabrics (draft-calabria-bmwg-ai-fabric-terminology) define them.

";

const HEAD: &str = "# Measures, columns and keys of results
";
