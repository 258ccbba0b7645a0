//! Bad input ends with exit code 2 and one message that says what, where and what to do.

use spray_test_support::{Folder, text};

use super::{refused, spray};

/// A scenario that runs anywhere.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/scenarios/demo-healthy.toml");

#[test]
fn no_command_and_unknown_ones_show_the_usage() {
    refused(&[], &["Usage", "demo", "doctor"]);
    refused(&["fly"], &["unrecognized subcommand 'fly'"]);
    refused(&["demo", "--speed", "9"], &["unexpected argument '--speed'"]);
}

#[test]
fn unknown_balancer_is_answered_with_those_there_are() {
    let says = ["--balancer magic: `balancer` is magic", "\"ecmp\", \"ops\", "];
    refused(&["run", DEMO, "--balancer", "magic"], &says);
    refused(&["compare-balancers", DEMO, "--balancer", "magic"], &says);
    refused(&["demo", "--balancer", "magic"], &says);
    refused(&["send", "x", "--interface", "lo", "--to", "::1", "--balancer", "magic"], &says);
}

#[test]
fn unknown_settings_are_answered_with_those_there_are() {
    let send = ["send", DEMO, "--interface", "lo", "--to", "10.0.0.1"];
    let commands = [&["run", DEMO][..], &["demo"], &["compare", DEMO], &["compare-balancers", DEMO], &send];
    for command in commands {
        for (param, says) in [
            ("window_bytes", "allowed: PATH=VALUE"),
            ("=3", "allowed: PATH=VALUE"),
            ("a.b=", "allowed: PATH=VALUE"),
            ("transport.magic.power=3", "unknown field `magic` in [transport]; allowed: balancer, "),
            (
                "transport.fixed-window.height=3",
                "unknown field `height` in [transport.fixed-window]; allowed: window_bytes",
            ),
            ("transport.fixed-window.window_bytes=0", "`window_bytes` is 0; allowed: \"auto\", or 1 to "),
            ("transport.fixed-window.window_bytes=1 mib", "is 1 mib; allowed: \"auto\", or 1 to "),
        ] {
            refused(&[command, &["--set", param][..]].concat(), &[&format!("--set {param}: "), says]);
        }
        refused(&[command, &["--cc", "magic"][..]].concat(), &["--cc magic: ", "allowed: \"dctcp\", "]);
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let base = ["send", "x", "--interface", "lo", "--to", "10.0.0.1"];
    for (option, value, says) in [
        ("--evs", "70000", "--evs 70000: `evs` is 70000; allowed: whole, 1 to 65535"),
        ("--gbps", "0", "0.001 to 1000"),
        ("--rtt-us", "nan", "microseconds from 1"),
        ("--ack-every", "0", "whole, 1 to 64"),
        ("--peer-mac", "02:00:00:00:00", "six pairs"),
        ("--to", "h4", "invalid value 'h4'"),
    ] {
        let arguments: Vec<&str> = base.iter().copied().take(if option == "--to" { 4 } else { 6 }).collect();
        refused(&[arguments.as_slice(), &[option, value]].concat(), &[says]);
    }
    refused(
        &[base.as_slice(), &["--cc", "fixed-rate"]].concat(),
        &["--cc fixed-rate needs a rate: give one with --gbps"],
    );
    refused(&["demo", "--bytes", "0"], &["--bytes"]);
    refused(&["demo", "--bytes", "5", "--file", "x"], &["cannot be used with"]);
    refused(&["run", "x.toml", "--engine", "fpga"], &["possible values: xdp"]);
    refused(&["recv", "--interface", "lo", "--copy", "--zero-copy"], &["cannot be used with"]);
}

#[test]
fn missing_files_and_folders_are_named() {
    refused(&["run", "/nowhere/s.toml"], &["/nowhere/s.toml"]);
    refused(&["demo", "--file", "/nowhere/payload"], &["/nowhere/payload"]);
    refused(&["send", "/nowhere/f", "--interface", "lo", "--to", "10.0.0.1"], &["cannot read /nowhere/f"]);
    refused(&["recv", "--interface", "lo", "--out", "/nowhere/f"], &["the folder /nowhere does not exist"]);
    refused(&["recv", "--interface", "lo", "--keep", "--out", DEMO], &["is not a folder", "--keep takes many files"]);
    refused(&["recv", "--interface", "lo", "--keep", "--out", "-"], &["--keep takes many files"]);
}

#[test]
fn missing_interface_is_named_with_the_way_to_find_one() {
    let folder = Folder::new();
    let file = folder.file("payload", "payload");
    let arguments = ["send", &file, "--insecure", "--interface", "spraynope0", "--to", "10.0.0.1"];
    refused(&arguments, &["there is no interface spraynope0", "ip link"]);
    refused(&["recv", "--insecure", "--interface", "spraynope0"], &["there is no interface spraynope0"]);
}

#[test]
fn no_key_is_answered_with_how_to_make_one() {
    let folder = Folder::new();
    let file = folder.file("payload", "payload");
    let key = folder.file("key", "not one");
    let (send, recv) = (["send", &file, "--interface", "lo", "--to", "10.0.0.1"], ["recv", "--interface", "lo"]);
    for command in [&send[..], &recv] {
        let with = |more: &[&str], says: &[&str]| refused(&[command, more].concat(), says);
        with(&[], &["spray keygen FILE", "--key FILE", "--insecure"]);
        with(&["--key", "/nowhere/key"], &["cannot read the key /nowhere/key"]);
        with(&["--key", &key], &[&key, "chmod 600"]);
        with(&["--key", &key, "--insecure"], &["cannot be used with"]);
        with(&["--peer", &"0".repeat(64)], &["required", "--key"]);
        with(&["--key", &key, "--peer", "bob"], &["a key is 64 hexadecimal digits"]);
    }
    refused(&["keygen", &key], &["cannot make the key's file", &key]);
}

#[test]
fn own_and_peer_address_must_be_of_one_family() {
    let folder = Folder::new();
    let file = folder.file("family", "payload");
    let arguments = ["send", &file, "--insecure", "--interface", "lo", "--to", "10.0.0.1", "--from", "::1"];
    refused(&arguments, &["--from ::1", "--to 10.0.0.1", "same IP version"]);
}

#[test]
fn scenario_mistakes_name_file_line_column_and_what_is_allowed() {
    let folder = Folder::new();
    let file = folder.file("bad.toml", "name = \"x\"\n\n[topology]\nkind = \"ring\"\n");
    refused(&["run", &file], &["bad.toml:4:8", "ring", "leaf-spine"]);
}

#[test]
fn help_is_not_an_error() {
    let output = spray(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = text(&output.stdout);
    for command in ["demo", "run", "compare-balancers", "send", "recv", "keygen", "doctor", "clean", "bench"] {
        assert!(text.contains(command), "{command}");
    }
}

#[test]
fn doctor_speaks_json() {
    let output = spray(&["doctor", "--json"]);
    let text = text(&output.stdout);
    assert!(text.trim_start().starts_with('[') && text.contains("\"check\": \"kernel\""), "{text}");
    assert!(matches!(output.status.code(), Some(0 | 1)));
}
