//! `spray doctor` loads every program, and examines an interface.

use std::path::Path;
use std::process::Output;

use spray_test_support::{Folder, Pair, has_root, program, text};

use super::spray;

#[test]
fn every_program_is_loaded() {
    if !has_root() {
        return;
    }
    let stdout = text(&spray(&["doctor"]).stdout);
    let line = stdout.lines().find(|line| line.contains("XDP programs")).expect("a line on the programs");
    let built = !line.contains("is missing");
    for part in ["ok  ", "steer ", " switch ", "bench_switch ", "bench_redirect "] {
        assert!(!built || line.contains(part), "{line}");
    }
}

fn doctor(pair: &Pair, arguments: &[&str]) -> Output {
    pair.command(0, &program("spray")).args(["doctor", "eth0"]).args(arguments).output().unwrap()
}

fn ip(pair: &Pair, arguments: &str) -> String {
    let output = pair.command(0, Path::new("ip")).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn an_interface_is_examined_and_probed_inside_a_namespace() {
    if !has_root() {
        return;
    }
    let pair = Pair::new("doctor").unwrap();
    let sound = doctor(&pair, &["--peer", "10.78.0.2"]);
    let stdout = text(&sound.stdout);
    assert_eq!(sound.status.code(), Some(0), "{stdout}{}", text(&sound.stderr));
    for part in ["\nQueues\n", "ok    BPF JIT", "1 of 1 queues bind and send, 16 echoes of each came back"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    ip(&pair, "link set eth0 down");
    let down = doctor(&pair, &["--json"]);
    let stdout = text(&down.stdout);
    assert_eq!(down.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("\"topic\": \"Interface\"") && stdout.contains("`ip link set eth0 up`"), "{stdout}");
    let unknown = pair.command(0, &program("spray")).args(["doctor", "eth9"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no interface eth9; `ip link` lists them"), "{}", text(&unknown.stderr));
}

/// Runs `spray` without any right, though by the user root.
fn without_rights(pair: &Pair, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = pair.command(0, Path::new("setpriv"));
    command.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(program("spray")).args(arguments);
    let output = command.output().unwrap();
    (output.status.code(), text(&output.stderr))
}

#[test]
fn missing_privileges_are_reported_in_one_line_with_an_alternative() {
    if !has_root() {
        return;
    }
    let (pair, folder) = (Pair::new("rights").unwrap(), Folder::new());
    let [here, out] = [folder.join(""), folder.join("out")];
    let pod = spray_test_support::root().join("tests/scenarios/pod.toml").display().to_string();
    for (arguments, parts) in [
        (&["recv", "--insecure", "--interface", "eth0", "--out", &here][..], ["CAP_BPF", "--device udp"]),
        (&["serve", "--insecure", "--interface", "eth0"], ["CAP_BPF", "--device udp"]),
        (&["run", &pod, "--engine", "xdp", "--out", &out, "-q"], ["run as root", "`--engine sim`"]),
        (&["up", &pod, "--name", "rights"], ["run as root", "root (sudo)"]),
    ] {
        let (code, stderr) = without_rights(&pair, arguments);
        assert!(code == Some(2) && parts.iter().all(|part| stderr.contains(part)), "{arguments:?}: {code:?}: {stderr}");
        assert!(stderr.lines().count() == 1 && !stderr.contains("libbpf"), "{arguments:?}: {stderr}");
        assert!(arguments[0] != "up" || !stderr.contains("sim"), "it suggests the simulator: {stderr}");
    }
}

/// Every option in the units for systemd is an option of the command.
#[test]
fn systemd_units_have_valid_command_lines() {
    let units = spray_test_support::root().join("deploy/systemd");
    let folder = Folder::new();
    let key = folder.path().join("key").display().to_string();
    assert!(spray(&["keygen", &key]).status.success());
    for name in ["recv", "serve", "tunnel"] {
        let unit = std::fs::read_to_string(units.join(format!("spray-{name}@.service"))).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/spray ")).unwrap();
        let more = if name == "tunnel" { "--peer 10.0.0.2 --address 10.9.0.1/24" } else { "" };
        let line = line.replace("%d/key", &key).replace("%i", "spray-nope").replace("$OPTIONS", more);
        let line = line.replace("/var/lib/spray/spray-nope", &folder.path().display().to_string());
        super::refused(&line.split_whitespace().collect::<Vec<_>>(), &["no interface spray-nope"]);
    }
}
