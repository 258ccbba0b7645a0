//! `spray figures`: the papers' figures and tables, and their claims compared with our results.

mod cache;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use spray_experiments::figures::{self, Claim, Count, Figure, FigureResults, Plan, Scale};
use spray_experiments::results;
use spray_settings::{MAX_SETTINGS_BYTES, did_you_mean, read_file};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::now;
use spray_tools::{info, say};

use self::cache::{Cache, CacheWriter, refused};
use crate::lab::args;
use crate::lab::campaign::{COMMIT, VERSION};
use crate::lab::folder::{self, LockScope};
use crate::lab::runs::{Part, Runs};
use crate::lab::sim::args::cores;

/// Runs the requested figures, by default all, except for runs in the folder. Prints the values of
/// a single figure.
pub fn figures(arguments: &args::Figures) -> Outcome {
    let wanted = match arguments.figure.as_slice() {
        [] => figures::all(),
        names => names.iter().map(|name| named(name)).collect::<Outcome<_>>()?,
    };
    if arguments.list {
        wanted.iter().for_each(list);
        let object = |figure: &Figure| json!({ "id": figure.id, "title": figure.title, "not_shown": figure.not_shown });
        return say::object(&wanted.iter().map(object).collect::<Vec<_>>());
    }
    let out = folder::location(arguments.out.as_deref(), "figures");
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    let threads = arguments.threads.map_or_else(cores, usize::from);
    let _lock = folder::lock(&out, if arguments.part.is_some() { LockScope::Part } else { LockScope::All })?;
    let before = match &arguments.markdown {
        Some(file) if file.exists() => read_file(file, MAX_SETTINGS_BYTES).map_err(|error| refused(file, &error))?,
        _ => String::new(),
    };
    let has_full =
        |figure: &Figure| arguments.figure.is_empty() && arguments.quick && figures::has_full(&before, figure);
    let able: Vec<&Figure> = wanted.iter().filter(|figure| figure.not_shown.is_none() && !has_full(figure)).collect();
    let (done, runs, all) = run(&able, scale, arguments.part, &out, threads)?;
    if let Some(part) = arguments.part {
        return part.report(&out, done, runs, all);
    }
    // Other figures in the folder remain in its tables and pages.
    let (names, mut all) = (wanted.iter().map(|figure| figure.id.clone()).collect::<Vec<_>>(), figures::all());
    all.extend(wanted.into_iter().filter(|figure| figure.paper().is_empty()));
    let cache = Cache::load(&out)?;
    let with_results = |figure: Figure| {
        let results = results(&cache, &figure);
        (figure, results)
    };
    let all: Vec<_> = all.into_iter().map(with_results).collect();
    results::write_figures(&out, &all).map_err(Failure::failed)?;
    let own: Vec<_> = all.iter().filter(|(figure, _)| names.contains(&figure.id)).collect();
    own.iter().for_each(|(figure, results)| print_counts(figure, results.as_ref()));
    if let [(figure, results)] = own.as_slice() {
        print(figure, results.as_ref());
    }
    if let Some(file) = &arguments.markdown {
        fs::write(file, document(&before, &own, &all)).map_err(|error| refused(file, &error))?;
        say!("document  {}", file.display());
    }
    let (values, report) = (out.join("figures.csv"), out.join("report.html"));
    let statements: Vec<_> = own.iter().flat_map(|(figure, results)| statements(figure, results.as_ref())).collect();
    say::object(&json!({ "results": out, "values": values, "report": report, "statements": statements }))?;
    say!("claims    {}", Count::of_all(own).text());
    say!("values    {} (also .parquet)", values.display());
    say!("report    {}", report.display());
    Ok(())
}

/// Returns the document: of a single figure, or `before` with the requested figures replaced.
fn document(before: &str, own: &[&(Figure, Option<FigureResults>)], all: &[(Figure, Option<FigureResults>)]) -> String {
    let by = if COMMIT.is_empty() { VERSION } else { COMMIT };
    if let [(figure, Some(results))] = own
        && !figures::is_over_all(before)
    {
        return figures::markdown_of_one(figure, results, by);
    }
    let asked = |figure: &Figure| own.iter().any(|(other, _)| other.id == figure.id);
    let figures = all.iter().map(|(figure, results)| (figure, results.as_ref().filter(|_| asked(figure))));
    figures::markdown(before, &figures.collect::<Vec<_>>(), by)
}

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
        Failure::refused(format!("unknown figure `{name}`{near}; allowed: a file.toml, {}", known.join(", ")))
    })
}

