//! `spray sim`, and `spray run` on the simulator.

use std::path::Path;

use spray_test_support::{Folder, root, text};

use super::{refused, spray};

const TOPO: &str = "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\n\
                    Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 2\nDownlink_Latency_ns 1000\n";
const MATRIX: &str =
    "Nodes 8\nConnections 2\n0->4 id 1 start 0 size 200000 prio 1\n1->5 id 2 start 0 size 200000 prio 2\n";

#[test]
fn a_sweep_over_seeds_and_balancers_writes_files_and_a_table() {
    let folder = Folder::new();
    let (topo, matrix) = (folder.file("f.topo", TOPO), folder.file("f.cm", MATRIX));
    let run = |out: &str, threads: &str| {
        let out = folder.join(out);
        let rest = ["--seeds", "1..3", "--threads", threads, "--out", &out, "--fail-cables", "5", "--evs", "64"];
        let first = ["sim", "--topology", &topo, "--matrix", &matrix, "--balancer", "reps", "--balancer", "ops"];
        let rest = [&rest[..], &["--link-rate", "leaf0->spine0=50%", "--fail", "leaf0->spine1@1..9"]].concat();
        spray(&[&first[..], &rest].concat())
    };
    let output = run("a", "1");
    let (stdout, warned) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{warned}");
    assert_eq!(warned.matches("priorities are ignored").count(), 1, "{warned}");
    assert!(
        stdout.contains("mean us (95 %)")
            && stdout.contains(" flows rests on the slowest")
            && stdout.contains("packet-hops"),
        "{stdout}"
    );
    assert!(run("b", "3").status.success());
    for balancer in ["reps", "ops"] {
        for seed in 1..=3 {
            let read = |out: &str, file: &str| {
                let run = |path: &Path| path.to_string_lossy().ends_with(&format!("-{balancer}-seed{seed}"));
                let mut runs = std::fs::read_dir(folder.path().join(out)).unwrap().map(|entry| entry.unwrap().path());
                std::fs::read(runs.find(|path| run(path)).unwrap().join(file)).unwrap()
            };
            for file in ["flows.csv", "ports.csv", "events.csv"] {
                assert!(read("a", file) == read("b", file), "{balancer} {seed} {file}");
            }
            let summary: serde_json::Value = serde_json::from_slice(&read("a", "summary.json")).unwrap();
            assert_eq!((&summary["engine"], &summary["seed"]), (&"sim".into(), &seed.into()));
            for key in ["packet_hops", "packet_hops_per_s", "peak_rss_mb"] {
                assert!(summary[key].as_f64().unwrap() > 0.0, "{key}");
            }
        }
    }
    let csv = folder.read("a/runs.csv");
    assert_eq!(csv.lines().count(), 7, "{csv}");
}

