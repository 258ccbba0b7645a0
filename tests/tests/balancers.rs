//! Every balancer and every congestion control with real packets: every byte arrives.

use std::process::Stdio;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_test_support::Folder;
use spray_tests::{assert_sound, run_on, scenarios, shared_turn, small, spray, testbed};

const BYTES: &str = "256 KiB";
/// An uplink that drops every frame for a time shorter than the give-up time of an ECMP flow on it.
const SILENT: &str = "[[link_event]]\nlink = \"leaf0->spine0\"\nat_us = 10\nuntil_us = 100\naction = \"silent-drop\"\n";

#[test]
fn every_balancer_delivers_over_a_healthy_and_a_failing_fabric() {
    let Some(_turn) = shared_turn() else { return };
    let (healthy, failing) = (small(BYTES, ""), small(BYTES, SILENT));
    let testbed = testbed(&healthy);
    for balancer in BalancerKind::ALL {
        let result = run_on(&testbed, &healthy, balancer).unwrap();
        assert_eq!(result.balancer, balancer.name());
        assert_sound(&result);
        // A single path does not reorder, nor does a balancer that drains before it changes its
        // path.
        if matches!(balancer.name(), "ecmp" | "flowcut") {
            assert_eq!(result.counted().1.order.reordered, 0, "{balancer}");
        }
        assert_sound(&run_on(&testbed, &failing, balancer).unwrap());
    }
}

#[test]
fn every_congestion_control_delivers() {
    let Some(_turn) = shared_turn() else { return };
    let scenario = |cc: CcKind| small(BYTES, &format!("[transport]\ncc = \"{cc}\"\n"));
    let testbed = testbed(&scenario(CcKind::Dctcp));
    for cc in CcKind::ALL {
        let result = run_on(&testbed, &scenario(cc), BalancerKind::Reps).unwrap();
        assert_eq!(result.congestion_control, cc.name());
        assert_sound(&result);
    }
}

#[test]
fn all_are_compared_on_packets() {
    let Some(_turn) = shared_turn() else { return };
    let out = Folder::new();
    let mut command = spray();
    command.arg("run").arg(scenarios().join("demo-slow-uplink.toml")).arg("--out").arg(out.path());
    command.args(["--balancer", "ecmp", "--balancer", "reps"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (stdout, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{error}");
    let table = out.read("runs.csv");
    let overview = out.path().join("report.html").is_file();
    assert_eq!(table.lines().count(), 3, "{table}");
    let has_line = |balancer: &str| table.lines().any(|line| line.contains(&format!(",{balancer},")));
    assert!(has_line("ecmp") && has_line("reps"), "{table}");
    assert!(overview && stdout.contains("verified") && error.contains("[2/2] reps"), "{stdout}\n{error}");
}
