//! Captures at hosts on the xdp engine and in transfers, compared with the results.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use spray_core::path::BalancerKind;
use spray_experiments::engine::Engine;
use spray_experiments::results::{Summary, trace_json};
use spray_experiments::scenario::{Ip, Scenario};
use spray_experiments::watch::{self, Observer};
use spray_test_support::{Folder, WRONG, tshark};
use spray_tests::{assert_sound, parse, scenarios, shared_turn, testbed};

/// Returns an incast, so that the last port marks and trims, with a quarter of the bytes, because
/// tshark reads some thousand frames per second.
fn incast() -> Scenario {
    let text = std::fs::read_to_string(scenarios().join("incast.toml")).unwrap();
    parse(&text.replace("1 MiB", "256 KiB"))
}

fn run(scenario: &Scenario, watch: &Observer) -> Summary {
    let testbed = testbed(scenario);
    let prepared = testbed.prepare(scenario, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let result =
        prepared.run_observed(BalancerKind::Ops, scenario.seed, Some(watch), &mut |_| {}, &AtomicBool::new(false));
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert_sound(&result);
    result.summary()
}

/// The fields read of each frame.
const FIELDS: [&str; 6] = [
    "frame.interface_name",
    "frame.packet_flags_direction",
    "spraynic.kind",
    "spraynic.flags.trailer",
    "spraynic.flags.retransmit",
    "frame.comment",
];

#[test]
fn captures_of_hosts_agree_with_the_results() {
    let Some(_turn) = shared_turn() else { return };
    for v6 in [false, true] {
        let (folder, mut scenario) = (Folder::new(), incast());
        scenario.transport.ip = if v6 { Ip::V6 } else { Ip::V4 };
        let file = folder.path().join("frames.pcapng");
        let watch = watch::capture(&file, &scenario, 1_000_000).unwrap();
        let summary = run(&scenario, &watch);
        let (written, _) = watch.lock().finish().unwrap();
        assert!(written.is_some_and(|written| written.frames > 4_000 && written.left_out == 0), "{written:?}");
        let Some(rows) = tshark(&file, "", &FIELDS) else { return };
        let count = |is_one: &dyn Fn(&[String]) -> bool| rows.iter().filter(|row| is_one(row)).count() as u64;
        // Data sent by a host, without the trailers of ideal codes.
        let is_sent = |row: &[String]| row[0].starts_with('h') && row[1..4] == ["0x00000002", "1", "0"];
        assert_eq!(count(&is_sent), summary.flows.packets_sent);
        assert_eq!(count(&|row| is_sent(row) && row[4] == "1"), summary.flows.retransmits);
        // All queues here are in front of hosts, which emulate these ports.
        assert_eq!(count(&|row| row[5].contains("trimmed: queue full")), summary.fabric.trims);
        assert_eq!(count(&|row| row[5].contains("marked")), summary.fabric.ecn_marks);
        assert!(summary.fabric.trims > 0);
        assert_eq!(tshark(&file, WRONG, &["frame.number"]), Some(vec![]));
        let accepts: Vec<_> = rows.iter().filter(|row| row[2] == "5").collect();
        assert!(!accepts.is_empty());
        assert!(accepts.iter().all(|row| row[5].ends_with("us before the scenario begins")), "{accepts:?}");
    }
}

#[test]
fn traces_of_hosts_agree_with_the_results() {
    let Some(_turn) = shared_turn() else { return };
    let scenario = incast();
    let flows = scenario.flows(scenario.seed).len() as u64;
    let all: Vec<u64> = (0..flows).collect();
    let watch = watch::tracer(&scenario, BalancerKind::Ops, scenario.seed, &all, false).unwrap();
    let summary = run(&scenario, &watch);
    let (_, (rows, left_out)) = watch.lock().finish().unwrap();
    let text = trace_json(&rows);
    let of = |event: &str| text.matches(&format!("\"event\":\"{event}\"")).count() as u64;
    assert_eq!(left_out, 0);
    assert_eq!((of("sent"), of("retransmit")), (summary.flows.packets_sent, summary.flows.retransmits));
    assert_eq!((of("trimmed"), of("marked")), (summary.fabric.trims, summary.fabric.ecn_marks));
    assert_eq!((of("reordered"), of("timeout")), (summary.flows.reordered_packets, summary.flows.timeouts));
    assert_eq!((of("received"), of("dropped")), (of("sent"), 0));
    assert_eq!(of("acked") + of("trimmed"), of("sent"));
}

/// An existing file is not overwritten.
#[test]
fn a_capture_does_not_overwrite_a_file() {
    let folder = Folder::new();
    let file = folder.path().join("frames.pcapng");
    File::create(&file).unwrap();
    assert!(watch::capture(&file, &incast(), 1).is_err());
}
