//! The table in `docs/tutorial.md` is generated from the runs of its scenario.

use spray_core::path::BalancerKind;
use spray_experiments::results::{Spread, WorkloadSummary};
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{Simulation, run_parallel};

const HEAD: &str = "| balancer | mean us (95 %) | slowest us (95 %) |\n|---|---|---|\n";

#[test]
fn the_documentation_of_the_tutorial_has_its_runs() {
    let file = spray_test_support::root().join("docs/tutorial.md");
    let scenario = Scenario::load(&spray_test_support::root().join("tests/scenarios/flapping.toml")).unwrap();
    let rows = scenario.transport.balancer.iter().map(|balancer| row(&scenario, *balancer));
    let table = HEAD.to_string() + &rows.collect::<String>();
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(HEAD).unwrap();
    let rows = rest.lines().take_while(|line| line.starts_with('|')).map(|line| line.len() + 1).sum();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{table}{}", &rest[rows..])).unwrap();
    } else {
        assert_eq!(
            HEAD.to_string() + &rest[..rows],
            table,
            "docs/tutorial.md is behind the code (UPDATE_DOCS=1 writes it)"
        );
    }
}

/// Returns the row of the job's flows with a balancer, over the scenario's seeds.
fn row(scenario: &Scenario, balancer: BalancerKind) -> String {
    let simulation = Simulation::new(scenario);
    let job = |index: usize| {
        let run = simulation.run(balancer, scenario.seeds[index], &[]).unwrap();
        Ok::<_, String>(run.workloads().into_iter().find(|own| own.name == "job").unwrap())
    };
    let jobs = run_parallel(scenario.seeds.len(), 2, job).unwrap();
    assert!(
        jobs.iter().all(|job| job.flows.flows_completed == job.flows.flows_total),
        "times must not be lower bounds"
    );
    let cell = |of: fn(&WorkloadSummary) -> Option<f64>| {
        let spread = Spread::of(&jobs.iter().filter_map(of).collect::<Vec<_>>());
        let [low, high] = spread.ci95.unwrap();
        format!("{:.0} ({low:.0} to {high:.0})", spread.mean)
    };
    format!("| {balancer} | {} | {} |\n", cell(|job| job.flows.fct_mean_us), cell(|job| job.flows.fct_max_us))
}
