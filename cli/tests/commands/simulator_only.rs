//! `spray` built without the feature `xdp`.

use crate::refused;

#[test]
fn the_missing_engine_is_rejected_with_the_name_of_its_feature() {
    let scenario = "../tests/scenarios/demo-healthy.toml";
    refused(&["run", scenario], &["feature `xdp`", "--engine sim"]);
    refused(&["run", scenario, "--engine", "xdp"], &["feature `xdp`"]);
}

#[test]
fn commands_that_send_packets_are_absent() {
    for command in ["demo", "compare", "send", "recv", "doctor", "clean"] {
        refused(&[command], &["unrecognized subcommand"]);
    }
}
