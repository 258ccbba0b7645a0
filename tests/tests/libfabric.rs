//! The libfabric provider with libfabric's own unmodified programs.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use spray_benches::net::Pair;
use spray_nic::Host;
use spray_nic::keys::PrivateKey;
use spray_test_support::{Folder, skip, text};
use spray_tests::routers::Routers;
use spray_tests::running::{Running, wait_until};
use spray_tests::{provider, shared_turn};

/// Returns whether libfabric's programs are installed. If not, the calling test skips.
fn has_programs() -> bool {
    let found = ["fi_pingpong", "fi_info"].iter().all(|name| Command::new(name).arg("-h").output().is_ok());
    if !found {
        skip("needs fi_pingpong and fi_info (Debian: libfabric-bin)");
    }
    found
}

fn libfabric(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("FI_PROVIDER_PATH", provider()).env("FI_LOG_LEVEL", "warn").env("FI_SPRAY_INSECURE", "1");
    command.args(["-p", "spray"]);
    command
}

fn pingpong(rest: &[&str]) -> Command {
    let mut command = libfabric("fi_pingpong");
    command.args(["-e", "rdm", "-c"]).args(rest).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns standard output and standard error of a process that has ended.
fn outputs(running: &mut Running) -> (String, String) {
    let mut lines = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut lines).unwrap();
    (lines, running.stderr())
}

/// Whether a process succeeded, and its output.
type End = (bool, String, String);

/// Runs `fi_pingpong` as a server on side 1, and as clients on side 0 until one connects. Returns
/// the server, and the result of that client.
fn connect_pair(start: impl Fn(usize, Command) -> Running, server: IpAddr, rest: &[&str]) -> (Running, End) {
    let mut serving = start(1, pingpong(rest));
    let mut answer = None;
    wait_until("the client to find the server", || {
        let mut command = pingpong(rest);
        command.arg(server.to_string());
        let mut client = start(0, command);
        let ended = client.end();
        let (lines, errors) = outputs(&mut client);
        let is_early = errors.contains("Connection refused") && serving.is_running();
        answer = Some((ended.success(), lines, errors));
        !is_early
    });
    (serving, answer.unwrap())
}

/// As [`connect_pair`], and waits for the end of the server.
fn run_pair(start: impl Fn(usize, Command) -> Running, server: IpAddr, rest: &[&str]) -> [End; 2] {
    let (mut serving, client) = connect_pair(start, server, rest);
    let ended = serving.end();
    let (lines, errors) = outputs(&mut serving);
    [client, (ended.success(), lines, errors)]
}

/// The number of sizes of `-S all`, from 0 bytes to 6 MiB.
const SIZES: usize = 46;

/// Checks that both ends have figures for this number of sizes, and no errors.
fn check(ends: &[End], sizes: usize) {
    for (is_well, lines, errors) in ends {
        let figures = lines.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).count();
        assert!(*is_well && figures == sizes, "{errors}{lines}");
    }
}

#[test]
fn pingpong_runs_unmodified() {
    let Some(_turn) = shared_turn() else { return };
    if !has_programs() {
        return;
    }
    let pair = Pair::new().unwrap();
    let info = pair.run_in(0, || libfabric("fi_info").output()).unwrap().unwrap();
    assert!(text(&info.stdout).contains("domain: eth0\n"), "{}", text(&info.stdout));
    let start = |side, mut command: Command| Running(pair.run_in(side, || command.spawn()).unwrap().unwrap());
    for kind in ["msg", "tagged"] {
        let ends = run_pair(start, Pair::address(1, false), &["-m", kind, "-S", "all", "-I", "3"]);
        check(&ends, SIZES);
    }
}

#[test]
fn pingpong_runs_over_many_paths() {
    let Some(_turn) = shared_turn() else { return };
    if !has_programs() {
        return;
    }
    let routers = Routers::new().unwrap();
    let start = |side, mut command: Command| Running(routers.run_in(side, || command.spawn()).unwrap().unwrap());
    let ends = run_pair(start, Routers::address(1, 0).into(), &["-S", "1048576", "-I", "8"]);
    check(&ends, 1);
    // The traffic passed the kernel's routers.
    assert!(routers.bytes().unwrap() > 8 << 20);
}

#[test]
fn only_hosts_with_listed_keys_connect() {
    let Some(_turn) = shared_turn() else { return };
    if !has_programs() {
        return;
    }
    let (pair, folder) = (Pair::new().unwrap(), Folder::new());
    let keys = ["a", "b"].map(|name| {
        let file = folder.file(name, PrivateKey::generate().unwrap().reveal());
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        file
    });
    let start = |side: usize, mut command: Command, key: &str| {
        command.env_remove("FI_SPRAY_INSECURE").env("FI_SPRAY_KEY", key);
        Running(pair.run_in(side, || command.spawn()).unwrap().unwrap())
    };
    let (server, size) = (Pair::address(1, false), ["-S", "65536", "-I", "5"]);
    check(&run_pair(|side, command| start(side, command, &keys[0]), server, &size), 1);
    // The server continues to wait.
    let (_serving, (is_well, _, errors)) =
        connect_pair(|side, command| start(side, command, &keys[side]), server, &size);
    assert!(!is_well && errors.contains("has another key than expected"), "{errors}");
}

#[test]
fn without_keys_explicit_consent_is_required() {
    let Some(_turn) = shared_turn() else { return };
    if !has_programs() {
        return;
    }
    let pair = Pair::new().unwrap();
    let start = |side, mut command: Command| {
        command.env_remove("FI_SPRAY_INSECURE");
        Running(pair.run_in(side, || command.spawn()).unwrap().unwrap())
    };
    let [(client_is_well, ..), (server_is_well, _, errors)] = run_pair(start, Pair::address(1, false), &["-I", "1"]);
    assert!(!client_is_well && !server_is_well && errors.contains("set FI_SPRAY_INSECURE=1"), "{errors}");
}

#[test]
fn an_interface_in_use_is_rejected() {
    let Some(_turn) = shared_turn() else { return };
    if !has_programs() {
        return;
    }
    let pair = Pair::new().unwrap();
    let server = Pair::address(1, false);
    let _taken = pair.run_in(1, || Host::open(Pair::INTERFACE)).unwrap().unwrap();
    let start = |side, mut command: Command| Running(pair.run_in(side, || command.spawn()).unwrap().unwrap());
    let [(client_is_well, ..), (server_is_well, _, errors)] = run_pair(start, server, &["-I", "1"]);
    assert!(!client_is_well && !server_is_well && errors.contains("interface eth0 is in use"), "{errors}");
}
