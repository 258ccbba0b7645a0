//! User-defined algorithms of another crate in whole scenarios.

use spray_core::cc::{CustomCc, Nscc, NsccConfig, Scheme as _};
use spray_core::path::{BalancerKind, CustomBalancer, Reps, RepsConfig, Scheme as _};
use spray_experiments::scenario::{CustomAlgorithms, Scenario};
use spray_experiments::sim::Simulation;

const SCENARIO: &str = "
    name = 'own'
    [topology]
    kind = 'leaf-spine'
    leaves = 2
    spines = 4
    hosts_per_leaf = 4
    [workload]
    kind = 'cross-leaf-permutation'
    bytes = '1 MiB'
    [transport]
    cc = 'nscc'
";

#[test]
fn a_run_is_reproducible_and_has_the_names_of_its_algorithms() {
    let mut scenario = Scenario::parse("own.toml".as_ref(), SCENARIO).unwrap();
    let ours = Simulation::new(&scenario).run(BalancerKind::Reps, 1, &[]).unwrap();
    scenario.own = CustomAlgorithms {
        balancer: Some(CustomBalancer {
            name: "my-reps",
            make: &|path, rng| Box::new(Reps::make(&RepsConfig::default(), path, rng)),
        }),
        cc: Some(CustomCc { name: "my-nscc", make: &|path| Box::new(Nscc::make(&NsccConfig::default(), path)) }),
    };
    let theirs = Simulation::new(&scenario).run(BalancerKind::Ops, 1, &[]).unwrap();
    assert_eq!((theirs.balancer.as_str(), theirs.congestion_control.as_str()), ("my-reps", "my-nscc"));
    let times = |result: &spray_experiments::results::RunResult| -> Vec<_> {
        result.flows.iter().map(|flow| (flow.fct_us.unwrap().to_bits(), flow.sender.retransmits)).collect()
    };
    assert_eq!(times(&ours), times(&theirs));
}
