//! The capabilities that `spray send` and `spray recv` keep while they run, as reported by the
//! kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_benches::net::Pair;
use spray_test_support::Folder;
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{shared_turn, spray};

fn spawn(pair: &Pair, side: usize, command: &mut Command) -> Running {
    command.args(["--interface", Pair::INTERFACE]).stdout(Stdio::null()).stderr(Stdio::piped());
    Running(pair.run_in(side, || command.spawn()).unwrap().unwrap())
}

fn receive(pair: &Pair, out: &Path, rest: &[&str]) -> Running {
    let from = Pair::address(1, false).to_string();
    spawn(pair, 1, spray().args(["recv", "--insecure", "--from", &from, "--out"]).arg(out).args(rest)).listening()
}

fn send(pair: &Pair, path: &Path) -> Running {
    // 24 MiB take 2.5 s.
    let slow = ["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.08"];
    let to = Pair::address(1, false).to_string();
    spawn(pair, 0, spray().arg("send").arg(path).args(["--insecure", "--to", &to]).args(slow))
}

/// Returns the fields of `/proc` for each thread of a process.
fn threads(process: &Running) -> Vec<BTreeMap<String, String>> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.0.id())).unwrap().flatten();
    let lines = |text: String| {
        let pairs = text.lines().filter_map(|line| line.split_once(":\t"));
        pairs.map(|(name, value)| (name.into(), value.trim().into())).collect()
    };
    // A thread may end in between.
    tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok()).map(lines).collect()
}

/// Checks that every thread has these capabilities, and cannot gain others.
fn assert_confined(process: &Running, capabilities: &str) {
    // A thread's name is set when it first runs.
    wait_until("its threads", || {
        let threads = threads(process);
        ["spray-file", "spray-routes"].iter().all(|name| threads.iter().any(|thread| thread["Name"] == *name))
    });
    for thread in &threads(process) {
        let expected = [
            ("CapEff", capabilities),
            ("CapPrm", capabilities),
            ("CapInh", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("CapAmb", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
            ("Seccomp_filters", "2"),
        ];
        for (name, value) in expected {
            assert_eq!(thread[name], value, "{name} of {}", thread["Name"]);
        }
    }
}

const NONE: &str = "0000000000000000";
/// CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
const OVERRIDE: &str = "0000000000000002";
const READ_SEARCH: &str = "0000000000000004";

#[test]
//= docs/specs/endpoint.md#END-29 its capabilities
fn both_ends_have_no_privileges_during_the_transfer_of_a_folder() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (tree, out) = (folder.path().join("tree"), inbox(&folder));
    fs::create_dir_all(tree.join("deep")).unwrap();
    fs::rename(payload(&folder, 24 << 20), tree.join("deep/payload")).unwrap();
    let mut receiving = receive(&pair, &out, &[]);
    let mut sending = send(&pair, &tree);
    wait_until("the first of the file", || {
        fs::read_dir(&out).unwrap().flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".partial"))
    });
    assert_confined(&receiving, NONE);
    assert_confined(&sending, NONE);
    assert!(sending.is_running() && receiving.is_running(), "it was too fast");
    let (sent, received) = (sending.end(), receiving.end());
    let stderr = sending.stderr() + &receiving.stderr();
    assert!(sent.success() && received.success() && !stderr.contains("warning: this kernel"), "{stderr}");
    let same = |name: &str| fs::read(tree.join(name)).unwrap() == fs::read(out.join("tree").join(name)).unwrap();
    assert!(same("deep/payload"));
}

/// Of root's capabilities only access to other users' files is left, and only to those that were
/// named.
#[test]
//= docs/specs/endpoint.md#END-29 files of other users
fn files_of_another_user_are_accessed_with_one_capability() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let out = inbox(&folder);
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::rename(payload(&folder, 24 << 20), theirs.join("payload")).unwrap();
    for (path, mode) in [(&theirs.join("payload"), 0o600), (&theirs, 0o700), (&out, 0o755)] {
        std::os::unix::fs::chown(path, Some(12345), Some(12345)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).unwrap();
    }
    let mut receiving = receive(&pair, &out, &["--keep"]);
    let mut sending = send(&pair, &theirs.join("payload"));
    wait_until("the first of the file", || fs::read_dir(&out).unwrap().count() > 0);
    assert_confined(&receiving, OVERRIDE);
    assert_confined(&sending, READ_SEARCH);
    assert!(sending.end().success(), "{}", sending.stderr());
    kill(Pid::from_raw(receiving.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(receiving.end().code(), Some(130), "{}", receiving.stderr());
    assert!(fs::read(theirs.join("payload")).unwrap() == fs::read(out.join("payload")).unwrap());
}

/// Ctrl-C during a transfer: the partial file is removed, and a second transfer succeeds.
#[test]
fn an_interrupted_confined_transfer_leaves_nothing() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (file, out) = (payload(&folder, 24 << 20), inbox(&folder));
    let mut receiving = receive(&pair, &out, &[]);
    let mut sending = send(&pair, &file);
    let arrived =
        || fs::read_dir(&out).unwrap().flatten().any(|entry| entry.metadata().is_ok_and(|it| it.len() > 4 << 20));
    wait_until("some of the file", arrived);
    kill(Pid::from_raw(receiving.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!((receiving.end().code(), sending.end().code()), (Some(130), Some(1)));
    let stderr = receiving.stderr();
    assert!(stderr.contains("bytes of payload had arrived, and were removed"), "{stderr}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    let mut receiving = receive(&pair, &out, &[]);
    let mut sending = send(&pair, &file);
    assert!(sending.end().success() && receiving.end().success(), "{}{}", sending.stderr(), receiving.stderr());
    assert!(fs::read(&file).unwrap() == fs::read(out.join("payload")).unwrap());
}

/// Returns a field of each BPF object of this kind that a process holds, from `/proc`.
fn bpf_objects(process: &Running, kind: &str, field: &str) -> Vec<String> {
    let folder = |name: &str| format!("/proc/{}/{name}", process.0.id());
    let descriptors = fs::read_dir(folder("fd")).unwrap().flatten();
    let is_of_kind = |path: &Path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy() == kind);
    let objects = descriptors.filter(|entry| is_of_kind(&entry.path())).map(|entry| {
        let info = fs::read_to_string(Path::new(&folder("fdinfo")).join(entry.file_name())).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(":\t"));
        line.unwrap_or_else(|| panic!("no {field}: {info}")).trim().to_string()
    });
    objects.collect()
}

/// The filter permits BPF_LINK_CREATE, and no command that loads or finds a program. A process can
/// therefore attach only programs that it holds.
#[test]
//= docs/specs/endpoint.md#END-29 those for new sockets, processes and programs
fn the_only_program_that_a_confined_receiver_holds_is_the_one_that_steers() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let out = inbox(&folder);
    for (device, count) in [("xdp", 1), ("udp", 0)] {
        let mut receiving = receive(&pair, &out, &["--device", device]);
        let confined = || threads(&receiving).iter().all(|thread| thread["Seccomp_filters"] == "2");
        wait_until("the filter", confined);
        let [programs, attached] =
            ["anon_inode:bpf-prog", "anon_inode:bpf_link"].map(|kind| bpf_objects(&receiving, kind, "prog_id"));
        assert_eq!((programs.len(), &programs), (count, &attached), "{device}");
        let types = bpf_objects(&receiving, "anon_inode:bpf-prog", "prog_type");
        const XDP: &str = "6";
        assert!(types.iter().all(|kind| kind == XDP), "{types:?}");
        receiving.kill();
    }
}
