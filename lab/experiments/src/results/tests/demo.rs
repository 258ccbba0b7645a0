//! The demo's table in docs/results/README.md is generated from the figures of several demos,
//! docs/results/demo.csv.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::Summary;

const HEAD: &str = "run,condition,balancer,dilation,goodput_gbps,fct_mean_us,fct_max_us,drops_link,trims,retransmits,\
                    reordered_packets,loss_duration_us\n";

/// A line of the file.
#[derive(Debug, PartialEq)]
struct Line {
    condition: String,
    balancer: String,
    /// The columns from `dilation` on.
    figures: Vec<Option<f64>>,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the lines of the runs in the results folder of a demo.
fn lines_of(demo: &Path, number: usize) -> String {
    let runs = std::fs::read_dir(demo).unwrap().map(|entry| entry.unwrap().path().join("summary.json"));
    let mut runs: Vec<PathBuf> = runs.filter(|path| path.is_file()).collect();
    runs.sort();
    let line = |path: &PathBuf| {
        let s: Summary = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let is_sound = s.is_complete() && s.engine_figures.late_packets == 0 && s.testbed_losses.total() == 0;
        assert!(is_sound, "{} has no figures", path.display());
        let figures = [
            Some(s.engine_figures.dilation.round()),
            Some(s.flows.goodput_gbps),
            s.flows.fct_mean_us,
            s.flows.fct_max_us,
            Some(s.fabric.drops_link as f64),
            Some(s.fabric.trims as f64),
            Some(s.flows.retransmits as f64),
            Some(s.flows.reordered_packets as f64),
            s.fabric.loss_duration_us,
        ];
        let figures = figures.map(|figure| figure.map_or_else(String::new, |figure| figure.to_string()));
        format!("{number},{},{},{}\n", s.condition, s.balancer, figures.join(","))
    };
    runs.iter().map(line).collect()
}

fn read(csv: &str) -> Vec<Line> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let figures = fields[3..].iter().map(|field| field.parse().ok()).collect();
        Line { condition: fields[1].into(), balancer: fields[2].into(), figures }
    };
    csv.lines().skip(1).map(line).collect()
}

/// Returns the minimum and the maximum of a figure, `None` if no run has it.
fn range(lines: &[&Line], figure: usize) -> Option<[f64; 2]> {
    let own: Vec<f64> = lines.iter().filter_map(|line| line.figures[figure]).collect();
    let least = own.iter().copied().reduce(f64::min)?;
    Some([least, own.iter().copied().fold(least, f64::max)])
}

/// Formats a range as `629 to 631`, or as one number if both are the same.
fn words(range: Option<[f64; 2]>) -> String {
    let Some(ends) = range else { return String::new() };
    let number = |value: f64| {
        let digits = format!("{value:.0}");
        if digits.len() > 3 {
            format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..])
        } else {
            digits
        }
    };
    let [least, most] = ends.map(number);
    if least == most { least } else { format!("{least} to {most}") }
}

fn section(lines: &[Line]) -> String {
    let all: Vec<&Line> = lines.iter().collect();
    let of = |condition: &str, balancer: &str| -> Vec<&Line> {
        all.iter().copied().filter(|line| line.condition == condition && line.balancer == balancer).collect()
    };
    let (mut rows, mut runs) = (String::new(), 0);
    for condition in ["healthy", "half-rate uplink", "silent uplink"] {
        for balancer in ["ecmp", "ops", "reps"] {
            let own = of(condition, balancer);
            runs = own.len();
            let cells = (1..9).map(|figure| {
                let [least, most] = range(&own, figure).unwrap_or_default();
                assert!(least == most, "{condition}, {balancer}: runs of one seed are the same");
                words(range(&own, figure))
            });
            let _ = writeln!(rows, "| {condition} | {balancer} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    format!(
        "Of {runs} runs of `spray demo`, seed 1: 8 hosts at 100 Gb/s, 16 MiB each, on a fabric slowed down {} times. The runs are \
         identical\nto the picosecond (EMU-3). The testbed lost nothing, and every payload was verified. Goodput is the total payload \
         divided by the time of the\nslowest flow.\n\n\
         | condition | balancer | goodput Gb/s | mean FCT us | largest us | dropped by the link | trimmed | retransmitted | reordered | recovery us |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n{rows}\n\
         Drops include data and ACKs; recovery ends with the last data frame that the cable drops. ECMP drops less than REPS because its flows\n\
         on the dead cable stop.\n\n\
         The figures are from [demo.csv](demo.csv). Both are generated from three demos in `D1` to `D3` by\n\
         `SPRAY_DEMOS=\"D1 D2 D3\" UPDATE_DOCS=1 cargo test -p spray-experiments documentation`, with absolute paths.\n\n",
        words(range(&all, 0)),
    )
}

/// With `UPDATE_DOCS`, rewrites the documents from the file, and the file from the demos in the
/// folders of `SPRAY_DEMOS`.
#[test]
fn the_documentation_of_the_demo_is_that_of_its_runs() {
    let (file, page) = (docs().join("results/demo.csv"), docs().join("results/README.md"));
    let updates = std::env::var_os("UPDATE_DOCS").is_some();
    if let (true, Ok(demos)) = (updates, std::env::var("SPRAY_DEMOS")) {
        let demos = demos.split_whitespace().zip(1..).map(|(demo, number)| lines_of(Path::new(demo), number));
        std::fs::write(&file, HEAD.to_string() + &demos.collect::<String>()).unwrap();
    }
    let csv = std::fs::read_to_string(&file).unwrap();
    assert!(csv.starts_with(HEAD), "{csv}");
    let lines = read(&csv);
    assert!(lines.len() >= 27, "three demos of nine runs");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("## The demo\n\n").unwrap();
    let (_, after) = rest.split_once("## ").unwrap();
    let expected = format!("{before}## The demo\n\n{}## {after}", section(&lines));
    if updates {
        std::fs::write(&page, &expected).unwrap();
    } else {
        assert!(text == expected, "docs/results/README.md is behind demo.csv (UPDATE_DOCS=1 writes it anew)");
    }
    // The figures for the silent failure on the first page.
    let reps: Vec<&Line> =
        lines.iter().filter(|line| line.balancer == "reps" && line.condition == "silent uplink").collect();
    let sentence = format!("the dead one after {} us", words(range(&reps, 8)));
    let first = std::fs::read_to_string(docs().join("../README.md")).unwrap();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.contains(&sentence), "README.md does not say `{sentence}`");
}

#[test]
fn equal_bounds_are_formatted_as_one_number() {
    assert_eq!(words(Some([629.3, 631.0])), "629 to 631");
    assert_eq!(words(Some([1700.6, 1701.4])), "1,701");
    assert_eq!(words(None), "");
    let line = |recovery| Line { condition: "c".into(), balancer: "b".into(), figures: vec![recovery] };
    let lines = [line(Some(3.0)), line(None), line(Some(2.0))];
    assert_eq!(range(&lines.iter().collect::<Vec<_>>(), 0), Some([2.0, 3.0]));
    assert_eq!(read("head\n1,c,b,,2.5\n")[0].figures, [None, Some(2.5)]);
}
