//! `--pcap` and `spray trace` on the simulator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spray_test_support::{Folder, WRONG, text, tshark};

use super::{refused, spray};

const SMALL: &str = "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n\
                     [workload]\nkind = \"incast\"\nsenders = 4\nbytes = \"256 KiB\"\n[transport]\nbalancer = \"ops\"\n";
const FAILURES: &str = "[[link_event]]\nlink = \"leaf1->spine1\"\naction = \"loss\"\nprobability = 0.05\n\
                        [[link_event]]\nlink = \"leaf1->spine2\"\nat_us = 5\nuntil_us = 30\naction = \"silent-drop\"\n";

struct Run {
    folder: Folder,
    scenario: String,
}

impl Run {
    fn new(scenario: &str) -> Self {
        let folder = Folder::new();
        let scenario = folder.file("small.toml", scenario);
        Self { folder, scenario }
    }

    /// Runs the scenario; returns the command's output and its summary.
    fn run(&self, out: &str, rest: &[&str]) -> (String, serde_json::Value) {
        let out = self.folder.join(out);
        let output = spray(&[&["run", &self.scenario, "--engine", "sim", "--out", &out], rest].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary = std::fs::read(only_folder(Path::new(&out)).join("summary.json")).unwrap();
        (text(&output.stderr), serde_json::from_slice(&summary).unwrap())
    }
}

/// Returns the only folder in `dir`.
fn only_folder(dir: &Path) -> PathBuf {
    let mut folders = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let folder = folders.next().unwrap();
    assert_eq!(folders.next(), None);
    folder
}

/// The fields that are compared.
const FIELDS: [&str; 7] = [
    "frame.comment",
    "frame.time_epoch",
    "frame.interface_name",
    "frame.packet_flags_direction",
    "spraynic.kind",
    "spraynic.flags.trailer",
    "spraynic.flags.retransmit",
];

/// Returns the number of comments per cause of a drop, and of marks and trims.
fn causes(rows: &[Vec<String>]) -> BTreeMap<&str, u64> {
    let mut causes = BTreeMap::new();
    for part in rows.iter().flat_map(|row| row[0].split("; ")).filter(|part| !part.ends_with(" waited")) {
        *causes.entry(part).or_default() += 1;
    }
    causes
}

#[test]
fn a_capture_of_the_simulator_agrees_with_the_results() {
    for (name, rest, departing) in [("trimmed", "", false), ("dropped", "[queue]\ntrimming = false\n", true)] {
        let run = Run::new(&format!("{SMALL}{rest}{FAILURES}"));
        let pcap = run.folder.join("pcap");
        let mut arguments = vec!["--pcap", &pcap];
        if departing {
            arguments.extend(["--set", "queue.mark_at=departure"]);
        }
        let (_, summary) = run.run("out", &arguments);
        let file = only_folder(Path::new(&pcap)).join("frames.pcapng");
        let Some(rows) = tshark(&file, "", &FIELDS) else { return };
        let causes = causes(&rows);
        let count = |cause: &str| causes.get(cause).copied().unwrap_or(0);
        let total = |key: &str| summary[key].as_u64().unwrap();
        assert_eq!(count("dropped: queue full"), total("drops_queue"), "{name}");
        assert_eq!(count("dropped: link fails silently") + count("dropped: link down"), total("drops_link"), "{name}");
        assert_eq!(count("dropped: random loss"), total("drops_random"), "{name}");
        assert_eq!(count("trimmed: queue full"), total("trims"), "{name}");
        assert_eq!(count("marked"), total("ecn_marks"), "{name}");
        assert!(total("drops_link") > 0 && total("drops_random") > 0 && total("ecn_marks") > 0, "{name}: {summary}");
        assert!(if departing { total("drops_queue") > 0 } else { total("trims") > 0 }, "{name}: {summary}");
        assert_eq!(tshark(&file, WRONG, &["frame.number"]), Some(vec![]), "{name}");
        // Data packets, as captured at the interfaces of the hosts that send them.
        let is_sent = |row: &&Vec<String>| row[2].starts_with('h') && row[3..6] == ["0x00000002", "1", "0"];
        let sent: Vec<_> = rows.iter().filter(is_sent).collect();
        let again = sent.iter().filter(|row| row[6] == "1").count() as u64;
        assert_eq!((sent.len() as u64, again), (total("packets_sent"), total("retransmits")), "{name}");
        assert_eq!(sent[0][1], "0.000000000", "the scenario starts at 0");
        assert!(rows.is_sorted_by_key(|row| &row[1]), "{name}");
    }
}

/// A partitioned run gives the same results with and without a capture on any number of threads,
/// and so the same capture.
#[test]
fn captures_do_not_change_results_or_depend_on_the_number_of_threads() {
    let text = SMALL.replace("leaves = 2", "leaves = 16").replace("hosts_per_leaf = 4", "hosts_per_leaf = 8");
    let run =
        Run::new(&text.replace("256 KiB", "40000").replace("kind = \"incast\"\nsenders = 4", "kind = \"permutation\""));
    let flows = |out: &str| std::fs::read(only_folder(&run.folder.path().join(out)).join("flows.csv")).unwrap();
    run.run("plain", &[]);
    let captures = ["1", "2"].map(|threads| {
        let pcap = run.folder.join(format!("pcap{threads}"));
        run.run(threads, &["--threads", threads, "--pcap", &pcap]);
        assert!(flows(threads) == flows("plain"));
        std::fs::read(only_folder(Path::new(&pcap)).join("frames.pcapng")).unwrap()
    });
    assert!(captures[0] == captures[1] && captures[0].len() > 1_000_000, "{}", captures[0].len());
}

#[test]
fn a_capture_has_a_limit_and_never_overwrites_a_file() {
    let run = Run::new(SMALL);
    let pcap = run.folder.join("pcap");
    let (stderr, _) = run.run("out", &["--pcap", &pcap, "--pcap-frames", "100"]);
    assert!(stderr.contains("frames.pcapng: the first 100 frames; "), "{stderr}");
    let (scenario, out) = (run.scenario.as_str(), run.folder.join("other"));
    let again = ["run", scenario, "--engine", "sim", "--out", &out, "--pcap", &pcap];
    refused(&again, &["frames.pcapng is there already", "another folder with --pcap"]);
    assert!(!Path::new(&out).exists());
    let (done, new) = (run.folder.join("out"), run.folder.join("new"));
    refused(
        &["run", scenario, "--engine", "sim", "--out", &done, "--pcap", &new],
        &["is done already and would leave no capture", "another folder with --out"],
    );
    refused(
        &["run", scenario, "--engine", "sim", "--out", &out, "--pcap", scenario],
        &["--pcap: cannot make the folder", "small.toml"],
    );
    refused(&["run", scenario, "--pcap", &new, "--pcap-frames", "0"], &["--pcap-frames", "1.."]);
    assert!(!Path::new(&new).exists() && !Path::new(&out).exists());
}

#[test]
fn a_trace_has_all_events_of_every_packet_of_its_flows() {
    let run = Run::new(&format!("{SMALL}{FAILURES}"));
    let (_, summary) = run.run("out", &[]);
    let out = run.folder.join("life.jsonl");
    let trace = |rest: &[&str]| spray(&[&["trace", &run.scenario, "--engine", "sim"], rest].concat());
    let output = trace(&["--flow", "0..3", "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        run.folder.read("life.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| rows.iter().filter(|row| row["event"] == event).count() as u64;
    let total = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!(of("sent"), total("packets_sent"));
    assert_eq!(of("retransmit"), total("retransmits"));
    assert_eq!(of("timeout"), total("timeouts"));
    assert_eq!(of("trimmed"), total("trims"));
    assert_eq!(of("reordered"), total("reordered_packets"));
    assert_eq!(of("duplicate"), total("duplicates"));
    // The other drops are those of ACKs.
    assert!(of("dropped") > 0 && of("dropped") <= total("drops_link") + total("drops_random"));
    let sent_again = rows.iter().filter(|row| row["event"] == "sent" && row["attempt"].as_u64() > Some(1));
    assert_eq!(sent_again.count() as u64, total("retransmits"));
    // Every packet is acknowledged once, and every transmission is either delivered or dropped.
    let packets: std::collections::BTreeSet<_> =
        rows.iter().map(|row| (row["flow"].as_u64(), row["packet"].as_u64())).collect();
    assert_eq!(of("acked"), packets.len() as u64);
    let ends = of("received") + of("dropped");
    assert!(ends <= of("sent") && ends + 100 > of("sent"), "{ends} of {}", of("sent"));
    let times: Vec<f64> = rows.iter().map(|row| row["time_us"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let queued = rows.iter().find(|row| row["event"] == "queued").unwrap();
    assert!(queued["place"].as_str().unwrap().contains("->") && queued["queue_bytes"].is_u64(), "{queued}");

    let piped = trace(&["--flow", "2", "--out", "-"]);
    let own = rows.iter().filter(|row| row["flow"] == 2).count();
    assert_eq!(text(&piped.stdout).lines().count(), own);
    let parquet = run.folder.join("life.parquet");
    assert!(trace(&["--out", &parquet]).status.success());
    let bytes = std::fs::read(parquet).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn a_trace_requires_one_run_existing_flows_and_a_new_file() {
    let run = Run::new(SMALL);
    let refuse = |rest: &[&str], parts: &[&str]| {
        refused(&[&["trace", run.scenario.as_str(), "--engine", "sim"], rest].concat(), parts);
    };
    let out = run.folder.join("t.jsonl");
    refuse(&["--out", &out, "--flow", "4"], &["--flow: there is no flow 4; allowed: 0 to 3"]);
    refuse(&["--out", &out, "--flow", "3..1"], &["--flow", "expected N or A..B"]);
    refuse(&["--out", &out, "--balancer", "ops", "--balancer", "reps"], &["has 2 runs", "--balancer"]);
    refuse(&["--out", &out, "--seeds", "1..3"], &["has 3 runs", "--seed"]);
    refuse(&["--out", "t.csv"], &["--out t.csv: allowed: FILE.parquet, FILE.jsonl, or -"]);
    refuse(&["--out", "/nowhere/t.jsonl"], &["no folder /nowhere"]);
    assert!(!Path::new(&out).exists());
}
