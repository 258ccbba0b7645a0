//! `spray serve` and `spray perf` over plain routers, and the captures of a transfer by `--pcap`.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use spray_test_support::{Folder, WRONG, tshark};
use spray_tests::routers::Routers;
use spray_tests::running::{Running, inbox, payload};
use spray_tests::{spray, turn};

/// Starts a server command on the second machine.
fn serving(routers: &Routers, arguments: &[&str]) -> Running {
    let mut command = spray();
    command.args(arguments).args(["--insecure", "--interface", Routers::INTERFACE]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(routers.run_in(1, || command.spawn()).unwrap().unwrap()).listening()
}

/// Returns the measurement of `spray perf` with these options against `spray serve`.
fn perf(routers: &Routers, rest: &[&str]) -> Value {
    let address = Routers::address(1, 0).to_string();
    let mut command = spray();
    command.args(["perf", &address, "--insecure", "--interface", Routers::INTERFACE, "--json"]).args(rest);
    let output = routers.run_in(0, || command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{rest:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn bytes(sum: &Value) -> u64 {
    sum["bytes"].as_u64().unwrap_or_else(|| panic!("{sum}"))
}

#[test]
fn both_directions_and_round_trips_are_measured() {
    let Some(_turn) = turn() else { return };
    let routers = Routers::new().unwrap();
    let _serving = serving(&routers, &["serve"]);
    // `sum` is that of the client's sends, except with -R.
    for (rest, ways) in [
        (&["-P", "3"][..], &[("sum", "sum_sent")][..]),
        (&["-R"], &[("sum", "sum_received")]),
        (&["--bidir"], &[("sum", "sum_sent"), ("sum_bidir_reverse", "sum_received_bidir_reverse")]),
    ] {
        let measured = perf(&routers, &[&["-t", "1", "-i", "0.5"], rest].concat());
        for (interval, sum) in ways {
            let all = bytes(&measured["end"][sum]);
            assert!(all > 1 << 20, "{rest:?}: {measured}");
            let intervals = measured["intervals"].as_array().unwrap().iter();
            assert_eq!(intervals.map(|ways| bytes(&ways[interval])).sum::<u64>(), all, "{rest:?}: {measured}");
        }
        let cpu = &measured["end"]["cpu_utilization_percent"];
        assert!(["host_total", "remote_total"].iter().all(|end| cpu[end].as_f64().unwrap() > 0.0), "{measured}");
    }
    let measured = perf(&routers, &["-t", "1", "--latency", "--load", "1"]);
    let latency = &measured["end"]["latency_us"];
    let at = |name: &str| latency[name].as_f64().unwrap();
    assert!(at("count") > 10.0 && at("min") > 0.0 && bytes(&measured["end"]["sum_sent"]) > 1 << 20, "{measured}");
    let rising = ["min", "p50", "p99", "p99_9", "p99_99", "max"].map(at);
    assert!(rising.is_sorted(), "{measured}");
}

/// Both ends of a transfer capture their frames: the captures are the same, with valid headers.
#[test]
fn a_transfer_is_captured_at_both_ends() {
    let Some(_turn) = turn() else { return };
    let (routers, folder) = (Routers::new().unwrap(), Folder::new());
    let file = payload(&folder, 2 << 20);
    let pcap = |end: &str| folder.join(end);
    let into = inbox(&folder);
    let mut receiving = serving(&routers, &["recv", "--out", into.to_str().unwrap(), "--pcap", &pcap("recv")]);
    let mut command = spray();
    command.arg("send").arg(&file).args(["--insecure", "--interface", Routers::INTERFACE, "--pcap", &pcap("send")]);
    command.args(["--to", &Routers::address(1, 0).to_string()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sending = Running(routers.run_in(0, || command.spawn()).unwrap().unwrap());
    assert!(sending.end().success(), "{}", sending.stderr());
    assert!(receiving.end().success(), "{}", receiving.stderr());
    let frames = |end: &str, way: u8| {
        let capture = std::fs::read_dir(pcap(end)).unwrap().next().unwrap().unwrap().path();
        let data = format!("frame.packet_flags_direction == {way} && spraynic.kind == 1");
        Some((tshark(&capture, &data, &["spraynic.psn"])?, tshark(&capture, WRONG, &["frame.number"])?))
    };
    let (Some((mut sent, wrong)), Some((mut taken, also_wrong))) = (frames("send", 2), frames("recv", 1)) else {
        return;
    };
    assert!(wrong.is_empty() && also_wrong.is_empty(), "{wrong:?} {also_wrong:?}");
    assert!(sent.len() as u64 * 9000 >= Path::new(&file).metadata().unwrap().len());
    sent.sort();
    taken.sort();
    sent.dedup();
    taken.dedup();
    assert_eq!(sent, taken);
}
