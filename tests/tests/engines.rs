//! One scenario on both engines: they run the same hosts and switches, and so give the same completion times.

use spray_core::path::BalancerKind;
use spray_experiments::results::RunResult;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::Simulation;
use spray_experiments::xdp::Xdp;
use spray_tests::{assert_sound, run_on, scenarios, testbed, turn};

/// Largest difference of the engines in mean and largest completion time, in per cent.
const MEAN_PERCENT: f64 = 5.0;
const MAX_PERCENT: f64 = 10.0;
/// Half of a link's latency: a run whose frames are later than this says little about the engines.
const VOID_LATENESS_US: f64 = 0.5;
const TRIES: u32 = 3;

#[test]
fn packets_and_the_simulator_agree_on_a_healthy_fabric() {
    agree("demo-healthy.toml");
}

#[test]
fn packets_and_the_simulator_agree_on_a_slow_uplink() {
    agree("demo-slow-uplink.toml");
}

fn agree(file: &str) {
    let Some(_turn) = turn() else { return };
    let scenario = Scenario::load(&scenarios().join(file)).unwrap_or_else(|error| panic!("{error}"));
    let testbed = testbed(&scenario);
    let simulation = Simulation::new(&scenario);
    for balancer in [BalancerKind::Ecmp, BalancerKind::Ops, BalancerKind::Reps] {
        let simulated = simulation.run(balancer, scenario.seed, &[]).unwrap();
        let emulated = emulated(&testbed, &scenario, balancer);
        let [(mean, max), (sim_mean, sim_max)] = [&emulated, &simulated].map(completion);
        let within = |ours: f64, other: f64, percent: f64| (ours / other - 1.0).abs() * 100.0 <= percent;
        assert!(within(mean, sim_mean, MEAN_PERCENT), "{balancer}: mean {mean:.1} us, simulated {sim_mean:.1}");
        assert!(within(max, sim_max, MAX_PERCENT), "{balancer}: largest {max:.1} us, simulated {sim_max:.1}");
    }
}

/// A run on packets. It is repeated only if its own lateness makes it void.
fn emulated(testbed: &Xdp, scenario: &Scenario, balancer: BalancerKind) -> RunResult {
    for _ in 0..TRIES {
        let result = run_on(testbed, scenario, balancer).unwrap();
        assert_sound(&result);
        if result.lateness_p99_us <= VOID_LATENESS_US {
            return result;
        }
        eprintln!("void: {} late frames, p99 {} us", result.late_packets, result.lateness_p99_us);
    }
    panic!("{TRIES} runs were all too late to count: this machine is too busy");
}

/// Mean and largest completion time, in us; every flow completed.
fn completion(result: &RunResult) -> (f64, f64) {
    let times: Vec<f64> = result.flows.iter().map(|flow| flow.fct_us.expect("a complete flow")).collect();
    (times.iter().sum::<f64>() / times.len() as f64, times.iter().copied().fold(0.0, f64::max))
}
