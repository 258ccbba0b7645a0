//! Inputs beyond those of the paper that were also run on the REPS simulator.

use spray_core::path::BalancerKind;
use spray_experiments::sim::{published, same_for_all_pairs};
use spray_fabric::{LinkAction, LinkEvent};

use super::{Figures, average, runs};

const LEAF_SPINE_64: &str = include_str!("../../../../tests/reference/leafspine_64_400g.topo");

/// Messages of 2 MiB over 64 hosts with `ops`, and the results of the published simulator with
/// seeds 1 to 24: mean and maximum completion time in us. Both vary little between seeds: the
/// maximum by 3 % (one standard deviation), that of 8 MiB with 32 entropy values by 8 %.
struct Case {
    slow: Option<&'static str>,
    evs: u32,
    mean_us: f64,
    max_us: f64,
}

const CASES: [Case; 2] = [
    Case { slow: Some("leaf0->spine0"), evs: 65_535, mean_us: 54.21, max_us: 63.29 },
    Case { slow: None, evs: 32, mean_us: 57.88, max_us: 64.66 },
];
const SEEDS: u64 = 24;

/// Returns a permutation of 64 hosts.
fn matrix() -> String {
    let flow = |src: usize| format!("{src}->{} id {} start 0 size {}\n", (5 * src + 9) % 64, src + 1, 2 << 20);
    "Nodes 64\nConnections 64\n".to_string() + &(0..64).map(flow).collect::<String>()
}

fn largest_and_mean(case: &Case) -> (f64, f64) {
    let mut scenario = published("short messages", LEAF_SPINE_64, &matrix());
    same_for_all_pairs(&mut scenario);
    scenario.transport.evs = Some(case.evs);
    if let Some(name) = case.slow {
        let links = scenario.network.links_named(name).unwrap();
        let action = LinkAction::Rate { ppm: 500_000 };
        scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
    }
    let runs: Vec<Figures> = runs(&scenario, BalancerKind::Ops, &|_| Vec::new(), SEEDS);
    (average(&runs, |run| run.max_us), average(&runs, |run| run.mean_us))
}

/// With a full queue at a slow link, the slowest flow would take 12 % longer.
//= docs/specs/switch.md#SW-23 queues of slow links
#[test]
fn short_messages_take_as_long_as_in_the_published_simulator() {
    for case in CASES {
        let (max_us, mean_us) = largest_and_mean(&case);
        let found = format!("slow {:?}, {} EVs: mean {mean_us:.2} us, largest {max_us:.2}", case.slow, case.evs);
        assert!((mean_us / case.mean_us - 1.0).abs() < 0.01, "{found}");
        assert!((max_us / case.max_us - 1.0).abs() < 0.03, "{found}");
    }
}