fn print_counts(figure: &Figure, results: Option<&FigureResults>) {
    if let Some(results) = results {
        info!("{:70} {}", format!("{}: {}", figure.id, figure.title), Count::of(figure, results).text());
    }
}

fn list(figure: &Figure) {
    match &figure.not_shown {
        Some(why) => say!("{:16} {} (not shown: {why})", figure.id, figure.title),
        None => say!("{:16} {}", figure.id, figure.title),
    }
}

/// Executes missing runs. Returns the number of completed runs of the part, its size, the total.
fn run(
    figures: &[&Figure],
    scale: Scale,
    part: Option<Part>,
    out: &Path,
    threads: usize,
) -> Outcome<(usize, usize, usize)> {
    let plans: Vec<Plan<'_>> = figures.iter().map(|figure| figure.plan(scale)).collect();
    let cache = Cache::load(out)?;
    let numbers = |(at, plan): (usize, &Plan<'_>)| (0..plan.runs()).map(move |run| (at, run)).collect::<Vec<_>>();
    let planned: Vec<(usize, usize)> = plans.iter().enumerate().flat_map(numbers).collect();
    let all = planned.len();
    let mine = if let Some(part) = part { part.share(planned) } else { planned };
    let key = |number: usize| cache::key(&plans[mine[number].0], mine[number].1);
    let mut seen = HashSet::new();
    let open = (0..mine.len()).map(|number| (number, key(number))).filter(|(_, key)| !cache.has(key));
    let open: Vec<usize> = open.filter(|(_, key)| seen.insert(key.clone())).map(|(number, _)| number).collect();
    Runs::print_done(out, mine.len(), &open);
    let runs = Runs::new(out, mine.len(), open, false)?;
    drop(cache);
    let writers: Vec<_> = figures.iter().map(|figure| Mutex::new(CacheWriter::new(out, figure, scale, part))).collect();
    runs.each(threads, |number| {
        let ((at, run), begun) = (mine[number], now());
        let title = format!("{}: {}", figures[at].id, plans[at].title(run));
        let made = plans[at].run(run).map_err(|error| Failure::failed(format!("{title}: {error}")))?;
        writers[at].lock().unwrap_or_else(PoisonError::into_inner).write(key(number), made)?;
        runs.display.end(&title, &format!("{:.1} s", begun.elapsed().as_secs_f64()));
        runs.display.count();
        Ok(())
    })?;
    Ok((runs.display.done(), mine.len(), all))
}

/// Returns the results of a figure in the folder, at full size if available.
fn results(cache: &Cache, figure: &Figure) -> Option<FigureResults> {
    [Scale::Full, Scale::Quick].into_iter().find_map(|scale| {
        let plan = figure.plan(scale);
        let runs = cache.all(&plan).filter(|runs| !runs.is_empty())?;
        Some(plan.results(&runs))
    })
}

fn statements(figure: &Figure, results: Option<&FigureResults>) -> Vec<Value> {
    let Some(results) = results else { return Vec::new() };
    let statement = |claim: &Claim| {
        let found = claim.against(figure, results);
        json!({ "figure": figure.id, "paper": claim.says, "ours": found.ours, "verdict": found.verdict.text() })
    };
    figure.claim.iter().map(statement).collect()
}

fn print(figure: &Figure, results: Option<&FigureResults>) {
    let Some(results) = results else {
        say!("{}: not shown: {}", figure.title, figure.not_shown.as_deref().unwrap_or("it was not run"));
        return;
    };
    for grid in figures::grids(figure, results, true) {
        say!("\n{}", grid.text());
    }
    for claim in &figure.claim {
        let found = claim.against(figure, results);
        say!("{:13} {} [{}]", found.verdict.text(), claim.says, found.ours);
    }
    say!("");
}
