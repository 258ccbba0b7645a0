//! Invalid input ends with exit code 2 and one message that names the problem, its position and the
//! remedy.

use spray_test_support::{Folder, text};

use super::{refused, spray};

/// A scenario that runs on every machine; tests run in the folder of their package.
const DEMO: &str = "../tests/scenarios/demo-healthy.toml";

#[test]
fn no_command_and_unknown_ones_show_the_usage() {
    refused(&[], &["Usage", "demo", "doctor"]);
    refused(&["fly"], &["unrecognized subcommand 'fly'"]);
    refused(&["demo", "--speed", "9"], &["unexpected argument '--speed'"]);
}

#[test]
fn an_unknown_balancer_is_rejected_with_the_list_of_balancers() {
    let expected = ["--balancer magic: `balancer` is magic", "\"ecmp\", \"ops\", "];
    refused(&["run", DEMO, "--balancer", "magic"], &expected);
    refused(&["demo", "--balancer", "magic"], &expected);
    refused(&["send", "x", "--interface", "lo", "--to", "::1", "--balancer", "magic"], &expected);
}

#[test]
fn unknown_settings_are_rejected_with_the_list_of_settings() {
    let send = ["send", DEMO, "--interface", "lo", "--to", "10.0.0.1"];
    let commands = [&["run", DEMO][..], &["demo"], &["compare", DEMO], &send];
    for command in commands {
        for (param, expected) in [
            ("window_bytes", "allowed: PATH=VALUE"),
            ("=3", "allowed: PATH=VALUE"),
            ("a.b=", "allowed: PATH=VALUE"),
            ("transport.magic.power=3", "unknown field `magic` in [transport]; allowed: balancer, "),
            (
                "transport.fixed-window.height=3",
                "unknown field `height` in [transport.fixed-window]; allowed: window_bytes",
            ),
            ("transport.fixed-window.window_bytes=0", "`window_bytes` is 0; allowed: \"auto\", or 1 to "),
            (
                "transport.fixed-window.window_bytes=1 mib",
                "is 1 mib (did you mean `1 MiB`?); allowed: \"auto\", or 1 to ",
            ),
        ] {
            refused(&[command, &["--set", param][..]].concat(), &[&format!("--set {param}: "), expected]);
        }
        refused(&[command, &["--cc", "magic"][..]].concat(), &["--cc magic: ", "allowed: \"dctcp\", "]);
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let base = ["send", "x", "--interface", "lo", "--to", "10.0.0.1"];
    for (option, value, expected) in [
        ("--evs", "70000", "--evs 70000: `evs` is 70000; allowed: \"auto\", or a whole number from 1 to 65535"),
        ("--ack-every", "0", "a whole number from 1 to 64"),
        ("--to", "h4", "invalid value 'h4'"),
    ] {
        let arguments: Vec<&str> = base.iter().copied().take(if option == "--to" { 4 } else { 6 }).collect();
        refused(&[arguments.as_slice(), &[option, value]].concat(), &[expected]);
    }
    refused(
        &[base.as_slice(), &["--cc", "fixed-rate"]].concat(),
        &["--cc fixed-rate needs a rate, as in --set transport.fixed-rate.rate_gbps=10"],
    );
    refused(&["demo", "--set", "workload.bytes=0"], &["--set workload.bytes=0: `bytes` is 0"]);
    refused(&["run", "x.toml", "--engine", "fpga"], &["possible values: xdp"]);
    refused(&["recv", "--interface", "lo", "--copy", "--zero-copy"], &["cannot be used with"]);
}

#[test]
fn missing_files_and_folders_are_named() {
    refused(&["run", "/nowhere/s.toml"], &["/nowhere/s.toml"]);
    refused(&["demo", "--workload-payload", "/nowhere/payload"], &["/nowhere/payload"]);
    refused(&["send", "/nowhere/f", "--interface", "lo", "--to", "10.0.0.1"], &["cannot read /nowhere/f"]);
    refused(&["recv", "--interface", "lo", "--out", "/nowhere/f"], &["the folder /nowhere/f does not exist"]);
    refused(&["recv", "--interface", "lo", "--out", DEMO], &["is not a folder"]);
}

#[test]
fn a_missing_interface_is_named_with_the_command_that_lists_them() {
    let folder = Folder::new();
    let file = folder.file("payload", "payload");
    let arguments = ["send", &file, "--insecure", "--interface", "spraynope0", "--to", "10.0.0.1"];
    refused(&arguments, &["there is no interface spraynope0", "ip link"]);
    refused(&["recv", "--insecure", "--interface", "spraynope0"], &["there is no interface spraynope0"]);
}

#[test]
fn a_missing_key_is_reported_with_the_command_that_creates_one() {
    let folder = Folder::new();
    let file = folder.file("payload", "payload");
    let key = folder.file("key", "not one");
    let (send, recv) = (["send", &file, "--interface", "lo", "--to", "10.0.0.1"], ["recv", "--interface", "lo"]);
    for command in [&send[..], &recv] {
        let with = |more: &[&str], expected: &[&str]| refused(&[command, more].concat(), expected);
        with(&[], &["spray keygen FILE", "--key FILE", "--insecure"]);
        with(&["--key", "/nowhere/key"], &["cannot read the key /nowhere/key"]);
        with(&["--key", &key], &[&key, "chmod 600"]);
        with(&["--key", &key, "--insecure"], &["cannot be used with"]);
        with(&["--trust", &"0".repeat(64)], &["required", "--key"]);
        with(&["--key", &key, "--trust", "bob"], &["a key is 64 hexadecimal digits"]);
    }
    refused(&["keygen", &key], &["cannot make the key's file", &key]);
}

#[test]
fn both_addresses_must_be_of_one_family() {
    let folder = Folder::new();
    let file = folder.file("family", "payload");
    let arguments = ["send", &file, "--insecure", "--interface", "lo", "--to", "10.0.0.1", "--from", "::1"];
    refused(&arguments, &["--from ::1", "--to 10.0.0.1", "same IP version"]);
}

#[test]
fn scenario_errors_name_file_line_column_and_the_allowed_values() {
    let folder = Folder::new();
    let file = folder.file("bad.toml", "name = \"x\"\n\n[topology]\nkind = \"ring\"\n");
    refused(&["run", &file], &["bad.toml:4:8", "ring", "leaf-spine"]);
}

/// Input that would exhaust memory, run for hours or overflow a time is rejected before anything of
/// that size is allocated; the message names the limit, the file and the position.
#[test]
fn excessive_sizes_are_rejected_with_limit_and_position() {
    let folder = Folder::new();
    let fabric = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
    let all = |topology: &str, workload: &str, rest: &str| {
        format!("name = \"x\"\n{rest}[topology]\n{topology}[workload]\n{workload}")
    };
    let one = "kind = \"tornado\"\nbytes = 1\n";
    let dense = "kind = \"leaf-spine\"\nleaves = 1024\nspines = 1024\nhosts_per_leaf = 16\n";
    let _ = folder.file("size.cm", "Nodes 4\n0->1 id 1 start 0 size 18446744073709551615\n");
    let _ = folder.file("start.cm", "Nodes 4\n0->1 id 1 size 5 start 18446744073709551615\n");
    let topo = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 1\nRadix_Down 8\nRadix_Up 1000000\n\
                Tier 1\nDownlink_speed_Gbps 1\nRadix_Down 2\n";
    let _ = folder.file("wide.topo", topo);
    let matrix = |name: &str| format!("kind = \"matrix\"\nfile = \"{name}\"\n");
    let slow = format!("{fabric}host_gbps = 0.01\n");
    for (text, expected) in [
        (all(dense, one, ""), ["bomb.toml:3:8", "1064960 cables; allowed: at most 524288"]),
        (all("kind = \"file\"\nfile = \"wide.topo\"\n", one, ""), ["wide.topo:4:1", "cables; allowed: at most 524288"]),
        (
            all(fabric, &matrix("size.cm"), ""),
            ["size.cm:2:", "`size` is 18446744073709551615; allowed: at most 1099511627776"],
        ),
        (
            all(fabric, &matrix("start.cm"), ""),
            ["start.cm:2:", "`start` is 18446744073709551615; allowed: at most 3600000000000000"],
        ),
        (all(&slow, "kind = \"tornado\"\nbytes = \"1024 GiB\"\n", ""), ["bomb.toml:8:1", "910688 s or more"]),
        (
            all(fabric, "kind = \"closed-loop\"\nsizes = \"uniform\"\nmax_bytes = \"1 GiB\"\nmessages = 25000\n", ""),
            ["bomb.toml:7:1", "packets; allowed: at most 10000000000"],
        ),
        (
            all(fabric, "kind = \"closed-loop\"\nsizes = \"hadoop\"\nmessages = 75001\n", ""),
            ["bomb.toml:10:12", "`messages` is 75001 for each of 4 hosts; allowed: at most 75000"],
        ),
    ] {
        let file = folder.file("bomb.toml", &text);
        refused(&["run", &file, "--engine", "sim"], &expected);
    }
}

/// With the `xdp` engine frames have payload: the data that is sent and received must fit into
/// memory.
#[test]
fn payload_beyond_the_machines_memory_is_rejected_before_set_up() {
    let folder = Folder::new();
    let text = "name = \"x\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                [workload]\nkind = \"tornado\"\nbytes = \"1 MiB\"\n";
    let file = folder.file("bomb.toml", text);
    let set = ["--set", "workload.bytes=\"1024 GiB\""];
    refused(
        &[&["run", &file][..], &set].concat(),
        &["workload.bytes", "8192.0 GiB of memory, of which", "`--engine sim`"],
    );
    let many = ["--set", "topology.leaves=200", "--set", "topology.hosts_per_leaf=4"];
    refused(
        &[&["run", &file][..], &many].concat(),
        &["it needs 800 veth pairs; allowed: at most 512, or `--engine sim`"],
    );
}

#[test]
fn help_is_not_an_error() {
    let output = spray(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = text(&output.stdout);
    for command in ["demo", "run", "send", "recv", "tunnel", "keygen", "doctor", "clean", "bench"] {
        assert!(text.contains(command), "{command}");
    }
}

#[test]
fn doctor_prints_json() {
    let output = spray(&["doctor", "--json"]);
    let text = text(&output.stdout);
    assert!(text.trim_start().starts_with('[') && text.contains("\"check\": \"kernel\""), "{text}");
    assert!(matches!(output.status.code(), Some(0 | 1)));
}
