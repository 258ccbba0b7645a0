//! `spray figures`: the papers' figures and tables, with what the papers say beside what we find.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use spray_experiments::figures::{self, Claim, Count, Figure, STOPPED, Scale, Shown};
use spray_experiments::results;
use spray_settings::did_you_mean;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::stop::Stop;
use spray_tools::{info, say};

use crate::lab::args;
use crate::lab::campaign::{COMMIT, VERSION};
use crate::lab::folder;
use crate::lab::sim::args::cores;

/// Runs the figures that were asked for, by default all, but for those that the folder has already. Prints the values of a single one.
///
/// # Errors
/// 2 for a figure that there is not, 1 when a run fails, 130 after Ctrl-C.
pub fn figures(arguments: &args::Figures) -> Outcome {
    let wanted = wanted(&arguments.figure)?;
    if arguments.list {
        wanted.iter().for_each(list);
        let object = |figure: &Figure| json!({ "id": figure.id, "title": figure.title, "not_shown": figure.not_shown });
        return say::object(&wanted.iter().map(object).collect::<Vec<_>>());
    }
    let out = folder::location(arguments.out.as_deref(), "figures");
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    let threads = arguments.threads.map_or_else(cores, usize::from);
    let _held = folder::hold(&out, folder::Writes::All)?;
    let stop = Stop::on_signals()?;
    for figure in wanted.iter().filter(|figure| figure.not_shown.is_none()) {
        run(figure, (scale, threads), (&out, &stop))?;
    }
    // What the folder has of other figures stays in its tables and pages.
    let (names, mut all) = (wanted.iter().map(|figure| figure.id.clone()).collect::<Vec<_>>(), figures::all());
    all.extend(wanted.into_iter().filter(|figure| figure.paper().is_empty()));
    let all: Vec<_> = all.into_iter().map(|figure| shown(&out, figure)).collect();
    results::write_figures(&out, &all).map_err(Failure::failed)?;
    let own: Vec<_> = all.iter().filter(|(figure, _)| names.contains(&figure.id)).collect();
    if let [(figure, shown)] = own.as_slice() {
        print(figure, shown.as_ref());
    }
    if let Some(file) = &arguments.markdown {
        let text = figures::markdown(if let [own] = own.as_slice() { std::slice::from_ref(*own) } else { &all });
        fs::write(file, text).map_err(|error| Failure::refused(format!("{}: {error}", file.display())))?;
        say!("document  {}", file.display());
    }
    let (values, report) = (out.join("figures.csv"), out.join("report.html"));
    let statements: Vec<_> = own.iter().flat_map(|(figure, shown)| statements(figure, shown.as_ref())).collect();
    say::object(&json!({ "results": out, "values": values, "report": report, "statements": statements }))?;
    say!("what the papers say: {}", Count::of_all(own).text());
    say!("values    {} (also .parquet)", values.display());
    say!("report    {}", report.display());
    Ok(())
}

fn wanted(names: &[String]) -> Outcome<Vec<Figure>> {
    if names.is_empty() {
        return Ok(figures::all());
    }
    names.iter().map(|name| named(name)).collect()
}

/// A figure of a paper, or one in a file of the same form.
fn named(name: &str) -> Outcome<Figure> {
    let file = Path::new(name);
    if file.extension().is_some_and(|extension| extension == "toml") {
        let text =
            fs::read_to_string(file).map_err(|error| Failure::refused(format!("{name} cannot be read: {error}")))?;
        let id = file.file_stem().unwrap_or_default().to_string_lossy();
        return Figure::parse(&id, &text).map_err(|error| Failure::refused(format!("{name}: {error}")));
    }
    figures::find(name).ok_or_else(|| {
        let known: Vec<String> = figures::all().into_iter().map(|figure| figure.id).collect();
        let near = did_you_mean(name, &known.iter().map(String::as_str).collect::<Vec<_>>());
        Failure::refused(format!("there is no figure `{name}`{near}; allowed: a file.toml, {}", known.join(", ")))
    })
}

fn list(figure: &Figure) {
    match &figure.not_shown {
        Some(why) => say!("{:16} {} (not shown: {why})", figure.id, figure.title),
        None => say!("{:16} {}", figure.id, figure.title),
    }
}

/// A figure that is kept in its file.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// What it follows from: the figure's file, the version and the commit.
    key: String,
    shown: Shown,
}

fn file(out: &Path, figure: &Figure, scale: Scale) -> PathBuf {
    out.join(format!("{}-{}.json", figure.file_name(), scale.name()))
}

fn key(figure: &Figure) -> String {
    format!("{:x}", Sha256::digest([&figure.text, VERSION, COMMIT].join("\0")))
}

fn kept(out: &Path, figure: &Figure, scale: Scale) -> Option<Shown> {
    let kept: Kept = serde_json::from_slice(&fs::read(file(out, figure, scale)).ok()?).ok()?;
    (kept.key == key(figure)).then_some(kept.shown)
}

/// What the folder has of a figure: at full size if it is there.
fn shown(out: &Path, figure: Figure) -> (Figure, Option<Shown>) {
    let shown = [Scale::Full, Scale::Quick].into_iter().find_map(|scale| kept(out, &figure, scale));
    (figure, shown)
}

/// Runs a figure and keeps it, if it is not there.
fn run(figure: &Figure, (scale, threads): (Scale, usize), (out, stop): (&Path, &Stop)) -> Outcome {
    let tell = |shown: &Shown, when: &str| {
        let heading = format!("{}: {}", figure.id, figure.title);
        info!("{heading:70} {when:>9}  {}", Count::of(figure, shown).text());
    };
    if let Some(shown) = kept(out, figure, scale) {
        tell(&shown, "was there");
        return Ok(());
    }
    let shown = figure.run(scale, threads, &|_, _| !stop.is_set()).map_err(|error| match error.as_str() {
        STOPPED => Failure::interrupted_with(format!("the figures that are done stay in {}", out.display())),
        error => Failure::failed(format!("{}: {error}", figure.id)),
    })?;
    tell(&shown, &format!("{:.1} s", shown.wall_s));
    let text = serde_json::to_string(&Kept { key: key(figure), shown }).map_err(Failure::failed)?;
    fs::write(file(out, figure, scale), text).map_err(Failure::failed)
}

/// What a paper says of a figure that was run, and what comes out.
fn statements(figure: &Figure, shown: Option<&Shown>) -> Vec<Value> {
    let statement = |(claim, shown): (&Claim, &Shown)| {
        let found = claim.against(figure, shown);
        json!({ "figure": figure.id, "paper": claim.says, "ours": found.ours, "verdict": found.verdict.text() })
    };
    figure
        .claim
        .iter()
        .zip(std::iter::repeat(shown))
        .filter_map(|(claim, shown)| Some((claim, shown?)))
        .map(statement)
        .collect()
}

fn print(figure: &Figure, shown: Option<&Shown>) {
    let Some(shown) = shown else {
        say!("{}: not shown: {}", figure.title, figure.not_shown.as_deref().unwrap_or("it was not run"));
        return;
    };
    for grid in figures::grids(figure, shown) {
        say!("\n{}", grid.text());
    }
    for claim in &figure.claim {
        let found = claim.against(figure, shown);
        say!("{:13} {} [{}]", found.verdict.text(), claim.says, found.ours);
    }
    say!("");
}
