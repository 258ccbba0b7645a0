//! `spray run` with several or all balancers, on the simulator.

use std::path::Path;
use std::process::Output;

use spray_core::path::BalancerKind;
use spray_test_support::{Folder, text};

use super::{refused, spray};

/// Half of the paths are down from the start, and connections give up early.
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

/// A scenario, and the folder of its results.
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
        let first = ["run", "--engine", "sim", &self.scenario, "--out", &self.out()];
        spray(&[&first[..], rest].concat())
    }

    fn out(&self) -> String {
        self.folder.join("out")
    }

    fn read(&self, file: &str) -> String {
        self.folder.read(format!("out/{file}"))
    }
}

/// Returns the cells of the line of `balancer`: condition, switch, balancer and the following
/// columns.
fn line(table: &str, balancer: &str) -> Vec<String> {
    let cells =
        |line: &str| line.split("  ").map(|cell| cell.trim().to_string()).filter(|cell| !cell.is_empty()).collect();
    let mut lines = table.lines().map(cells);
    lines
        .find(|cells: &Vec<String>| cells.get(2).is_some_and(|cell| cell == balancer))
        .unwrap_or_else(|| panic!("{table}"))
}

#[test]
fn every_balancer_has_a_line_and_a_folder() {
    let comparison = Comparison::new(&scenario(""));
    let output = comparison.run(&["--every-balancer", "--seed", "3"]);
    let (stdout, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{progress}");
    assert!(progress.contains("[1/"), "{progress}");
    for kind in BalancerKind::ALL {
        assert_eq!(line(&stdout, kind.name())[..2], ["healthy", "ecmp"]);
        let run = format!("healthy-{kind}-seed3");
        for file in ["summary.json", "flows.csv", "report.html"] {
            assert!(!comparison.read(&format!("{run}/{file}")).is_empty());
        }
        assert!(comparison.read("report.html").contains(&format!("{run}/report.html")), "{kind}");
    }
    assert_eq!(comparison.read("runs.csv").lines().count(), BalancerKind::ALL.len() + 1);
    refused(&["run", &comparison.scenario, "--every-balancer", "--balancer", "ops"], &["cannot be used with"]);
}

#[test]
fn incomplete_flows_are_reported_and_other_runs_continue() {
    let comparison = Comparison::new(&scenario(DEAD));
    let output = comparison.run(&["--balancer", "ecmp", "--balancer", "reps", "--seeds", "1..2", "--threads", "1"]);
    let (stdout, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}\n{error}");
    let (ecmp, reps) = (line(&stdout, "ecmp"), line(&stdout, "reps"));
    assert!(ecmp[3].ends_with("/2 complete") && ecmp[5].starts_with('>'), "{ecmp:?}");
    assert!(reps[3] == "2" && reps[4] == "100 %" && !reps[5].starts_with('>'), "{reps:?}");
    assert!(stdout.contains("warning: not all flows completed: ecmp "), "{stdout}");
    assert!(stdout.contains("flows given up: ") && stdout.contains("`give_up_us`"), "{stdout}");
    assert!(error.contains("incomplete runs: ") && error.contains(" of 4"), "{error}");
    let page = comparison.read("report.html");
    assert!(page.contains("reps-seed1/report.html") && page.contains("reps-seed2/report.html"));
}

/// Runs of earlier commands are in the table; their failures do not change the exit code of this
/// one.
#[test]
fn earlier_runs_are_compared_but_do_not_change_the_exit_code() {
    let comparison = Comparison::new(&scenario(DEAD));
    let first = comparison.run(&["--balancer", "ecmp", "--seed", "1"]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    let second = comparison.run(&["--balancer", "reps", "--seed", "1"]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    let stdout = text(&second.stdout);
    assert!(
        line(&stdout, "ecmp").last().unwrap().contains(" flows, ") && line(&stdout, "reps").last().unwrap() == "-",
        "{stdout}"
    );
}

#[test]
fn parameters_and_congestion_control_reach_the_runs() {
    let mean_us = |rest: &[&str]| {
        // A separate folder for each, because a folder rejects results of other settings.
        let comparison = Comparison::new(&scenario(""));
        let output = comparison.run(&[&["--balancer", "ops", "--json"], rest].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["runs"][0]["fct_mean_us"].as_f64().unwrap()
    };
    let fixed = |bytes: &str| {
        mean_us(&["--cc", "fixed-window", "--set", &format!("transport.fixed-window.window_bytes={bytes}")])
    };
    let (usual, slow) = (mean_us(&[]), fixed("6kB"));
    assert!(slow > 5.0 * usual && fixed("1MB") < 2.0 * usual, "{usual} and {slow} us");
}

#[test]
fn no_run_starts_with_invalid_input() {
    let comparison = Comparison::new(&scenario("plain.x = 1\n"));
    let output = comparison.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("small.toml:12:1: unknown field `plain` in [transport]; allowed: balancer, "), "{error}");
    assert!(!Path::new(&comparison.out()).exists());
}
