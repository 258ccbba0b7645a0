//! `spray trace`: the packets of selected flows in one run.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use spray_experiments::engine::Progress as News;
use spray_experiments::results::{incomplete_notes, trace_json, trace_parquet};
use spray_experiments::scenario::{Scenario, Seeds};
use spray_experiments::watch::{self, Row};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::stop::Stop;
use spray_tools::{info, note, say};

use crate::lab::args::{self, Engine};
use crate::lab::campaign::{Campaign, Job, ended};
use crate::lab::engines;
use crate::lab::settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Parquet,
    Json,
}

/// Runs the scenario once and writes what happened to the packets of the flows.
pub fn trace(arguments: &args::Trace) -> Outcome {
    let args::Trace { scenario, engine, overrides, seeds, flow, out } = arguments;
    let form = form(out)?;
    let scenarios = Scenario::read_all(&settings::load(overrides, scenario)?).map_err(Failure::refused)?;
    let campaign = Campaign::new(*engine, scenarios, seeds);
    let [Job { balancer, seed, .. }] = campaign.jobs()[..] else {
        let runs = campaign.jobs().len();
        let rule = "choose one with --balancer, --seed and --set";
        return Err(Failure::refused(format!("{} has {runs} runs, a trace needs one; {rule}", scenario.display())));
    };
    let scenario = &campaign.scenarios[0];
    let chosen = Seeds::all(flow);
    let watch = watch::tracer(scenario, balancer, seed, &chosen, *engine == Engine::Sim);
    let watch = watch.map_err(|why| Failure::refused(format!("--flow: {why}")))?;
    let mut progress = Progress::on_stderr();
    let mut on_progress = |news: News| match news {
        News::Phase(text) => progress.phase(&text),
        News::Notice(text) => {
            progress.clear();
            info!("spray: {text}");
        }
        _ => {}
    };
    let machine = engines::engine(*engine, campaign.threads)?;
    // The simulator has nothing to clean up, and ends with the process.
    let stop = if machine.is_exclusive() { Some(Stop::on_signals()?) } else { None };
    let never = AtomicBool::new(false);
    let prepared = machine.prepare(scenario, &mut on_progress).map_err(ended)?;
    let stop = stop.as_ref().map_or(&never, Stop::flag);
    let run = prepared.run_observed(balancer, seed, Some(&watch), &mut on_progress, stop).map_err(ended)?;
    progress.clear();
    let (_, (rows, left_out)) = watch.lock().finish().map_err(Failure::failed)?;
    write(out, form, &rows)?;
    if left_out > 0 {
        note!("spray: the trace has the first {} rows; {left_out} were left out: select fewer flows", rows.len());
    }
    let summary = run.summary();
    incomplete_notes(std::slice::from_ref(&summary)).iter().for_each(|line| note!("spray: {line}"));
    if summary.payload_verified == Some(false) {
        note!("spray: a payload differs from what was sent");
    }
    Ok(())
}

fn form(out: &Path) -> Outcome<Form> {
    let shown = out.display();
    let form = match out.extension().and_then(|ending| ending.to_str()) {
        Some("parquet") => Form::Parquet,
        Some("jsonl") => Form::Json,
        _ if out == Path::new("-") => return Ok(Form::Json),
        _ => {
            return Err(Failure::refused(format!(
                "--out {shown}: allowed: FILE.parquet, FILE.jsonl, or - for lines of JSON"
            )));
        }
    };
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Failure::refused(format!("--out {shown}: no folder {}; create it first", folder.display())));
    }
    Ok(form)
}

fn write(out: &Path, form: Form, rows: &[Row]) -> Outcome {
    if out == Path::new("-") {
        say::print(trace_json(rows).trim_end());
        return Ok(());
    }
    let bytes = match form {
        Form::Parquet => trace_parquet(rows).map_err(Failure::failed)?,
        Form::Json => trace_json(rows).into_bytes(),
    };
    fs::write(out, bytes).map_err(|error| Failure::failed(format!("cannot write {}: {error}", out.display())))?;
    say!("{} rows in {}", rows.len(), out.display());
    say::object(&json!({ "file": out, "rows": rows.len() }))
}
