//! Helpers of the tests in `tests/`, which run in real namespaces. Without root those tests skip.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

pub mod boxes;
pub mod bpf_objects;
pub mod chaos;
pub mod content;
pub mod deployment;
pub mod flood;
pub mod forged;
pub mod impostor;
pub mod machines;
pub mod real_network;
pub mod routers;
pub mod running;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use spray_core::path::BalancerKind;
use spray_experiments::engine::{Engine, EngineError};
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::xdp::Xdp;
use spray_switch::program::SteerProgram;
use spray_test_support::{built, has_root};

/// Held for writing by tests that measure times: a concurrent testbed would share the cores and
/// make frames late.
static TURN: RwLock<()> = RwLock::new(());

/// Waits until no other test runs here. Without root the test skips, and this returns `None`.
pub fn turn() -> Option<RwLockWriteGuard<'static, ()>> {
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    can_run().then_some(turn)
}

/// As [`turn`], for tests that do not measure times, which may run concurrently.
pub fn shared_turn() -> Option<RwLockReadGuard<'static, ()>> {
    let turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    can_run().then_some(turn)
}

/// Returns whether tests in namespaces can run here; without root reports that the test skips.
fn can_run() -> bool {
    if !has_root() {
        return false;
    }
    // With root, every other error is a failure, not a reason to skip.
    SteerProgram::load([0; 6], &[], spray_wire::Ports::DEFAULT).unwrap_or_else(|error| panic!("{error}"));
    true
}

/// Returns a fabric of two leaves, two spines and two hosts per leaf, on which every host sends
/// `bytes` to the other leaf, with the further settings in `rest`.
pub fn small(bytes: &str, rest: &str) -> Scenario {
    let text = format!(
        "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"{bytes}\"\n{rest}"
    );
    parse(&text)
}

/// Parses the scenario in `text`, with paths relative to `tests/scenarios`.
pub fn parse(text: &str) -> Scenario {
    Scenario::parse(&scenarios().join("test.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the folder of the examples.
pub fn scenarios() -> PathBuf {
    spray_test_support::root().join("tests/scenarios")
}

/// Creates a testbed for `scenario`.
pub fn testbed(scenario: &Scenario) -> Xdp {
    let testbed = Xdp::default();
    let made = testbed.prepare(scenario, &mut |_| {}).map(drop);
    made.unwrap_or_else(|error| panic!("{error}"));
    testbed
}

/// Runs `scenario` once on a new testbed.
pub fn run(scenario: &Scenario) -> RunResult {
    let balancer = scenario.transport.balancer[0];
    run_on(&Xdp::default(), scenario, balancer).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `scenario` on `testbed`.
pub fn run_on(testbed: &Xdp, scenario: &Scenario, balancer: BalancerKind) -> Result<RunResult, EngineError> {
    testbed.prepare(scenario, &mut |_| {})?.run(balancer, scenario.seed, &mut |_| {}, &AtomicBool::new(false))
}

/// Runs `scenario` on `testbed` for a test that measures times. The run is sound, and repeated only
/// if its own lateness makes it void.
pub fn in_time(testbed: &Xdp, scenario: &Scenario, balancer: BalancerKind) -> RunResult {
    for _ in 0..TRIES {
        let result = run_on(testbed, scenario, balancer).unwrap_or_else(|error| panic!("{error}"));
        assert_sound(&result);
        if result.engine_figures.lateness_p99_us <= VOID_LATENESS_US {
            return result;
        }
        eprintln!(
            "void: {} late frames, p99 {} us",
            result.engine_figures.late_packets, result.engine_figures.lateness_p99_us
        );
    }
    panic!("all {TRIES} runs were too late to be valid: this machine is too busy");
}

/// Half of a link's latency: if frames are later than this, times are those of the machine, not of
/// the fabric.
const VOID_LATENESS_US: f64 = 0.5;
const TRIES: u32 = 10;

/// Checks the invariants of a run: all flows are complete and verified, and the testbed itself lost
/// nothing.
pub fn assert_sound(result: &RunResult) {
    for flow in &result.flows {
        assert!(flow.fct_us.is_some_and(|fct| fct > 0.0), "{flow:?}\n{:?}", result.events);
    }
    assert_eq!(result.payload_verified, Some(true));
    assert_eq!(result.testbed_losses.total(), 0, "{:?}", result.testbed_losses);
    assert_eq!(result.engine_figures.invalid_frames, 0);
}

/// Returns the network namespaces created by process `pid`.
pub fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("spray-{pid}-"))).collect()
}

/// Returns the `spray` command.
pub fn spray() -> Command {
    Command::new(built("spray", &["--package", "spray"]))
}

/// Returns the folder of the libfabric provider, which is built along with the tests.
pub fn provider() -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    own.parent().expect("cargo's layout").into()
}
