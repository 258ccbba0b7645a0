//! Nothing is left behind after a run, a panic or a signal; after SIGKILL `clean` removes the
//! remains.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_core::path::BalancerKind;
use spray_experiments::engine::{Engine, EngineError, Progress};
use spray_switch::{clean, leftovers};
use spray_test_support::Folder;
use spray_tests::running::wait_until;
use spray_tests::{namespaces_of, scenarios, small, spray, testbed, turn};

/// Set in the child process that is killed.
const CHILD: &str = "SPRAY_TESTS_CHILD";

#[test]
fn dropping_a_testbed_removes_it() {
    let Some(_turn) = turn() else { return };
    let pid = std::process::id();
    let testbed = testbed(&small("64 KiB", ""));
    assert_eq!(namespaces_of(pid).len(), 5);
    assert!(leftovers().iter().all(|name| !namespaces_of(pid).contains(name)), "a running process has no leftovers");
    assert!(clean().iter().all(|name| !name.starts_with(&format!("spray-{pid}-"))));
    assert_eq!(namespaces_of(pid).len(), 5, "`clean` ignores running processes");
    drop(testbed);
    assert_eq!(namespaces_of(pid), [""; 0]);
}

#[test]
fn a_panic_during_a_run_removes_everything() {
    let Some(_turn) = turn() else { return };
    let scenario = small("1 MiB", "[emulation]\ndilation = 5000\n");
    let panicking = AssertUnwindSafe(|| {
        let testbed = testbed(&scenario);
        let stop = AtomicBool::new(false);
        let mut progress = |progress: Progress| {
            assert!(!matches!(progress, Progress::Running { delivered_bytes: 1.., .. }), "an intended panic");
        };
        drop(testbed.prepare(&scenario, &mut |_| {}).unwrap().run(BalancerKind::Reps, 1, &mut progress, &stop));
    });
    assert!(catch_unwind(panicking).is_err());
    assert_eq!(namespaces_of(std::process::id()), [""; 0]);
}

#[test]
fn the_stop_flag_ends_a_run() {
    let Some(_turn) = turn() else { return };
    // A complete run would take minutes.
    let scenario = small("1 MiB", "[emulation]\ndilation = 1000000\n");
    let testbed = testbed(&scenario);
    let stop = AtomicBool::new(true);
    let ready = testbed.prepare(&scenario, &mut |_| {}).unwrap();
    let begun = Instant::now();
    assert_eq!(ready.run(BalancerKind::Reps, 1, &mut |_| {}, &stop), Err(EngineError::Stopped));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

fn running(command: &mut Command) -> Child {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    wait_until("namespaces", || namespaces_of(child.id()).len() >= 5);
    std::thread::sleep(Duration::from_millis(300));
    child
}

#[test]
fn sigint_ends_the_command_and_removes_everything() {
    let Some(_turn) = turn() else { return };
    let out = Folder::new();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = spray();
        let mut child =
            running(command.arg("run").arg(scenarios().join("demo-silent-drop.toml")).arg("--out").arg(out.path()));
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success());
        assert_eq!(namespaces_of(child.id()), [""; 0], "{signal}");
    }
}

#[test]
fn a_closed_pipe_leaves_nothing() {
    let Some(_turn) = turn() else { return };
    let mut command = spray();
    command.args(["bench", "veth", "--seconds", "0.1", "--repeat", "1", "--no-latency", "--only", "bare"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts");
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), namespaces_of(child.id())), (Some(Signal::SIGPIPE as i32), Vec::new()));
}

/// The child process of the next test; does nothing when run as a test.
#[test]
fn child_that_is_killed() {
    if std::env::var_os(CHILD).is_some() {
        let _testbed = testbed(&small("64 KiB", ""));
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn the_remains_of_a_killed_process_are_cleaned() {
    let Some(_turn) = turn() else { return };
    let own = std::env::current_exe().unwrap();
    let mut child = running(Command::new(own).args(["--exact", "cleanup::child_that_is_killed"]).env(CHILD, "1"));
    assert!(leftovers().iter().all(|name| !namespaces_of(child.id()).contains(name)));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = namespaces_of(child.id());
    assert_eq!(left.len(), 5);
    let cleaned = clean();
    assert!(left.iter().all(|name| cleaned.contains(name)));
    assert_eq!(namespaces_of(child.id()), [""; 0]);
}
