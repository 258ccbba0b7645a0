//! `spray figures`.

use spray_test_support::{Folder, root, text};

use super::{refused, spray};

/// A figure with one small run for each series.
const SMALL: &str = r#"
title = "a small one"
section = "§0"
paper = "A permutation of four hosts."
preset = "reference"
watch = "leaf0"

[[measure]]
key = "fct_max_us"
title = "runtime"
unit = "us"

[scenario]
name = "small"
sample_us = 2
topology = { kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2 }
workload = { kind = "cross-leaf-permutation", bytes = "64 KiB" }

[[series]]
name = "ECMP"
set = { "transport.balancer" = "ecmp" }

[[series]]
name = "REPS"
set = { "transport.balancer" = "reps" }

[[condition]]
name = "healthy"

[[claim]]
says = "REPS ends no later than ECMP"
of = "REPS"
to = "ECMP"
most = 1.05

[full]
about = "4 hosts"
seeds = 2

[quick]
about = "4 hosts"
seeds = 1
"#;

#[test]
fn a_figure_from_a_file_is_run_once_and_has_values_report_and_claim() {
    let folder = Folder::new();
    let (file, out) = (folder.file("small.toml", SMALL), folder.join("out"));
    let run = || spray(&["figures", "--quick", "--figure", &file, "--out", &out]);
    let first = run();
    let stdout = text(&first.stdout);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(
        stdout.contains("confirmed     REPS ends no later than ECMP") && stdout.contains("runtime, us"),
        "{stdout}"
    );
    assert!(text(&run().stderr).contains("2 of 2 runs are done already"));
    let csv = folder.read("out/figures.csv");
    assert!(csv.starts_with("figure,scale,series,condition,x,measure,unit,"), "{csv}");
    assert!(csv.lines().nth(2).unwrap().starts_with("small,quick,REPS,healthy,,fct_max_us,us,,1,0,"), "{csv}");
    assert!(folder.read("out/report.html").contains("<a href=\"small.html\">small: a small one</a>"));
    let page = folder.read("out/small.html");
    for part in ["a small one", "REPS ends no later than ECMP", "REPS: queues", "leaf0->spine1"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn formulas_need_no_network_and_the_document_lists_missing_figures() {
    let folder = Folder::new();
    let out = folder.join("out");
    let document_of = |[one, other]: [&str; 2], name: &str| {
        let file = folder.join(name);
        let run = spray(&["figures", "--figure", one, "--figure", other, "--out", &out, "--markdown", &file]);
        assert!(run.status.success(), "{}", text(&run.stderr));
        folder.read(name)
    };
    let document = document_of(["arcane/table-1", "flowcut/4"], "papers.md");
    for part in ["| reps/table-1 | memory of a connection |", "| flowcut/4 | ", "not run", "**contradicted**"] {
        assert!(document.contains(part), "{part}");
    }
    // Figures of the folder that are not requested are absent from the document.
    let others = document_of(["arcane/table-1", "reps/20"], "others.md");
    assert!(others.contains("| reps/20 | sizes of messages in the traces | the published points (full) |"));
    assert!(others.lines().any(|line| line.starts_with("| flowcut/4 |") && line.contains("not run")));
}

#[test]
fn figures_are_listed_and_unknown_ones_rejected() {
    let list = spray(&["figures", "--list"]);
    assert!(text(&list.stdout).lines().count() > 10 && text(&list.stdout).contains("reps/13"));
    refused(&["figures", "--figure", "reps/99"], &["reps/99", "allowed", "reps/13"]);
    let folder = Folder::new();
    let file = folder.file("wrong.toml", SMALL.replace("of = \"REPS\"", "of = \"RESP\""));
    refused(&["figures", "--figure", &file], &["wrong.toml", "no series `RESP`"]);
    refused(&["figures", "--figure", "no-such.toml"], &["no-such.toml cannot be read"]);
}

#[test]
fn the_example_of_the_documentation_runs() {
    let text = std::fs::read_to_string(root().join("docs/figures.md")).unwrap();
    let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = Folder::new();
    let file = folder.file("mine.toml", example);
    let run = spray(&["figures", "--quick", "--figure", &file, "--out", &folder.join("out")]);
    assert!(run.status.success(), "{}", spray_test_support::text(&run.stderr));
    assert!(spray_test_support::text(&run.stdout).contains("REPS takes half of the time"));
}
