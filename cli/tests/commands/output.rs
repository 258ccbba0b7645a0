//! Options that all commands have, and commands about the command line.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use spray_test_support::{Folder, text};

use super::{refused, spray};

const SCENARIO: &str = "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                        [workload]\nkind = \"tornado\"\nbytes = \"64 kB\"\n[transport]\nbalancer = [\"ops\", \"reps\"]\n";

fn piped(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(spray_test_support::program("spray"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Fails if the command rejects its arguments and exits without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the fields that a section of docs/json.md lists.
pub(super) fn documented(section: &str) -> BTreeSet<String> {
    let file = spray_test_support::root().join("docs/json.md");
    let page = std::fs::read_to_string(file).unwrap();
    let from = page.find(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}")) + 1;
    let section = page[from..].split("\n## ").next().unwrap();
    let names =
        |row: &str| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
    section.lines().filter(|line| line.starts_with("| `")).flat_map(names).collect()
}

pub(super) fn fields(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_json_has_the_fields_that_the_page_lists() {
    let folder = Folder::new();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let (file, out) = (file.to_str().unwrap(), folder.path().join("out"));
    let out = out.to_str().unwrap();
    let run = |more: &[&str]| json(&spray(&[&["run", file, "--engine", "sim", "--out", out, "--json"], more].concat()));
    let results = run(&[]);
    assert_eq!(fields(&results), documented("Results of runs"));
    assert_eq!(results["runs"].as_array().unwrap().len(), 2);
    let summary = std::fs::read(Path::new(out).join("healthy-reps-seed1/summary.json")).unwrap();
    assert_eq!(results["runs"][1], serde_json::from_slice::<Value>(&summary).unwrap());
    assert_eq!(fields(&run(&["--plan"])), documented("Plan"));
    assert_eq!(fields(&run(&["--part", "1/2"])), documented("Part"));
    let figures = ["figures", "--figure", "flowcut/4", "--out", out, "--json"];
    assert_eq!(fields(&json(&spray(&figures))), documented("Papers"));
    let explained = json(&spray(&["--json", "explain", "reps"]));
    assert_eq!(explained[0]["settings"][1]["name"], "buffer");
    assert!(explained[0]["specification"].as_str().unwrap().contains("REPS-1"));
    assert!(json(&spray(&["explain", "--json"]))["balancers"].as_array().unwrap().len() > 15);
    let schema: Value = serde_json::from_slice(&spray(&["explain", "schema"]).stdout).unwrap();
    assert!(schema["properties"]["topology"].is_object() && schema["definitions"].is_object());
    for (document, part) in [("settings", "`[transport.reps]`"), ("results", "| `fct_mean_us` | us | less |")] {
        assert!(text(&spray(&["explain", document]).stdout).contains(part), "{document}");
    }
}

/// On a full disk every command that prints writes one message and exits with code 1.
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::new();
    let file = folder.file("s.toml", SCENARIO);
    let full = |arguments: &[&str]| {
        let out = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut spray = Command::new(spray_test_support::program("spray"));
        let output = spray.args(arguments).stdout(out).output().unwrap();
        let remarks =
            text(&output.stderr).lines().filter(|line| line.contains("cannot write to standard output")).count();
        assert_eq!((output.status.code(), remarks), (Some(1), 1), "{arguments:?}: {}", text(&output.stderr));
    };
    let out = |name: &str| folder.join(name);
    full(&["--help"]);
    full(&["run", "--help"]);
    full(&["--version"]);
    full(&["init", "-"]);
    full(&["explain"]);
    full(&["explain", "reps"]);
    full(&["completions", "bash"]);
    full(&["run", &file, "--engine", "sim", "--out", &out("run")]);
    full(&["run", &file, "--engine", "sim", "--json", "--out", &out("run")]);
    full(&["run", &file, "--engine", "sim", "--plan", "--out", &out("run")]);
    full(&["sim", "--topology", "leaf-spine:2x2x2", "--matrix", "permutation:64kB", "--out", &out("sim")]);
    full(&["trace", &file, "--engine", "sim", "--balancer", "ops", "--out", "-"]);
    #[cfg(feature = "xdp")]
    full(&["doctor"]);
    assert!(folder.path().join("run/runs.csv").is_file(), "the runs are completed nevertheless");
}

/// Both addresses are on this machine, so the kernel answers.
#[cfg(feature = "xdp")]
#[test]
fn paths_have_the_fields_that_the_page_lists() {
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let [from, address] = [77, 78].map(|last| format!("127.{}.{low}.{last}", 64 | high & 31));
    let found = json(&spray(&["paths", &address, "--from", &from, "--ports", "49152-49155", "--json", "-q"]));
    assert_eq!(fields(&found), documented("Paths"));
    assert_eq!((&found["answered_by"], &found["findings"][0]["kind"]), (&"kernel".into(), &"no-endpoint".into()));
    refused(&["paths", &address, "--ports", "9-8"], &["expected two ports"]);
    refused(&["paths", &address, "--from", &address], &["this machine's own"]);
    refused(&["paths", &address, "--from", "::1"], &["not of the same IP version"]);
}

/// The commands for a deployed fabric have the fields that docs/json.md lists.
#[cfg(feature = "xdp")]
#[test]
fn deployed_fabrics_have_the_fields_that_the_page_lists() {
    if !spray_test_support::has_root() {
        return;
    }
    let folder = Folder::new();
    let (file, name) = (folder.file("s.toml", SCENARIO), format!("fields-{}", std::process::id()));
    assert_eq!(fields(&json(&spray(&["up", &file, "--name", &name, "--json"]))), documented("Deployment"));
    let links = json(&spray(&["link", "leaf0->spine1", "rate=50%", "--name", &name, "--json"]));
    assert_eq!(fields(&links), documented("Links"));
    assert_eq!(links["links"][0]["state"], "rate=50%");
    let removed = json(&spray(&["down", &name, "--json"]));
    assert_eq!((removed["name"].as_str(), removed["removed"].as_array().map(Vec::len)), (Some(&*name), Some(5)));
    refused(&["down", &name], &["spray up"]);
}

#[test]
fn quiet_prints_no_progress_and_json_leaves_errors_on_standard_error() {
    let run = ["run", "-", "--engine", "sim", "--out"];
    let folder = Folder::new();
    let out = folder.path().to_str().unwrap();
    let loud = piped(&[&run[..], &[out]].concat(), SCENARIO);
    assert!(loud.status.success() && !loud.stderr.is_empty());
    let quiet = piped(&[&run[..], &[out, "-q"]].concat(), SCENARIO);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    assert!(text(&quiet.stdout).contains("reps"));
    refused(&["run", "no-such-file.toml", "-q", "--json"], &["no-such-file.toml"]);
}

#[test]
fn a_scenario_is_read_from_standard_input_and_its_errors_are_located() {
    let wrong = SCENARIO.replace("spines = 2", "spines = \"two\"");
    let output = piped(&["run", "-", "--engine", "sim"], &wrong);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("-:5:10") && message.contains("spines"), "{message}");
}

#[test]
fn a_first_scenario_runs_and_overwrites_nothing() {
    let folder = Folder::new();
    let file = folder.path().join("first.toml");
    let file = file.to_str().unwrap();
    let made = spray(&["init", file]);
    assert!(made.status.success() && text(&made.stdout).contains("--engine sim"), "{}", text(&made.stderr));
    let out = folder.path().join("out");
    let run = ["run", file, "--engine", "sim", "--seed", "1", "--out", out.to_str().unwrap(), "--json"];
    assert_eq!(json(&spray(&run))["runs"].as_array().unwrap().len(), 3);
    refused(&["init", file], &[file, "allowed"]);
    assert_eq!(spray(&["init", "-"]).stdout, std::fs::read(file).unwrap());
}

#[test]
fn explanations_are_found_by_any_name_and_similar_names_are_suggested() {
    let explained = |name: &str| text(&spray(&["explain", name]).stdout).clone();
    for (name, parts) in [
        ("arcane", ["reps: a balancer", "REPS-1"]),
        ("eqds", ["eqds: a congestion control", "pull_bytes"]),
        ("nscc-eqds", ["in [transport.nscc]", "in [transport.eqds]"]),
        ("conga", ["conga: a switch scheme", "--switch conga"]),
        ("queue.mark_min", ["a setting", "default: \"20 %\""]),
        ("topology", ["leaves", "a whole number from 1 to 1024"]),
        ("wire", ["a specification", "# "]),
    ] {
        for part in parts {
            assert!(explained(name).contains(part), "{name} does not print `{part}`: {}", explained(name));
        }
    }
    refused(&["explain", "flowcutt"], &["flowcutt", "did you mean `flowcut`?"]);
    refused(&["figures", "--figure", "rep/7"], &["did you mean `reps/7`?"]);
}

#[test]
fn shells_accept_the_completions_and_every_command_has_a_page() {
    let script = spray(&["completions", "bash"]).stdout;
    assert!(text(&script).contains("--every-balancer") && text(&script).contains("--ack-every"));
    let mut shell = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(shell.wait().unwrap().success());
    let folder = Folder::new();
    assert!(spray(&["man", folder.path().to_str().unwrap()]).status.success());
    for page in ["spray.1", "spray-run.1", "spray-bench-sim.1", "spray-explain.1"] {
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH DESCRIPTION"), "{page}");
    }
}

/// Several runs may start within a second, as from a script.
#[test]
fn runs_without_out_have_separate_folders() {
    let folder = Folder::new();
    let file = folder.file("s.toml", SCENARIO);
    for _ in 0..3 {
        let mut spray = Command::new(spray_test_support::program("spray"));
        let output = spray.args(["run", &file, "--engine", "sim", "-q"]).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path().join("results")).unwrap().count(), 3);
}
