//! `spray bench speed`: the other benchmarks and the demo, one after the other, as one Markdown document with targets beside figures.
//!
//! Each is a process of its own, so that none measures what another has left; each section is made from its JSON object.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use spray_experiments::results::Machine;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::stop::Stop;
use spray_tools::{info, say};

use super::median::median;
use super::peers;
use super::switch::HOP_TARGET_NS;
use super::transport::{
    COPYING_TARGET, IN_PLACE_TARGET, MANY_TARGET, QUEUES_TARGET, SEALING_TARGET_NS, SMALL_TARGET_NS, VERY_MANY_TARGET,
};
use super::veth;
use crate::lab::args;

/// A benchmark that speaks JSON: its arguments, and how its object is shown.
struct Section {
    title: &'static str,
    arguments: Vec<String>,
    show: fn(&Value) -> String,
}

/// What figures aim at, by their names in JSON. An object that has a number `NAME_target` says itself that `NAME` is to be at least that.
const TARGETS: [(&str, Target); 26] = [
    ("sender_memcpys", Target::AtMost(COPYING_TARGET)),
    ("receiver_memcpys", Target::AtMost(COPYING_TARGET)),
    ("sender_in_place_memcpys", Target::AtMost(IN_PLACE_TARGET)),
    ("receiver_in_place_memcpys", Target::AtMost(IN_PLACE_TARGET)),
    ("sender_64_bytes_ns", Target::AtMost(SMALL_TARGET_NS)),
    ("receiver_64_bytes_ns", Target::AtMost(SMALL_TARGET_NS)),
    ("sender_64_bytes_in_place_ns", Target::AtMost(SMALL_TARGET_NS)),
    ("receiver_64_bytes_in_place_ns", Target::AtMost(SMALL_TARGET_NS)),
    ("sender_sealed_over_aes_gcm_ns", Target::AtMost(SEALING_TARGET_NS)),
    ("receiver_sealed_over_aes_gcm_ns", Target::AtMost(SEALING_TARGET_NS)),
    ("ratio_1000_connections", Target::AtMost(MANY_TARGET)),
    ("ratio_10000_connections", Target::AtMost(VERY_MANY_TARGET)),
    ("ratio_two_queues", Target::AtLeast(QUEUES_TARGET)),
    ("ratio_latency_p50", Target::AtMost(1.2)),
    ("ratio_latency_p99_9", Target::AtMost(1.2)),
    ("one_switch_ns", Target::AtMost(HOP_TARGET_NS)),
    ("most_ns", Target::AtMost(HOP_TARGET_NS)),
    ("version_ms", Target::AtMost(20.0)),
    ("run_ms", Target::AtMost(20.0)),
    ("send_ms", Target::AtMost(150.0)),
    ("growth_8192", Target::AtMost(1.5)),
    ("growth_65536", Target::AtMost(2.0)),
    ("wall_s_8192", Target::AtMost(3.0)),
    ("peak_rss_mb_8192", Target::AtMost(400.0)),
    ("wall_s_65536", Target::AtMost(12.0)),
    ("peak_rss_mb_65536", Target::AtMost(2000.0)),
];

