//! The option `-v`.

use std::process::{Command, Output};

use spray_test_support::{Folder, text};

const SMALL: &str = "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                     [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"64 KiB\"\n[transport]\nbalancer = [\"ops\", \"reps\"]\n";

fn run(rest: &[&str]) -> Output {
    let folder = Folder::new();
    let (scenario, out) = (folder.file("small.toml", SMALL), folder.join("out"));
    let mut command = Command::new(spray_test_support::program("spray"));
    command.args(["run", &scenario, "--engine", "sim", "--out", &out]).args(rest).output().unwrap()
}

#[test]
fn verbose_output_lists_steps_and_durations() {
    let output = run(&["-v"]);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let times = |name: &str| stderr.lines().filter(|line| line.trim_end().ends_with(&format!(" ms  {name}"))).count();
    assert_eq!((times("prepare"), times("run")), (2, 2), "{stderr}");
    let silent = run(&[]);
    assert!(!text(&silent.stderr).contains(" ms  "));
}
