//! `spray sweep`: runs over seeds and axes, continued after an interruption, and read by other
//! tools.

use std::path::Path;
use std::process::{Command, Stdio};

use spray_test_support::{Folder, skip, text};

use super::{refused, spray};

/// Two balancers, two values and two seeds: eight runs. All four default balancers would take long.
const SWEEP: &str = "name = \"small\"\nseeds = \"1..2\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
                     [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"256 KiB\"\n[transport]\nbalancer = [\"ops\", \"reps\"]\n\
                     payload_bytes = [1000, 3000]\n[[link_event]]\nlink = \"leaf0->spine1\"\naction = \"rate\"\nfactor = 0.5\nat_us = 1\n";

/// A sweep and the folder for its results.
struct Sweep {
    folder: Folder,
    scenario: String,
}

impl Sweep {
    fn new() -> Self {
        let folder = Folder::new();
        Self { scenario: folder.file("small.toml", SWEEP), folder }
    }

    fn arguments<'a>(&'a self, out: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&["sweep", &self.scenario, "--engine", "sim", "--out", out], rest].concat()
    }

    /// Returns the output of a command that succeeds.
    fn run(&self, out: &str, rest: &[&str]) -> String {
        let output = spray(&self.arguments(out, rest));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    }
}

#[test]
fn without_reports_only_tables_are_written_and_a_later_report_has_no_links() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    let two = ["--set", "transport.balancer=[ecmp,ops]", "--seeds", "1", "--payload", "1000"];
    let printed = sweep.run(&out, &[&two[..], &["--no-report", "--threads", "1"]].concat());
    assert!(printed.contains("results   ") && !printed.contains("overview"), "{printed}");
    let run = Path::new(&out).join("leaf0-spine1-at-50-rate-ecmp-seed1");
    assert!(run.join("flows.csv").exists() && !run.join("report.html").exists());
    assert!(!Path::new(&out).join("report.html").exists());
    assert_eq!(sweep.folder.read("out/runs.csv").lines().count(), 3);
    let printed = sweep.run(&out, &two);
    let page = sweep.folder.read("out/report.html");
    assert!(printed.contains("2 of 2 runs are done already") && !page.contains("/report.html\""), "{printed}");
}

#[test]
fn every_combination_is_run_once_and_added_to_the_tables() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    let printed = sweep.run(&out, &[]);
    assert!(
        printed.contains("condition                   transport.payload_bytes  switch  balancer  runs"),
        "{printed}"
    );
    assert!(printed.contains("/8] payload_bytes ") && printed.contains(" left"), "{printed}");
    let plan = sweep.run(&out, &["--plan"]);
    assert_eq!(plan.lines().filter(|line| line.contains(" done ")).count(), 8, "{plan}");
    let anywhere = spray(&["run", &sweep.scenario, "--engine", "sim", "--plan"]);
    assert!(
        anywhere.status.success() && !text(&anywhere.stdout).contains(" done "),
        "a new folder has no completed runs"
    );
    let again = sweep.run(&out, &[]);
    assert!(again.contains("8 of 8 runs are done already") && !again.contains(" left"), "{again}");
    // Of more seeds, only the new ones are run.
    let more = sweep.run(&out, &["--seeds", "1..3"]);
    assert!(more.contains("8 of 12 runs are done already"), "{more}");
    let csv = sweep.folder.read("out/runs.csv");
    assert_eq!(csv.lines().count(), 13, "{csv}");
    assert!(sweep.folder.read("out/report.html").contains("95 % interval of the mean"));
    // Results of other balancers and switches are added to the same tables, also when only one seed
    // is run.
    sweep.run(&out, &["--balancer", "flowcut", "--seeds", "1"]);
    let table = sweep.run(&out, &["--balancer", "ops", "--switch", "conga", "--seeds", "5"]);
    assert!(table.contains("  conga   ops          1  100 %"), "{table}");
    let csv = sweep.folder.read("out/runs.csv");
    assert_eq!(csv.lines().count(), 1 + 12 + 2 + 2, "{csv}");
    assert_eq!(csv.lines().filter(|line| line.contains(",ops,dctcp,conga,5,")).count(), 2, "{csv}");
    let json: serde_json::Value = serde_json::from_str(&sweep.folder.read("out/sweep.json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 4 + 2 + 2);
    // Other settings are rejected, under other run names and under the same.
    let refusal = ["has results of other settings, see its scenario.toml", "allowed: another folder with --out"];
    refused(&sweep.arguments(&out, &["--set", "transport.evs=64", "--seeds", "9"]), &refusal);
    let refusal = ["which would be overwritten; allowed: another folder with --out", "the results of other settings"];
    refused(&sweep.arguments(&out, &["--set", "transport.evs=64"]), &refusal);
    let refusal = [
        "has results of the scenario `small` with the axes transport.payload_bytes; allowed: another folder with --out",
    ];
    refused(&sweep.arguments(&out, &["--payload", "2000"]), &refusal);
    refused(&sweep.arguments(&out, &["--set", "name=other"]), &refusal);
}

#[test]
fn parts_are_disjoint_and_a_complete_sweep_adds_the_missing_runs() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    let first = sweep.run(&out, &["--part", "1/3"]);
    assert!(first.contains("part 1 of 3: 3 of its 3 runs are done, of 8 in all"), "{first}");
    sweep.run(&out, &["--part", "3/3"]);
    assert!(sweep.run(&out, &[]).contains("5 of 8 runs are done already"));
    refused(&sweep.arguments(&out, &["--part", "4/3"]), &["expected I/N with I from 1 to N"]);
}