/// What keeps figures from their targets, by the beginnings of their names, as profiles (cpu-clock, heap) and the parts that
/// docs/results/transport.md explains have shown; and what would mend it.
const CAUSES: [(&[&str], &str); 11] = [
    (
        &["sender_memcpys", "receiver_memcpys", "sender_in_place_memcpys", "receiver_in_place_memcpys"],
        "What a packet of 64 bytes costs, and a pass over the payload for its checksum; a copy besides, where it is not in place. One pass for both \
         would not be faster: a checksum of bytes just copied takes as long as one of others. A NIC that vouched for the bytes would save it; AF_XDP \
         tells nobody of a received checksum.",
    ),
    (
        &["sender_64_bytes", "receiver_64_bytes"],
        "The device in memory has a sixth to a fifth. No other part has more than a seventh: the sender's choice and record 14 %, parsing 12 %, \
         checksums 11 %. Half of all would have to go: fields that are written one by one and read as \
         a whole (descriptors, messages), a division for each place in a ring.",
    ),
    (
        &["sender_sealed_over", "receiver_sealed_over"],
        "What a packet of 64 bytes costs, and a copy; at the sender besides the header's own tag, by which a trimmed frame proves itself: a second run \
         of the cipher. Without it trimmed frames would count for nothing.",
    ),
    (
        &["ratio_1000_connections", "ratio_10000_connections"],
        "A connection's state is out of the second-level cache when its turn comes. Several turns are read ahead together; those reads are still a \
         sixth of the time. Turns of four packets halve what 10,000 connections cost, but in an all-to-all of 72 hosts they take a fifth longer to the end.",
    ),
    (&["ratio_two_queues"], "Two threads on two cores that other programs share."),
    (
        &["ratio_bare", "ratio_udp"],
        "The kernel takes 3 us for a frame over veth, two NAPI polls most of it, and the ACK is one more. Nothing there can be polled busily. A NIC's \
         driver takes many frames at once.",
    ),
    (
        &["ratio_latency"],
        "Four frames in place of two: each message has an acknowledgement, and the kernel takes 3 us for any frame. An \
         acknowledgement that rode on the answer would save one of them each way.",
    ),
    (
        &["ratio_reference", "growth"],
        "Misses of the cache: a hop reads the event, its port and its flow, and from 1,024 hosts on they are in no cache. Huge pages change nothing. \
         Less state would.",
    ),
    (
        &["ratio_threads"],
        "Both threads are busy from the first window to the last: they wait for the same memory. Set-up, some 2 s of 65,536 hosts, runs on one; it \
         could run on both.",
    ),
    (
        &["one_switch_ns", "most_ns"],
        "One switch alone also parses the frame and readies it for the test. In a row, what a scheme looks at decides: the queues of four ports \
         nearly double a hop by hash, Reunion's tables more than double it. Fewer tables would mend that.",
    ),
    (
        &["wall_s", "peak_rss_mb"],
        "79 KB a host at 8,192 and 48 at 65,536: frames under way and what ACKs say, half of it in mail between parts, and 4 to 8 KB of a sender's \
         records. First writes to memory are a quarter of the time and more on a virtual machine. Fewer copies of a frame would mend both.",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Measures everything and writes the document.
///
/// # Errors
/// 2 when the machine does not allow it or the file cannot be written, 1 when a measurement failed, 130 after Ctrl-C.
pub fn speed(arguments: &args::BenchSpeed) -> Outcome {
    // Ctrl-C reaches the benchmark too, which cleans up and says so; without this, nobody would be there to hear it.
    let _stop = Stop::on_signals()?;
    let mut document = head();
    for section in sections(arguments) {
        let words = ["spray".to_string(), section.arguments.join(" ")].join(" ");
        info!("{words}");
        let _ = write!(document, "\n## {}\n\n`{words}`\n\n", section.title);
        document += &match measure(&section.arguments)? {
            Some(object) => (section.show)(&object) + &causes(&object),
            None => "Not measured: the command refused.\n".into(),
        };
    }
    info!("spray demo");
    let _ = write!(document, "\n## The demo\n\n`spray demo --seed 1`, three times\n\n");
    document += &demo_table(&demo()?);
    fs::write(&arguments.out, document)
        .map_err(|error| Failure::refused(format!("{}: {error}", arguments.out.display())))?;
    say!("{}", arguments.out.display());
    say::object(&json!({ "document": arguments.out }))
}

fn sections(arguments: &args::BenchSpeed) -> Vec<Section> {
    let bench = |kind: &str, more: &[String]| {
        let words = ["bench", kind, "--json"].map(String::from).into_iter();
        words.chain(more.iter().cloned()).collect::<Vec<_>>()
    };
    let mut sim = vec!["--threads".to_string(), arguments.threads.to_string(), "--hosts".into(), "65536".into()];
    if let Some(reference) = &arguments.reference {
        sim.extend(["--reference".to_string(), reference.clone()]);
    }
    let payload = |bytes: u32| ["--payload".to_string(), bytes.to_string()];
    vec![
        Section {
            title: "What a packet costs, 3,400 bytes",
            arguments: bench("transport", &payload(3400)),
            show: table,
        },
        Section { title: "Over veth", arguments: bench("veth", &["--seconds".into(), "1".into()]), show: veth_tables },
        Section { title: "The switch program", arguments: bench("switch", &[]), show: table },
        Section { title: "The simulator", arguments: bench("sim", &sim), show: table },
        Section { title: "Commands with little to do", arguments: bench("start", &[]), show: table },
    ]
}

/// What a processor may have that makes checksums, ciphers and copies faster.
const FLAGS: [&str; 8] = ["sse4_2", "avx2", "avx512f", "avx512vl", "pclmulqdq", "vpclmulqdq", "vaes", "erms"];

/// What the document says before the first section.
fn head() -> String {
    let Machine { kernel, cpu, cores, .. } = Machine::this();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let flags: Vec<&str> = flags.split_whitespace().filter(|flag| FLAGS.contains(flag)).collect();
    let flags = flags.join(" ");
    format!(
        "# Speed\n\nMade by `cargo xtask speed`. {cpu} ({flags}), {cores} cores, {kernel}. Figures vary between machines and from hour to hour on virtual \
         ones: trust ratios, which are measured alternately in one run.\n"
    )
}

/// Runs this program with `arguments`; `None` when it refuses them, as for an option that it does not have.
fn measure(arguments: &[String]) -> Outcome<Option<Value>> {
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let words = arguments.join(" ");
    let output = Command::new(program).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::failed(format!("`spray {words}`: {error}")))?;
    match output.status.code() {
        Some(0) => serde_json::from_slice(&output.stdout).map(Some).map_err(Failure::failed),
        Some(2) => Ok(None),
        Some(130) => Err(Failure::interrupted()),
        _ => Err(Failure::failed(format!("`spray {words}` failed ({})", output.status))),
    }
}

/// Numbers of a flat object, with their targets; then its lists, a table each.
fn table(object: &Value) -> String {
    let Some(fields) = object.as_object() else { return String::new() };
    let row = |(name, value): (&String, &Value)| {
        let is_target = name.ends_with("_target") || name.starts_with("target_");
        let shown = !is_target && (value.is_number() || value.is_string());
        shown.then(|| format!("| {} | {} | {} |\n", words(name), number(value), target(object, name)))
    };
    let rows: String = fields.iter().filter_map(row).collect();
    let mut out = if rows.is_empty() { rows } else { format!("| figure | | target |\n|---|--:|---|\n{rows}") };
    for (name, list) in fields {
        let lines: Vec<_> = list.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
        let Some(first) = lines.first() else { continue };
        let names: Vec<String> = first.keys().map(|name| words(name)).collect();
        let _ = write!(out, "\n{}:\n\n| {} |\n|{}\n", words(name), names.join(" | "), "--:|".repeat(names.len()));
        for line in &lines {
            let cells: Vec<String> = line.values().map(number).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn number(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_u64() && float.abs() < 10.0 => format!("{float:.2}"),
            Some(float) if !number.is_u64() && float.abs() < 100.0 => format!("{float:.1}"),
            Some(float) => format!("{float:.0}"),
            None => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

/// The target of a figure, and whether it is met.
fn judge(object: &Value, name: &str) -> Option<(Target, bool)> {
    let own = object[format!("{name}_target")].as_f64().map(Target::AtLeast);
    let listed = TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target);
    let (target, figure) = (own.or(listed)?, object[name].as_f64()?);
    let is_met = match target {
        Target::AtLeast(least) => figure >= least,
        Target::AtMost(most) => figure <= most,
    };
    Some((target, is_met))
}

/// The same in words; nothing for a figure without a target.
fn target(object: &Value, name: &str) -> String {
    let Some((target, is_met)) = judge(object, name) else { return String::new() };
    let text = match target {
        Target::AtLeast(least) => format!("at least {least}"),
        Target::AtMost(most) => format!("at most {most}"),
    };
    format!("{text}: {}", if is_met { "met" } else { "missed" })
}

/// What keeps those figures of the object from their targets that miss them.
fn causes(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let missed: Vec<&String> =
        fields.map(|(name, _)| name).filter(|name| judge(object, name).is_some_and(|(_, is_met)| !is_met)).collect();
    let mut out = String::new();
    for (starts, why) in CAUSES {
        let own = missed.iter().filter(|name| starts.iter().any(|start| name.starts_with(start)));
        let names = own.map(|name| words(name)).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            let _ = writeln!(out, "| {names} | {why} |");
        }
    }
    if out.is_empty() { out } else { format!("\n| missed | why |\n|---|---|\n{out}") }
}

/// Ratios, then a line for each peer.
fn veth_tables(object: &Value) -> String {
    let mut out = "| ratio of a round | median | least to most | target |\n|---|--:|--:|---|\n".to_string();
    for (name, words) in veth::ratios() {
        let [median, least, most] = ["", "_least", "_most"].map(|end| number(&object[format!("{name}{end}")]));
        let _ = writeln!(out, "| {words} | {median} | {least} to {most} | {} |", target(object, name));
    }
    for (name, _, words) in veth::LATENCIES {
        let _ = writeln!(out, "| {words} | {} | | {} |", number(&object[name]), target(object, name));
    }
    let payload = number(&object["payload_bytes"]);
    let [seconds, repeat] = ["seconds", "repeat"].map(|name| number(&object[name]));
    let _ = write!(
        out,
        "\n{payload}-byte payloads, medians of {repeat} rounds of {seconds} s, interleaved. CPU time is the whole machine's; our threads and bare frames' \
         spin, the others sleep. Round trips of 64 bytes, one at a time, in us; loaded: beside as much as goes.\n\n\
         | | Gb/s | least to most | CPU s/GB | idle p50 | p99 | p99.9 | loaded p50 | p99 | p99.9 |\n|---|{}\n",
        "--:|".repeat(9)
    );
    for (peer, words) in peers::peers() {
        let [gbps, least, most, cpu] = ["goodput_gbps", "goodput_gbps_least", "goodput_gbps_most", "cpu_s_per_gb"]
            .map(|name| number(&object[name][peer]));
        let latency = &object["latency_us"][peer];
        let us = |state: &str| {
            veth::QUANTILES
                .map(|(name, _)| latency[state][name].as_f64().map_or("-".into(), |us| format!("{us:.0}")))
                .join(" | ")
        };
        if !object["goodput_gbps"][peer].is_null() {
            let _ = writeln!(out, "| {words} | {gbps} | {least} to {most} | {cpu} | {} | {} |", us("idle"), us("load"));
        }
    }
    out
}

/// Runs of the demo.
const DEMOS: usize = 3;

/// Runs the demo; returns its runs' summaries in order, one list for each time.
fn demo() -> Outcome<Vec<Vec<Value>>> {
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let mut all = Vec::new();
    for number in 0..DEMOS {
        let out = folder.path().join(number.to_string());
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let arguments = ["demo", "--seed", "1", "--out"];
        let status =
            Command::new(program).args(arguments).arg(&out).stdout(Stdio::null()).status().map_err(Failure::failed)?;
        match status.code() {
            Some(0) => all.push(summaries(&out)?),
            Some(130) => return Err(Failure::interrupted()),
            _ => return Err(Failure::failed(format!("`spray demo` failed ({status})"))),
        }
    }
    Ok(all)
}

fn summaries(folder: &Path) -> Outcome<Vec<Value>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(Failure::failed)?
        .flatten()
        .map(|entry| entry.path().join("summary.json"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(Failure::failed)?;
        serde_json::from_str(&text).map_err(Failure::failed)
    };
    files.iter().map(read).collect()
}

/// Frames a second over all runs of a demo, and each run's figures.
fn demo_table(demos: &[Vec<Value>]) -> String {
    let of = |summary: &Value, name: &str| summary[name].as_f64().unwrap_or_default();
    let sum = |runs: &[Value], name: &str| runs.iter().map(|run| of(run, name)).sum::<f64>();
    let rates: Vec<f64> = demos.iter().map(|runs| sum(runs, "packets_sent") / sum(runs, "wall_s")).collect();
    let [least, most] = [f64::min, f64::max].map(|of| rates.iter().copied().reduce(of).unwrap_or_default());
    let mut out = format!(
        "Data packets a second of real time, over all nine runs: median {:.0} ({least:.0} to {most:.0}). Below, medians of the three.\n\n\
         | condition | balancer | packets/s | dilation | goodput Gb/s | mean FCT us | emulation errors |\n|---|---|{}\n",
        median(&rates),
        "--:|".repeat(5)
    );
    for run in 0..demos.first().map_or(0, Vec::len) {
        let median =
            |of: &dyn Fn(&Value) -> f64| json!(median(&demos.iter().map(|runs| of(&runs[run])).collect::<Vec<_>>()));
        let first = &demos[0][run];
        let rate = median(&|summary| of(summary, "packets_sent") / of(summary, "wall_s"));
        let cells =
            ["dilation", "goodput_gbps", "fct_mean_us"].map(|name| number(&median(&|summary| of(summary, name))));
        let late = sum(&demos.iter().map(|runs| runs[run].clone()).collect::<Vec<_>>(), "late_packets");
        let [scenario, balancer] = ["scenario", "balancer"].map(|name| number(&first[name]));
        let _ = writeln!(out, "| {scenario} | {balancer} | {} | {} | {late:.0} |", number(&rate), cells.join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_stand_beside_figures() {
        // By name, as objects may be sorted.
        let object = json!({
            "own": 1.0, "own_target": 2.0, "ratio_two_queues": 1.95,
            "rows": [{ "hosts": 128, "median_s": 0.151 }, { "hosts": 1024, "median_s": 1.84 }],
            "seen": 3, "wall_s_8192": 7.25,
        });
        let expected = "\
| figure | | target |
|---|--:|---|
| own | 1.00 | at least 2: missed |
| ratio two queues | 1.95 | at least 1.9: met |
| seen | 3 |  |
| wall s 8192 | 7.25 | at most 3: missed |

rows:

| hosts | median s |
|--:|--:|
| 128 | 0.15 |
| 1024 | 1.84 |
";
        assert_eq!(table(&object), expected);
        let causes = causes(&object);
        assert!(causes.contains("| wall s 8192 | 79 KB a host") && causes.lines().count() == 4, "{causes}");
    }

    #[test]
    fn peers_that_were_measured_have_a_line() {
        let object = json!({
            "payload_bytes": 3000, "seconds": 2.0, "repeat": 5,
            "ratio_bare_4to1": 0.9, "ratio_bare_4to1_least": 0.8, "ratio_bare_4to1_most": 0.95, "ratio_bare_4to1_target": 0.85,
            "goodput_gbps": { "spray_4to1": 9.0 }, "goodput_gbps_least": { "spray_4to1": 8.0 },
            "goodput_gbps_most": { "spray_4to1": 12.0 }, "cpu_s_per_gb": { "spray_4to1": 1.5 },
            "latency_us": { "spray_4to1": { "idle": { "p50": 20.2, "p99": 30.0, "p99_9": 99.0 }, "load": null } },
        });
        let text = veth_tables(&object);
        assert!(
            text.contains("| REPS, an ACK per 4 packets / bare frames | 0.90 | 0.80 to 0.95 | at least 0.85: met |"),
            "{text}"
        );
        let line = "| REPS connection, an ACK per 4 packets | 9.00 | 8.00 to 12.0 | 1.50 | 20 | 30 | 99 | - | - | - |";
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("kernel TCP"), "{text}");
    }

    #[test]
    fn a_demo_is_as_fast_as_all_its_runs_together() {
        let run = |packets: u64, wall_s: f64| {
            json!({ "scenario": "healthy", "balancer": "reps", "packets_sent": packets, "wall_s": wall_s,
                    "dilation": 150.0, "goodput_gbps": 700.5, "fct_mean_us": 1512.0, "late_packets": 0 })
        };
        let text = demo_table(&[vec![run(100, 1.0), run(300, 1.0)], vec![run(100, 2.0), run(300, 2.0)]]);
        assert!(text.contains("median 150 (100 to 200)"), "{text}");
        assert!(text.contains("| healthy | reps | 75.0 | 150 | 700 | 1512 | 0 |"), "{text}");
    }
}