#[test]
fn a_scenario_of_the_testbed_runs_on_the_simulator() {
    let folder = Folder::new();
    let scenario = root().join("tests/scenarios/demo-slow-uplink.toml").display().to_string();
    let out = folder.join("");
    let output = spray(&["run", &scenario, "--engine", "sim", "--balancer", "ops", "--seed", "4", "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(folder.path().join("report.html").is_file());
    if cfg!(feature = "xdp") {
        refused(&["run", &scenario, "--threads", "2"], &["requires `--engine sim`"]);
    }
}

#[test]
fn options_of_queues_marking_windows_and_congestion_control_are_applied() {
    let folder = Folder::new();
    let counted = |name: &str, rest: &[&str]| {
        let out = folder.join(name);
        let first = ["sim", "--topology", "leaf-spine:4x4x8", "--matrix", "incast:8:256KiB", "--out", &out];
        let output = spray(&[&first[..], rest].concat());
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let run = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
        let summary = std::fs::read(run.unwrap().join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        ["ecn_marks", "trims", "drops_queue"].map(|key| summary[key].as_u64().unwrap())
    };
    let usual = counted("usual", &[]);
    assert!(usual[0] > 0 && usual[1] > 0 && usual[2] == 0, "{usual:?}");
    assert_eq!(counted("unmarked", &["--no-marking"])[0], 0);
    assert_eq!(counted("long", &["--queue", "95MB", "--no-marking"]), [0, 0, 0]);
    let short = counted("short", &["--queue", "20000", "--no-trim"]);
    assert!(short[1] == 0 && short[2] > usual[1], "{short:?}");
    // With a window of one packet per flow, queues do not fill.
    let fixed = ["--cc", "fixed-window", "--set", "transport.fixed-window.window_bytes=4150"];
    assert_eq!(counted("fixed", &fixed)[1..], [0, 0]);
}

//= docs/specs/conweave.md#CWV-21 supported engines and fabrics
//= docs/specs/switch.md#SW-22 the largest packet
//= docs/specs/erasure.md#ERA-6 an ideal code
#[test]
fn a_scenario_with_long_queues_requires_the_simulator() {
    let folder = Folder::new();
    let base = std::fs::read_to_string(root().join("tests/scenarios/demo-healthy.toml")).unwrap();
    let base = base.replace("demo-healthy", "long");
    assert!(!base.contains("[queue]"));
    let scenario = folder.file("long.toml", format!("{base}\n[queue]\nlimit = \"95 MB\"\n"));
    let out = folder.join("out");
    let output = spray(&["run", &scenario, "--engine", "sim", "--balancer", "ops", "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let error = "`limit` in [queue] is 95000000 bytes at h0->leaf0; allowed: at most 16711680, or `--engine sim`";
    if cfg!(feature = "xdp") {
        let out = folder.join("xdp");
        refused(&["run", &scenario, "--balancer", "ops", "--out", &out], &[error]);
        for (set, error) in [
            ("queue.mark_at=departure", "`mark_at` in [queue] is `departure`"),
            ("queue.shared_buffer=12 MB", "`shared_buffer` in [queue] is set"),
            ("queue.pfc=true", "`pfc` in [queue] is on"),
            ("switch.scheme=conweave", "`scheme` in [switch] is `conweave`: an XDP program can neither hold a frame"),
            ("transport.erasure=true", "`erasure` in [transport] is an ideal code"),
            ("transport.payload_bytes=3383", "`payload_bytes` in [transport] is 3383; allowed: at most 3382 here"),
        ] {
            refused(&["run", &scenario, "--set", set, "--out", &out], &[error, "--engine sim"]);
        }
    }
}

/// Five switches in a ring; each host sends to the switch two hops further.
//= docs/specs/pfc.md#PFC-7 deadlock
#[test]
fn a_deadlock_of_a_lossless_network_is_reported() {
    let folder = Folder::new();
    let link = |a: &str, b: &str| format!("[[topology.link]]\na = \"{a}\"\nb = \"{b}\"\n");
    let ends = |index: usize| [format!("s{}", index % 5), format!("s{}", (index + 1) % 5)];
    let links: String =
        (0..5).map(|at| link(&format!("h{at}"), &ends(at)[0]) + &link(&ends(at)[0], &ends(at)[1])).collect();
    let flow =
        |at: usize| format!("[[workload.flow]]\nsrc = \"h{at}\"\ndst = \"h{}\"\nbytes = \"4 MiB\"\n", (at + 2) % 5);
    let names = |letter: char| format!("{:?}", (0..5).map(|at| format!("{letter}{at}")).collect::<Vec<_>>());
    let circle = format!(
        "name = \"circle\"\ntime_limit_us = 3000\n[topology]\nkind = \"graph\"\nhosts = {}\nswitches = {}\n{links}[workload]\nkind = \"flows\"\n{}\
         [queue]\npfc = true\nlimit = \"10 packets\"\nmarking = false\n\
         [transport]\ncc = \"fixed-rate\"\nrto_min_us = 100000\n",
        names('h'),
        names('s'),
        (0..5).map(flow).collect::<String>(),
    );
    let scenario = folder.file("circle.toml", circle);
    let out = folder.join("out");
    let output = spray(&["run", &scenario, "--engine", "sim", "--balancer", "ecmp", "--out", &out]);
    let stderr = text(&output.stderr);
    let circle = "links wait for each other for ever: s0->s1 s1->s2 s2->s3 s3->s4 s4->s0\n";
    assert!(stderr.contains(circle), "{stderr}");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
}

#[test]
fn counts_and_patterns_replace_files() {
    for topology in ["leaf-spine:2x2x2@100", "fat-tree:2x2x2x2x2", "dragonfly:3x2x2x1"] {
        for matrix in ["permutation:64KiB", "tornado:64kB", "incast:3:10000", "cross-leaf-permutation:1"] {
            let folder = Folder::new();
            let out = folder.join("");
            let output = spray(&["sim", "--topology", topology, "--matrix", matrix, "--out", &out]);
            assert!(output.status.success(), "{topology} {matrix}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn every_example_of_a_failure_file_runs_and_shows_in_the_results() {
    let folder = Folder::new();
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("tests/failures")).unwrap() {
        let file = entry.unwrap().path();
        let out = folder.path().join(file.file_stem().unwrap());
        let (file, shown) = (file.display().to_string(), out.display().to_string());
        let first = ["sim", "--topology", "leaf-spine:4x4x4", "--matrix", "permutation:512KiB", "--seed", "2"];
        let output = spray(&[&first[..], &["--failures", &file, "--out", &shown]].concat());
        assert!(output.status.success(), "{file}: {}", text(&output.stderr));
        let run =
            std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        let events = std::fs::read_to_string(run.join("events.csv")).unwrap();
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
        let drops = summary["drops_link"].as_u64().unwrap() + summary["drops_random"].as_u64().unwrap();
        assert!(events.contains(",failure,") && drops > 0, "{file}: {drops} drops\n{events}");
        files += 1;
    }
    assert_eq!(files, 5);
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    const SIGPIPE: i32 = 13;
    let folder = Folder::new();
    let mut command = Command::new(spray_test_support::program("spray"));
    command.args(["sim", "--topology", "leaf-spine:2x2x2", "--matrix", "tornado:1", "--out", &folder.join("")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.signal(), Some(SIGPIPE), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn bad_input_is_refused_with_line_and_column() {
    let folder = Folder::new();
    let (topo, matrix) = (folder.file("f.topo", TOPO), folder.file("f.cm", MATRIX));
    let bad_topo = folder.file("bad.topo", TOPO.replace("Podsize 8", "Podsize 8\nColour 3"));
    let bad_matrix = folder.file("bad.cm", MATRIX.replace("1->5 id 2 start 0", "1->5 id 2 start soon"));
    let bad_failures = folder.file("bad.txt", "Cable-Fail: ON\nCable-Fail-Period: never\n");
    let sim = |topology: &str, matrix: &str, rest: &[&str], what: &str| {
        refused(&[&["sim", "--topology", topology, "--matrix", matrix], rest].concat(), &[what]);
    };
    sim(&bad_topo, &matrix, &[], "bad.topo:4:1: unknown key `colour`");
    sim(&topo, &bad_matrix, &[], "bad.cm:4:17: `start` is soon; allowed: a whole number");
    sim(&topo, &matrix, &["--failures", &bad_failures], "bad.txt:2:20: `Cable-Fail-Period` is never; allowed");
    sim(&topo, &matrix, &["--failures", "/nowhere"], "--failures /nowhere: `/nowhere` cannot be read");
    sim(
        &topo,
        &matrix,
        &["--link-rate", "leaf0->spine9=50%"],
        "there is no link `leaf0->spine9` (did you mean `leaf0->spine",
    );
    sim(&topo, &matrix, &["--fail", "leaf9-spine0@1..2"], "there is no link `leaf9-spine0`");
    sim(
        &topo,
        &matrix,
        &["--fail", "leaf0-spine0@2..1"],
        "--fail leaf0-spine0@2..1: `until_us` is not after `at_us`; allowed: later times",
    );
    sim(&topo, &matrix, &["--fail-cables", "100"], "0.001 to 99.999");
    sim(&topo, &matrix, &["--seeds", "3..1"], "the smaller end first");
    sim(
        &topo,
        &matrix,
        &["--balancer", "rpes"],
        "--balancer rpes: `balancer` is rpes (did you mean `reps`?); allowed: one or a list of \"ecmp\", ",
    );
    sim(&topo, &matrix, &["--set", "transport.reps.rule=best"], "transport.reps.rule=best: `rule` is best; allowed: ");
    sim(
        &topo,
        &matrix,
        &["--set", "link_event.3.at_us=5"],
        "--set link_event.3.at_us=5: `link_event` has 0 entries; allowed: `link_event.+`, which adds one",
    );
    sim(
        &topo,
        &matrix,
        &["--fail", "leaf0-spine0@2..", "--set", "link_event.3.at_us=5"],
        "`link_event` has 1 entries; allowed: 0 to 0, or `link_event.+`, which adds one",
    );
    sim(&topo, &matrix, &["--cc", "bbr"], "--cc bbr: `cc` is bbr; allowed: \"dctcp\", ");
    sim(&topo, &matrix, &["--evs", "65536"], "65535");
    let window = "transport.fixed-window.window_bytes";
    sim(
        &topo,
        &matrix,
        &["--set", &format!("{window}=x")],
        &format!("--set {window}=x: `window_bytes` is x; allowed: "),
    );
    sim(
        &topo,
        &matrix,
        &["--set", "transport.window_bytes=1"],
        "unknown field `window_bytes` in [transport] (did you mean `window_packets`?); allowed: ",
    );
    for (bytes, what) in [
        ("4GiB", "4 GiB or more"),
        ("-1", "unexpected"),
        ("many", "--queue many: `limit` is many; allowed: \"120 kB\", "),
        ("1.5", "`limit` is 1.5; allowed: "),
    ] {
        sim(&topo, &matrix, &["--queue", bytes], what);
    }
    refused(&["sim", "--topology", &topo], &["needs --matrix"]);
    refused(&["sim", "--matrix", &matrix], &["needs --topology"]);
    refused(&["sim"], &["needs --topology and --matrix"]);
    sim(&topo, &matrix, &["--no-marking", "1"], "unexpected argument '1'");
    sim("ring:4", &matrix, &[], "allowed: a .topo file");
    sim("leaf-spine:2x2", &matrix, &[], "leaf-spine:LEAVESxSPINESxHOSTS");
    sim("leaf-spine:2x0x2", &matrix, &[], "`spines` is 0; allowed: a whole number from 1 to 1024");
    sim("leaf-spine:1000x2x1000", &matrix, &[], "1000000 hosts; allowed: at most 65536");
    sim("fat-tree:2x2x2x3x2", &matrix, &[], "multiples of");
    sim("dragonfly:6x2x1x1", &matrix, &[], "allowed: multiples of 5");
    sim(&topo, "incast:8:100", &[], "`senders` is 8; allowed: at most the 7 other hosts");
    sim(&topo, "storm:8", &[], "allowed: a .cm file");
    sim("leaf-spine:1x1x4", "cross-leaf-permutation:9", &[], "more than half");
    let lossless = root().join("tests/scenarios/lossless.toml").display().to_string();
    let out = folder.join("out");
    refused(&["run", "/nowhere.toml", "--engine", "sim"], &["/nowhere.toml: no such file; `spray init"]);
    if cfg!(feature = "xdp") {
        refused(&["run", &lossless, "--out", &out], &["use `--engine sim`"]);
        refused(&["compare", "/nowhere.toml"], &["/nowhere.toml: no such file; `spray init"]);
    }
}
