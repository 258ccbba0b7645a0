//! `spray compare-balancers` as a user meets it, on the simulator.

use std::path::Path;
use std::process::Output;

use spray_core::path::BalancerKind;
use spray_test_support::{Folder, text};

use super::spray;

/// Half of the paths are dead from the start, and connections give up soon.
const DEAD: &str = "
[[link_event]]
link = \"leaf0-spine0\"
action = \"silent-drop\"
[[link_event]]
link = \"leaf0-spine1\"
action = \"silent-drop\"
";

fn scenario(rest: &str) -> String {
    format!(
        "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
         [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"256 KiB\"\n[transport]\ngive_up_us = 2000\n{rest}"
    )
}

/// A scenario, and where its results go.
struct Comparison {
    folder: Folder,
    scenario: String,
}

impl Comparison {
    fn new(scenario: &str) -> Self {
        let folder = Folder::new();
        Self { scenario: folder.file("small.toml", scenario), folder }
    }

    fn run(&self, rest: &[&str]) -> Output {
        let first = ["compare-balancers", "--engine", "sim", &self.scenario, "--out", &self.out()];
        spray(&[&first[..], rest].concat())
    }

    fn out(&self) -> String {
        self.folder.join("out")
    }

    fn read(&self, file: &str) -> String {
        self.folder.read(format!("out/{file}"))
    }
}

/// The cells of the line of `balancer`.
fn line(table: &str, balancer: &str) -> Vec<String> {
    let found = table.lines().find(|line| line.split_whitespace().next() == Some(balancer));
    found.unwrap_or_else(|| panic!("no {balancer} in\n{table}")).split_whitespace().map(String::from).collect()
}

fn csv(table: &str) -> Vec<Vec<String>> {
    table.lines().map(|line| line.split(',').map(String::from).collect()).collect()
}

#[test]
fn every_balancer_has_a_line_and_a_folder() {
    let comparison = Comparison::new(&scenario(""));
    let output = comparison.run(&["--seed", "3"]);
    let (said, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{progress}");
    assert!(said.starts_with("small, healthy: 8 flows, dctcp, seed 3"), "{said}");
    assert!(progress.contains("[1/"), "{progress}");
    for kind in BalancerKind::ALL {
        assert_eq!(line(&said, kind.name())[1], "ok");
        let run = format!("healthy-{kind}-seed3");
        for file in ["summary.json", "flows.csv", "report.html"] {
            assert!(!comparison.read(&format!("{run}/{file}")).is_empty());
        }
        assert!(comparison.read("report.html").contains(&format!("{run}/report.html")), "{kind}");
        assert!(comparison.read("compare-balancers.md").contains(&format!("| {kind} | ok |")));
    }
    let table = csv(&comparison.read("compare-balancers.csv"));
    assert_eq!(table.len(), BalancerKind::ALL.len() + 1);
    let slowdown = table[0].iter().position(|key| key == "slowdown").unwrap();
    let slowdowns: Vec<f64> = table[1..].iter().map(|row| row[slowdown].parse().unwrap()).collect();
    assert!(slowdowns.contains(&1.0) && slowdowns.iter().all(|factor| *factor >= 1.0), "{slowdowns:?}");
    assert!(comparison.read("compare-balancers.txt").contains(&said[said.find("balancer").unwrap()..][..40]));
    assert_eq!(comparison.read("runs.csv").lines().count(), BalancerKind::ALL.len() + 1);
}

#[test]
fn what_does_not_complete_is_shown_and_stops_nobody() {
    let comparison = Comparison::new(&scenario(DEAD));
    let output = comparison.run(&["--balancer", "ecmp", "--balancer", "reps", "--seeds", "1..2", "--threads", "1"]);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}\n{error}");
    assert!(said.contains("means over 2 seeds") && said.contains("sd  slowdown"), "{said}");
    let (ecmp, reps) = (line(&said, "ecmp"), line(&said, "reps"));
    assert!(ecmp[1].ends_with("/2") && ecmp[2] == "runs," && ecmp[7] == ">" && ecmp[9] == "-", "{ecmp:?}");
    assert!(reps[1] == "ok" && reps[2].ends_with('*') && reps[4] == "1.000", "{reps:?}");
    assert!(said.contains("warning: not all flows completed: ecmp "), "{said}");
    assert!(said.contains("flows given up: ") && said.contains("`give_up_us`"), "{said}");
    assert!(error.contains("of 4 runs failed or did not complete"), "{error}");
    let page = comparison.read("report.html");
    assert!(page.contains("reps-seed1/report.html") && page.contains("reps-seed2/report.html"));
}

/// Runs of an earlier command are in the table; how they ended does not decide how this one ends.
#[test]
fn earlier_runs_are_compared_and_not_judged() {
    let comparison = Comparison::new(&scenario(DEAD));
    let first = comparison.run(&["--balancer", "ecmp", "--seed", "1"]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    let second = comparison.run(&["--balancer", "reps", "--seed", "1", "--json"]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    let json: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 1);
    let table = comparison.read("compare-balancers.txt");
    assert!(line(&table, "reps")[1] == "ok" && line(&table, "ecmp")[1].contains('/'), "{table}");
}

#[test]
fn parameters_and_congestion_control_reach_the_runs() {
    let mean_us = |rest: &[&str]| {
        // A separate folder for each, because a folder refuses results of other settings.
        let comparison = Comparison::new(&scenario(""));
        let output = comparison.run(&[&["--balancer", "ops"], rest].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let table = csv(&comparison.read("compare-balancers.csv"));
        let mean = table[0].iter().position(|key| key == "fct_mean_us").unwrap();
        table[1][mean].parse::<f64>().unwrap()
    };
    let fixed = |bytes: &str| {
        mean_us(&["--cc", "fixed-window", "--set", &format!("transport.fixed-window.window_bytes={bytes}")])
    };
    let (usual, slow) = (mean_us(&[]), fixed("6kB"));
    assert!(slow > 5.0 * usual && fixed("1MB") < 2.0 * usual, "{usual} and {slow} us");
}

#[test]
fn bad_input_starts_nothing() {
    let comparison = Comparison::new(&scenario("plain.x = 1\n"));
    let output = comparison.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("small.toml:12:1: unknown field `plain` in [transport]; allowed: balancer, "), "{error}");
    assert!(!Path::new(&comparison.out()).exists());
}
