//! `spray flowcut-memory`.

use spray_test_support::text;

use super::{refused, spray};

fn said(arguments: &[&str]) -> String {
    let output = spray(&[&["flowcut-memory"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).clone()
}

#[test]
fn the_table_has_the_state_asked_for() {
    let says = said(&["--rtt-us", "50"]);
    for part in ["flowcut, full switch", "6.56 MiB", "flowcut/4"] {
        assert!(says.contains(part), "{part}: {says}");
    }
}

#[test]
fn json_has_the_same_figures() {
    let found: serde_json::Value =
        serde_json::from_str(&said(&["--json", "--gbps", "800", "--hosts", "16384"])).unwrap();
    assert_eq!(found["network"]["hosts"], 16_384);
    assert_eq!(found["states"][0]["keeper"], "flowcut-full-switch");
    assert_eq!(found["states"][0]["bytes"], 44e6);
    assert_eq!(found["states"][2]["bytes"], 2_441.406_25);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (option, value, says) in [
        ("--hosts", "0", "0 is not in 1..="),
        ("--gbps", "nan", "Gb/s from 0.001 to 100000"),
        ("--rtt-us", "-1", "unexpected argument"),
        ("--rtt-us", "0", "microseconds from 0.001"),
        ("--mtu-bytes", "9", "9 is not in 64..=65535"),
        ("--flows-per-host", "many", "invalid digit"),
        ("--ports-per-switch", "70000", "70000 is not in 1..=65535"),
    ] {
        refused(
            &["flowcut-memory", option, value],
            &[option.trim_end_matches(' '), says][usize::from(value == "-1")..],
        );
    }
}
