//! The text of `spray explain results`.

use super::columns::markdown;
use super::tables::{EVENTS, EVS, FLOWS, GOODPUT, PORTS, QUEUES, RUN, RUNS, TRACE, WORKLOADS};
use super::{Record, Summary, figures, measures};

/// Returns the documentation of the files of a results folder, in Markdown.
pub fn documentation() -> String {
    let tables: [(&str, &str, String); 10] = [
        ("flows", "A row per flow that started before the end of its closed loop, if that has one.", markdown(&FLOWS)),
        (
            "workloads",
            "A row per workload and part: these columns, then its [measures](#measures).",
            markdown(&WORKLOADS),
        ),
        ("ports", "A row per egress port of a switch, and per host's link with drops.", markdown(&PORTS)),
        ("events", "A row per event, by time.", markdown(&EVENTS)),
        ("goodput", "A row per time bin of `sample_us`, which doubles in long runs.", markdown(&GOODPUT)),
        ("queues", "A row per egress port of a switch and time bin, as in `goodput`.", markdown(&QUEUES)),
        ("evs", "A row per time bin of each of the first 8 connections, unless `sample_us` is 0.", markdown(&EVS)),
        ("runs", "In a sweep's folder, a row per run: these columns, then its [measures](#measures).", markdown(&RUNS)),
        (
            "figures",
            "In the folder of `spray figures`: a row per measure, series and condition.",
            figures::documentation(),
        ),
        ("trace", TRACED, markdown(&TRACE)),
    ];
    let sections = tables.iter().map(|(name, about, table)| format!("\n## `{name}`\n\n{about}\n\n{table}"));
    let keys = |name: &str, about: &str, keys: String| format!("\n## `{name}`\n\n{about}\n\n{keys}");
    let summary = "The [measures](#measures) of a run, those of workloads under `workloads[]`, and these. Keys that do \
                   not apply to a run are absent.";
    let record = "How a run was made. A folder with this file is a finished run.";
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

const MEASURES: &str = "Each has one meaning wherever it is shown: in `summary.json`, as a column of `runs` and `workloads`, in `sweep.json`, in reports, and as a \
measure of a figure. Percentiles are by nearest rank. JCT ratio, bus bandwidth, Jain's index, max-mean ratio, out-of-order \
rate and loss duration are as the drafts of IETF's benchmarking group for AI fabrics (draft-calabria-bmwg-ai-fabric-terminology) define them.

";

const TRACED: &str = "Written by `spray trace` as Parquet or JSON lines, without the columns of every table: a row per \
    event of a packet, by time. The xdp engine does not observe ports between switches.";

const HEAD: &str = "# Measures, columns and keys of results\n";
