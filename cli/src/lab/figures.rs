//! `spray figures`: the papers' figures and tables, with what the papers say beside what we find.

mod kept;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use spray_experiments::figures::{self, Claim, Count, Figure, Plan, Scale, Shown};
use spray_experiments::results;
use spray_settings::{MAX_SETTINGS_BYTES, did_you_mean, read_file};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::now;
use spray_tools::{info, say};

use self::kept::{Keeper, Kept, refused};
use crate::lab::args;
use crate::lab::campaign::{COMMIT, VERSION};
use crate::lab::folder::{self, Writes};
use crate::lab::runs::{Part, Runs};
use crate::lab::sim::args::cores;

/// Makes the runs of the figures that were asked for, by default all, but for those that the folder has already. Prints the values of a
/// single figure.
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
    let _held = folder::hold(&out, if arguments.part.is_some() { Writes::Part } else { Writes::All })?;
    let before = match &arguments.markdown {
        Some(file) if file.exists() => read_file(file, MAX_SETTINGS_BYTES).map_err(|error| refused(file, &error))?,
        _ => String::new(),
    };
    let is_there =
        |figure: &Figure| arguments.figure.is_empty() && arguments.quick && figures::has_full(&before, figure);
    let able: Vec<&Figure> = wanted.iter().filter(|figure| figure.not_shown.is_none() && !is_there(figure)).collect();
    let (done, runs, all) = run(&able, scale, arguments.part, &out, threads)?;
    if let Some(part) = arguments.part {
        return part.say(&out, done, runs, all);
    }
    // What the folder has of other figures stays in its tables and pages.
    let (names, mut all) = (wanted.iter().map(|figure| figure.id.clone()).collect::<Vec<_>>(), figures::all());
    all.extend(wanted.into_iter().filter(|figure| figure.paper().is_empty()));
    let kept = Kept::load(&out)?;
    let of = |figure: Figure| {
        let shown = shown(&kept, &figure);
        (figure, shown)
    };
    let all: Vec<_> = all.into_iter().map(of).collect();
    results::write_figures(&out, &all).map_err(Failure::failed)?;
    let own: Vec<_> = all.iter().filter(|(figure, _)| names.contains(&figure.id)).collect();
    own.iter().for_each(|(figure, shown)| tell(figure, shown.as_ref()));
    if let [(figure, shown)] = own.as_slice() {
        print(figure, shown.as_ref());
    }
    if let Some(file) = &arguments.markdown {
        fs::write(file, document(&before, &own, &all)).map_err(|error| refused(file, &error))?;
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

/// The document to write: that of the one figure that was asked for, or that of all, which keeps from `before` what was not asked for.
fn document(before: &str, own: &[&(Figure, Option<Shown>)], all: &[(Figure, Option<Shown>)]) -> String {
    let by = if COMMIT.is_empty() { VERSION } else { COMMIT };
    if let [(figure, Some(shown))] = own
        && !figures::is_over_all(before)
    {
        return figures::markdown_of_one(figure, shown, by);
    }
    let asked = |figure: &Figure| own.iter().any(|(other, _)| other.id == figure.id);
    let figures = all.iter().map(|(figure, shown)| (figure, shown.as_ref().filter(|_| asked(figure))));
    figures::markdown(before, &figures.collect::<Vec<_>>(), by)
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
        let text = read_file(file, MAX_SETTINGS_BYTES)
            .map_err(|error| Failure::refused(format!("{name} cannot be read: {error}")))?;
        let id = file.file_stem().unwrap_or_default().to_string_lossy();
        return Figure::parse(&id, &text).map_err(|error| Failure::refused(format!("{name}: {error}")));
    }
    figures::find(name).ok_or_else(|| {
        let known: Vec<String> = figures::all().into_iter().map(|figure| figure.id).collect();
        let near = did_you_mean(name, &known.iter().map(String::as_str).collect::<Vec<_>>());
        Failure::refused(format!("there is no figure `{name}`{near}; allowed: a file.toml, {}", known.join(", ")))
    })
}

/// Says what a figure came to.
fn tell(figure: &Figure, shown: Option<&Shown>) {
    if let Some(shown) = shown {
        info!("{:70} {}", format!("{}: {}", figure.id, figure.title), Count::of(figure, shown).text());
    }
}

fn list(figure: &Figure) {
    match &figure.not_shown {
        Some(why) => say!("{:16} {} (not shown: {why})", figure.id, figure.title),
        None => say!("{:16} {}", figure.id, figure.title),
    }
}

/// Makes those runs of `figures` that the folder does not have, or a part of them; returns how many are done of the part, how many it has,
/// and how many there are in all.
fn run(
    figures: &[&Figure],
    scale: Scale,
    part: Option<Part>,
    out: &Path,
    threads: usize,
) -> Outcome<(usize, usize, usize)> {
    let plans: Vec<Plan<'_>> = figures.iter().map(|figure| figure.plan(scale)).collect();
    let kept = Kept::load(out)?;
    let numbers = |(at, plan): (usize, &Plan<'_>)| (0..plan.runs()).map(move |run| (at, run)).collect::<Vec<_>>();
    let planned: Vec<(usize, usize)> = plans.iter().enumerate().flat_map(numbers).collect();
    let all = planned.len();
    let mine = if let Some(part) = part { part.share(planned) } else { planned };
    let key = |number: usize| kept::key(&plans[mine[number].0], mine[number].1);
    let mut met = HashSet::new();
    let open = (0..mine.len()).map(|number| (number, key(number))).filter(|(_, key)| !kept.has(key));
    let open: Vec<usize> = open.filter(|(_, key)| met.insert(key.clone())).map(|(number, _)| number).collect();
    Runs::say_done(out, mine.len(), &open);
    let runs = Runs::new(out, mine.len(), open, false)?;
    drop(kept);
    let keepers: Vec<_> = figures.iter().map(|figure| Mutex::new(Keeper::new(out, figure, scale, part))).collect();
    runs.each(threads, |number| {
        let ((at, run), begun) = (mine[number], now());
        let title = format!("{}: {}", figures[at].id, plans[at].title(run));
        let made = plans[at].run(run).map_err(|error| Failure::failed(format!("{title}: {error}")))?;
        keepers[at].lock().unwrap_or_else(PoisonError::into_inner).keep(key(number), made)?;
        runs.show.end(&title, &format!("{:.1} s", begun.elapsed().as_secs_f64()));
        runs.show.count();
        Ok(())
    })?;
    Ok((runs.show.done(), mine.len(), all))
}

/// What a folder has of a figure: at full size if it is there.
fn shown(kept: &Kept, figure: &Figure) -> Option<Shown> {
    [Scale::Full, Scale::Quick].into_iter().find_map(|scale| {
        let plan = figure.plan(scale);
        let runs = kept.all(&plan).filter(|runs| !runs.is_empty())?;
        Some(plan.shown(&runs))
    })
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
    for grid in figures::grids(figure, shown, true) {
        say!("\n{}", grid.text());
    }
    for claim in &figure.claim {
        let found = claim.against(figure, shown);
        say!("{:13} {} [{}]", found.verdict.text(), claim.says, found.ours);
    }
    say!("");
}
