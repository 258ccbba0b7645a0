//! `spray compare-balancers` as a user meets it, on the simulator.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use spray_core::path::BalancerKind;

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

/// A folder of this test's own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, scenario: &str) -> Self {
        let path = std::env::temp_dir().join(format!("spray-compare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("small.toml"), scenario).unwrap();
        Self(path)
    }

    fn compare(&self, rest: &[&str]) -> Output {
        let (file, out) = (self.0.join("small.toml"), self.out());
        let mut command = Command::new(env!("CARGO_BIN_EXE_spray"));
        command.args(["compare-balancers", "--engine", "sim"]).arg(file).arg("--out").arg(out).args(rest);
        command.output().unwrap()
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.out().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
    let folder = Folder::new("all", &scenario(""));
    let output = folder.compare(&["--seed", "3"]);
    let (said, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{progress}");
    assert!(said.starts_with("small, healthy: 8 flows, dctcp, seed 3"), "{said}");
    assert!(progress.contains("[1/"), "{progress}");
    for kind in BalancerKind::ALL {
        assert_eq!(line(&said, kind.name())[1], "ok");
        let run = format!("healthy-{kind}");
        for file in ["summary.json", "flows.csv", "report.html"] {
            assert!(!folder.read(&format!("{run}/{file}")).is_empty());
        }
        assert!(folder.read("report.html").contains(&format!("{run}/report.html")), "{kind}");
        assert!(folder.read("compare-balancers.md").contains(&format!("| {kind} | ok |")));
    }
    let table = csv(&folder.read("compare-balancers.csv"));
    assert_eq!(table.len(), BalancerKind::ALL.len() + 1);
    let slowdown = table[0].iter().position(|key| key == "slowdown").unwrap();
    let slowdowns: Vec<f64> = table[1..].iter().map(|row| row[slowdown].parse().unwrap()).collect();
    assert!(slowdowns.contains(&1.0) && slowdowns.iter().all(|factor| *factor >= 1.0), "{slowdowns:?}");
    assert!(folder.read("compare-balancers.txt").contains(&said[said.find("balancer").unwrap()..][..40]));
    assert_eq!(folder.read("runs.csv").lines().count(), BalancerKind::ALL.len() + 1);
}

#[test]
fn what_does_not_complete_is_shown_and_stops_nobody() {
    let folder = Folder::new("dead", &scenario(DEAD));
    let output = folder.compare(&["--balancer", "ecmp", "--balancer", "reps", "--seeds", "1..2", "--threads", "1"]);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}\n{error}");
    assert!(said.contains("means over 2 seeds") && said.contains("sd  slowdown"), "{said}");
    let (ecmp, reps) = (line(&said, "ecmp"), line(&said, "reps"));
    assert!(ecmp[1].ends_with("/2") && ecmp[2] == "runs" && ecmp[5] == "-", "{ecmp:?}");
    assert!(reps[1] == "ok" && reps[2].ends_with('*') && reps[4] == "1.000", "{reps:?}");
    assert!(said.contains("incomplete: ecmp, seed "), "{said}");
    assert!(error.contains("of 4 runs failed or did not complete"), "{error}");
    for seed in 1..=2 {
        assert!(folder.read(&format!("seed{seed}/report.html")).contains("/report.html"));
    }
}

#[test]
fn parameters_and_congestion_control_reach_the_runs() {
    let folder = Folder::new("tuned", &scenario(""));
    let mean_us = |rest: &[&str]| {
        let output = folder.compare(&[&["--balancer", "ops"], rest].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let table = csv(&folder.read("compare-balancers.csv"));
        let mean = table[0].iter().position(|key| key == "fct_mean_us").unwrap();
        table[1][mean].parse::<f64>().unwrap()
    };
    let fixed = |bytes: &str| mean_us(&["--cc", "fixed-window", "--param", &format!("window_bytes={bytes}")]);
    let (usual, slow) = (mean_us(&[]), fixed("6kB"));
    assert!(slow > 5.0 * usual && fixed("1MB") < 2.0 * usual, "{usual} and {slow} us");
}

#[test]
fn bad_input_starts_nothing() {
    let folder = Folder::new("refused", &scenario("params.plain.x = 1\n"));
    let output = folder.compare(&[]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("small.toml:12:14: `plain` has no parameters; allowed: "), "{error}");
    assert!(!Path::new(&folder.out()).exists());
}
