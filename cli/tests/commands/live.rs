//! `spray run --live` in a terminal that `script` plays, and without one.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use spray_test_support::{Folder, skip, text};

use super::refused;

const LONG: &str = "name = \"long\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                    [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"64 MiB\"\n[transport]\nbalancer = \"reps\"\n";

#[test]
fn a_view_needs_a_terminal_and_one_run() {
    let folder = Folder::new();
    let scenario = folder.file("long.toml", LONG);
    let run = ["run", &scenario, "--engine", "sim", "--live", "--out", &folder.join("out")];
    refused(&run, &["`--live` needs a terminal", "without a pipe"]);
    refused(&[&run[..], &["--seeds", "1,2,3"]].concat(), &["`--live` shows one run and these are 3", "--balancer"]);
    assert!(!Path::new(&folder.join("out")).exists());
}

/// Keys that are pressed beforehand wait in the terminal: the cable of the third row fails, then the run ends.
#[test]
fn keys_reach_the_run() {
    let folder = Folder::new();
    let (scenario, out) = (folder.file("long.toml", LONG), folder.join("out"));
    let spray = spray_test_support::program("spray").display().to_string();
    let command = format!("stty cols 120 rows 34; {spray} run {scenario} --engine sim --live --out {out}");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut script) = script.spawn() else { return skip("there is no `script` to play a terminal") };
    let mut keys = script.stdin.take().unwrap();
    // The terminal passes on what comes line by line until the view has taken it over.
    let pressing = std::thread::spawn(move || {
        for key in ["j", "j", "f"].into_iter().chain(std::iter::repeat_n("q", 100)) {
            std::thread::sleep(std::time::Duration::from_millis(200));
            if keys.write_all(key.as_bytes()).and_then(|()| keys.flush()).is_err() {
                return;
            }
        }
    });
    let output = script.wait_with_output().unwrap();
    pressing.join().unwrap();
    let screen = text(&output.stdout);
    assert!(screen.contains("leaf0->spine1") && screen.contains("goodput"), "{screen}");
    // The first alternate screen is left again, and the table of results follows on the usual one.
    let (_, after) = screen.rsplit_once("\u{1b}[?1049l").expect("the screen is given back");
    assert!(after.contains("long") || after.contains("healthy"), "{after}");
    let events = std::fs::read_to_string(Path::new(&out).join("healthy-reps-seed1/events.csv")).unwrap();
    assert!(events.contains("failure,leaf0-spine1,silent-drop"), "{events}");
}