/// The scenario in the folder of a run reproduces the run.
#[test]
fn a_run_can_be_repeated_from_its_folder() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    sweep.run(&out, &["--set", "queue.limit=40 packets", "--csv"]);
    let run = "leaf0-spine1-at-50-rate-payload_bytes=3000-reps-seed2";
    let scenario = format!("{out}/{run}/scenario.toml");
    let again = sweep.folder.join("again");
    let output = spray(&["run", &scenario, "--engine", "sim", "--csv", "--out", &again]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let [first, second] =
        ["flows", "ports", "events", "goodput", "queues"].iter().fold(["", ""].map(String::from), |[a, b], table| {
            let read = |out: &str, run: &str| std::fs::read_to_string(format!("{out}/{run}/{table}.csv")).unwrap();
            // A single run has no axis, so its column is omitted.
            let first = read(&out, run).replace(",transport.payload_bytes,", ",").replace(",2,3000,", ",2,");
            [a + &first, b + &read(&again, "leaf0-spine1-at-50-rate-reps-seed2")]
        });
    assert!(first.contains(",failure,leaf0->spine1,rate,0.500,"), "{first}");
    assert_eq!(first, second);
}

#[test]
fn a_signal_keeps_completed_runs_and_prints_how_to_continue() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    for signal in ["INT", "TERM", "KILL"] {
        // The run lasts long enough for the signal to arrive before its end.
        let arguments = sweep.arguments(&out, &["--threads", "1", "--set", "workload.bytes=16MiB", "--seeds", "1..9"]);
        let mut child = Command::new(spray_test_support::program("spray"));
        let mut child = child.args(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let done = || {
            std::fs::read_dir(&out)
                .into_iter()
                .flatten()
                .filter(|entry| entry.as_ref().unwrap().path().join("run.json").is_file())
        };
        let before = done().count();
        while done().count() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert!(done().count() > before, "{stderr}");
        if signal != "KILL" {
            assert_eq!(output.status.code(), Some(130), "{stderr}");
            assert!(
                stderr.contains(" of 36 runs are done and stay in ") && stderr.contains("; to continue:\n  "),
                "{stderr}"
            );
            assert!(stderr.contains("--set workload.bytes=16MiB --seeds 1..9"), "{stderr}");
        }
        // Incomplete files have a suffix; all others are complete.
        for run in std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()) {
            let is_part = run.to_string_lossy().ends_with(".part");
            assert!(
                is_part || run.join("run.json").is_file() && run.join("queues.parquet").is_file(),
                "{}",
                run.display()
            );
        }
    }
}

#[test]
fn invalid_axes_and_too_many_runs_are_rejected_with_their_position() {
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    let with =
        |set: &'static str| sweep.arguments(&out, &["--set", set]).into_iter().map(String::from).collect::<Vec<_>>();
    for (set, error) in [
        ("transport.payload_bytes=[1000, 10]", "`payload_bytes` is 10; allowed: a whole number from 64 to 65000"),
        ("transport.payload_bytes=[64, 64]", "the list has 64 twice; allowed: each value once"),
        ("seeds=0..5000", "there are 20004 runs; allowed: 1 to 10000"),
    ] {
        let arguments = with(set);
        refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), &[error]);
    }
    assert!(!Path::new(&out).exists());
}

/// One line of Polars loads a whole sweep.
#[test]
fn polars_reads_a_whole_sweep() {
    let has_polars =
        Command::new("python3").args(["-c", "import polars"]).output().is_ok_and(|output| output.status.success());
    if !has_polars {
        skip("python3 with polars is not installed");
        return;
    }
    let sweep = Sweep::new();
    let out = sweep.folder.join("out");
    sweep.run(&out, &[]);
    let script = "import polars, sys\n\
                  flows = polars.read_parquet(sys.argv[1] + '/**/flows.parquet')\n\
                  csv = polars.read_csv(sys.argv[1] + '/**/flows.csv')\n\
                  assert flows.shape == csv.shape == (64, 28), (flows.shape, csv.shape)\n\
                  assert flows['transport.payload_bytes'].unique().sort().to_list() == [1000, 3000]\n\
                  assert (flows['fct_us'] - csv['fct_us']).abs().max() < 0.0006\n\
                  for table in ['ports', 'events', 'goodput', 'queues']:\n\
                  \x20   assert len(polars.read_parquet(f'{sys.argv[1]}/**/{table}.parquet')) > 0, table\n\
                  assert len(polars.read_parquet(sys.argv[1] + '/runs.parquet')) == 8\n";
    let output = Command::new("python3").args(["-c", script, &out]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
