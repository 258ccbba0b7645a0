//! `spray doctor` loads every program, and examines an interface.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use spray_test_support::{Pair, has_root, program, text};

use super::spray;

#[test]
fn every_program_is_loaded() {
    if !has_root() {
        return;
    }
    let says = text(&spray(&["doctor"]).stdout);
    let line = says.lines().find(|line| line.contains("XDP programs")).expect("a line on the programs");
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
    let says = text(&sound.stdout);
    assert_eq!(sound.status.code(), Some(0), "{says}{}", text(&sound.stderr));
    for part in ["\nQueues\n", "ok    BPF JIT", "1 of 1 queues bind and send, 16 echoes of each came back"] {
        assert!(says.contains(part), "{part}: {says}");
    }
    ip(&pair, "link set eth0 down");
    let down = doctor(&pair, &["--json"]);
    let says = text(&down.stdout);
    assert_eq!(down.status.code(), Some(1), "{says}");
    assert!(says.contains("\"topic\": \"Interface\"") && says.contains("`ip link set eth0 up`"), "{says}");
    let unknown = pair.command(0, &program("spray")).args(["doctor", "eth9"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no interface eth9; `ip link` lists them"), "{}", text(&unknown.stderr));
}

/// Whenever it is killed, what it has changed by then is restored.
#[test]
fn a_fix_that_is_killed_is_undone() {
    if !has_root() {
        return;
    }
    let pair = Pair::new("killed").unwrap();
    for wait in 0..12 {
        ip(&pair, "link set eth0 mtu 9000");
        let mut fix = pair.command(0, &program("spray"));
        fix.args(["doctor", "eth0", "--fix", "--no-probe"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut fix = fix.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(4 * wait));
        // `ip netns exec` has become the command, so this is the doctor's own end: SIGKILL.
        fix.kill().unwrap();
        fix.wait().unwrap();
        let undone = doctor(&pair, &["--undo"]);
        assert!(text(&undone.stdout).contains("Restored"), "{}", text(&undone.stderr));
        let now = ip(&pair, "link show dev eth0");
        assert!(now.contains("mtu 9000"), "after {wait}: {now}");
        assert!(text(&doctor(&pair, &["--undo"]).stdout).contains("no --fix has changed"));
    }
}
