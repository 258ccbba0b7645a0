//! Set-ups that are killed at arbitrary times: `spray clean` removes everything that they left, and
//! nothing of other processes.
#![expect(clippy::disallowed_methods, reason = "when real processes are killed is what is tested")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_core::path::BalancerKind;
use spray_test_support::Folder;
use spray_tests::bpf_objects::BpfObjects;
use spray_tests::deployment::run;
use spray_tests::machines::Machines;
use spray_tests::running::{PATIENCE, Running, wait_until};
use spray_tests::{assert_sound, namespaces_of, run_on, scenarios, small, spray, testbed, turn};

/// The number of times at which a set-up is killed.
const MOMENTS: u32 = 10;

/// Returns a field of `/proc/PID/status`, if the process exists.
fn status(process: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(field)?.trim().to_string()))
}

/// Returns whether a process has ended, with all its threads: a zombie may remain until its parent
/// waits for it.
fn is_over(process: u32) -> bool {
    let state = status(process, "State:");
    state.is_none_or(|state| state.starts_with('Z')) && status(process, "Threads:").is_none_or(|count| count == "1")
}

/// Returns the child processes of this process.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&process| status(process, "PPid:") == Some(parent.to_string())).collect()
}

fn signal(process: u32, signal: Signal) {
    // Fails if it has ended.
    let _ = kill(Pid::from_raw(process as i32), signal);
}

/// Starts a command, and kills it and its child after some time, or when it has ended. Returns
/// both, their objects, and the elapsed time.
fn killed_after(command: &mut Command, patience: Duration) -> (BTreeSet<u32>, BpfObjects, Duration) {
    let mut bpf_objects = BpfObjects::before();
    let begun = Instant::now();
    let mut running = Running(command.spawn().unwrap());
    let first = running.0.id();
    let mut all = BTreeSet::from([first]);
    while begun.elapsed() < patience && running.is_running() {
        all.extend(children(first));
        all.iter().for_each(|&process| bpf_objects.note(process));
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = begun.elapsed();
    // While stopped it cannot start another child.
    signal(first, Signal::SIGSTOP);
    all.extend(children(first));
    all.iter().for_each(|&process| bpf_objects.note(process));
    all.iter().for_each(|&process| signal(process, Signal::SIGKILL));
    running.end();
    wait_until("the processes to end", || all.iter().all(|&process| is_over(process)));
    (all, bpf_objects, took)
}

/// Kills the processes of `command` at several times until it has ended, or until `most`; after
/// each `clean` removes the remains. `check` checks further conditions.
fn kill_at_moments(mut command: Command, most: Duration, check: impl Fn()) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut whole = most;
    // The first one measures the duration.
    for moment in (0..=MOMENTS).rev() {
        let (all, bpf_objects, took) = killed_after(&mut command, whole * moment / MOMENTS);
        whole = if moment == MOMENTS { took } else { whole };
        let left: usize = all.iter().map(|&process| namespaces_of(process).len()).sum();
        let (code, stdout, errors) = run(&["clean"]);
        assert_eq!(code, 0, "{errors}");
        eprintln!(
            "after {took:?} of {whole:?}: {left} namespaces and {:?} BPF objects; {stdout}",
            bpf_objects.counts()
        );
        for process in all {
            assert_eq!(namespaces_of(process), [""; 0], "after {took:?}");
            let files = fs::read_dir("/etc/netns").into_iter().flatten().flatten();
            let mut names = files.map(|entry| entry.file_name().into_string().unwrap());
            assert!(!names.any(|name| name.starts_with(&format!("spray-{process}-"))), "after {took:?}");
        }
        bpf_objects.assert_gone();
        check();
    }
}

#[test]
fn a_run_killed_during_set_up_leaves_nothing_and_others_are_unaffected() {
    let Some(_turn) = turn() else { return };
    let scenario = small("64 KiB", "");
    let other = testbed(&scenario);
    let folder = Folder::new();
    let mut command = spray();
    command.arg("run").arg(scenarios().join("demo-healthy.toml")).arg("--out").arg(folder.path());
    // By then it has started to send.
    kill_at_moments(command, Duration::from_secs(1), || {});
    assert_eq!(namespaces_of(std::process::id()).len(), 5);
    assert_sound(&run_on(&other, &scenario, BalancerKind::Reps).unwrap());
}

#[test]
fn a_fabric_killed_during_set_up_leaves_nothing_after_clean() {
    let Some(_turn) = turn() else { return };
    let name = format!("early-{}", std::process::id());
    let mut command = spray();
    command.arg("up").arg(scenarios().join("pod.toml")).args(["--name", &name, "-q"]);
    kill_at_moments(command, PATIENCE, || assert!(!spray_switch::control_socket(&name).exists()));
}

#[test]
fn switches_killed_during_set_up_leave_the_interfaces_unchanged() {
    let Some(_turn) = turn() else { return };
    let machines = Machines::new("early");
    let mut command = spray();
    command.args(machines.arguments());
    kill_at_moments(command, PATIENCE, || machines.assert_as_it_was());
}

#[test]
fn two_concurrent_runs_do_not_interfere() {
    let Some(_turn) = turn() else { return };
    let folders = [Folder::new(), Folder::new()];
    let mut both = folders.each_ref().map(|folder| {
        let mut command = spray();
        command.arg("run").arg(scenarios().join("demo-healthy.toml")).arg("--out").arg(folder.path());
        command.args(["--set", "workload.bytes=\"256 KiB\""]).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    });
    for running in &mut both {
        assert!(running.end().success(), "{}", running.stderr());
    }
    both.iter().for_each(|running| assert_eq!(namespaces_of(running.0.id()), [""; 0]));
}
