//! Input files: topologies, matrices, failures, scenarios.

use std::path::Path;
use std::sync::OnceLock;

use spray_experiments::check::kind;
use spray_experiments::scenario::{Document, Scenario, Settings};
use spray_experiments::workload::{Distribution, parse_matrix};
use spray_fabric::limits::{MAX_FLOWS, MAX_MESSAGE_BYTES, MAX_TIME_PS, Size};
use spray_fabric::{FailureContext, FailureFile, FatTree, FileError, LeafSpine, Network, TopoFile};

/// Larger fabrics take longer without finding more failures.
const SMALL: usize = 2_000;

/// Checks that the position of an error is in the file.
fn check_place(text: &str, error: &FileError) {
    assert!((1..=text.lines().count().max(1)).contains(&error.line), "{error:?}");
    assert!(error.column >= 1 && !error.message.is_empty(), "{error:?}");
}

/// Checks that an accepted `.topo` file describes a fabric of its stated size, within the limits.
pub(crate) fn topology(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match TopoFile::parse(text) {
        Err(error) => check_place(text, &error),
        Ok(file) => {
            let size = file.size();
            assert_eq!(size.check(), Ok(()));
            if size.cables <= SMALL && size.switches <= SMALL {
                check_network(&file.network(), size);
            }
        }
    }
}

fn check_network(network: &Network, size: Size) {
    network.check().expect("every host has a path to every other");
    let built = (network.hosts.len(), network.switches.len(), network.links.len() / 2);
    assert_eq!(built, (size.hosts, size.switches, size.cables));
}

/// Checks that an accepted `.cm` file has flows between existing hosts, within the limits.
pub(crate) fn matrix(bytes: &[u8]) {
    const HOSTS: usize = 128;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse_matrix(text, HOSTS) {
        Err(error) => check_place(text, &error),
        Ok(matrix) => {
            assert!((1..=MAX_FLOWS).contains(&matrix.flows.len()));
            for flow in &matrix.flows {
                assert!(flow.src < HOSTS && flow.dst < HOSTS && flow.src != flow.dst, "{flow:?}");
                assert!((1..=MAX_MESSAGE_BYTES).contains(&flow.bytes) && flow.start_ps <= MAX_TIME_PS, "{flow:?}");
                if let Some(first) = flow.connection {
                    let first = matrix.flows[first as usize];
                    assert!((first.src, first.dst, first.connection) == (flow.src, flow.dst, None), "{flow:?}");
                }
            }
            if let Some(triggers) = matrix.triggers {
                assert_eq!(triggers.of_flow.len(), matrix.flows.len());
                assert_eq!(triggers.never_started(), None);
            }
        }
    }
}

/// Checks that an accepted distribution draws its sizes, and that every text has a kind or a message.
pub(crate) fn sizes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(kind(text).is_ok() || kind(text).is_err_and(|message| message.contains("allowed: ")));
    match Distribution::parse(text, MAX_MESSAGE_BYTES) {
        Err(error) => check_place(text, &error),
        Ok(sizes) => {
            assert!(sizes.mean_bytes() > 0.0);
            let drawn: Vec<u64> = (0..64).map(|step| sizes.draw(step << 58)).collect();
            assert!(drawn.is_sorted() && drawn[0] >= 1 && drawn[63] <= MAX_MESSAGE_BYTES, "{drawn:?}");
            let shares: Vec<f64> = drawn.iter().map(|bytes| sizes.share_up_to(*bytes as f64)).collect();
            assert!(shares.is_sorted() && shares[0] >= 0.0 && shares[63] <= 1.0, "{shares:?}");
        }
    }
}

fn fabrics() -> &'static [Network; 2] {
    static FABRICS: OnceLock<[Network; 2]> = OnceLock::new();
    FABRICS.get_or_init(|| {
        let two = LeafSpine::uniform([2, 2, 2], 100_000_000_000, 1_000_000).network();
        [two, FatTree::uniform([2, 2, 2, 2, 2], 100_000_000_000, 1_000_000).network()]
    })
}

/// Checks that events can be drawn from an accepted failure file.
pub(crate) fn failures(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match FailureFile::parse(text) {
        Err(error) => check_place(text, &error),
        Ok(file) => {
            for network in fabrics() {
                let context = FailureContext { network, seed: 1, until_ps: 1_000_000_000, packet_bytes: 3_114 };
                let Ok(events) = file.events(&context) else { continue };
                for event in events {
                    assert!(event.at_ps < context.until_ps && event.until_ps.is_none_or(|until| until > event.at_ps));
                    assert!(event.links.iter().all(|link| *link < network.links.len()));
                }
            }
        }
    }
}

/// Checks that an accepted scenario is usable, and that an error has a position and a message.
pub(crate) fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Files that the scenario names do not exist.
    let file = Path::new("/nowhere/scenario.toml");
    let Ok(document) = Document::parse(file, text) else { return };
    let Ok(settings) = document.read::<Settings>() else { return };
    if is_large(&settings) {
        return;
    }
    match Scenario::read(&document) {
        Err(error) => assert!(error.location.contains("scenario.toml:") && !error.message.is_empty(), "{error:?}"),
        Ok(scenario) => check_scenario(&scenario),
    }
}

fn is_large(settings: &Settings) -> bool {
    let product = |value: serde_json::Result<serde_json::Value>, names: &[&str]| {
        let value = value.unwrap_or_default();
        let count = |name: &&str| value.get(name).and_then(serde_json::Value::as_u64).unwrap_or(1).max(1) as usize;
        names.iter().map(count).fold(1, usize::saturating_mul)
    };
    let topology = || serde_json::to_value(&settings.topology);
    let products = [
        product(topology(), &["leaves", "hosts_per_leaf"]),
        product(topology(), &["leaves", "spines", "bundle"]),
        product(topology(), &["pods", "tors_per_pod", "hosts_per_tor"]),
        product(topology(), &["pods", "tors_per_pod", "aggs_per_pod", "bundle"]),
        product(topology(), &["pods", "cores", "bundle"]),
        product(topology(), &["groups", "routers_per_group", "routers_per_group"]),
        product(topology(), &["groups", "routers_per_group", "hosts_per_router"]),
        product(topology(), &["groups", "routers_per_group", "global_cables"]),
    ];
    let workloads = settings
        .workload
        .iter()
        .map(|workload| product(serde_json::to_value(workload), &["messages", "rounds", "layers"]));
    products.into_iter().chain(workloads).any(|product| product > SMALL / 10)
}

fn check_scenario(scenario: &Scenario) {
    let (hosts, paths) = (scenario.network.hosts.len(), scenario.paths());
    let (plan, classes) = (scenario.plan(scenario.seed), spray_experiments::workload::classes(&scenario.workloads));
    let flows = &plan.flows;
    let largest = spray_experiments::workload::largest_bytes(flows);
    for flow in flows.iter().take(20) {
        assert!(flow.src < hosts && flow.dst < hosts && flow.src != flow.dst && flow.bytes > 0, "{flow:?}");
        for balancer in &scenario.transport.balancer {
            let config = scenario.connection(&paths, *balancer, &classes, flow, largest);
            assert!(config.max_message_bytes >= flow.bytes && config.rto.min_ps <= config.rto.max_ps, "{config:?}");
        }
    }
    spray_fabric::check_flows(&plan.specs(scenario.seed), plan.trigger_list(), hosts).unwrap();
    assert!(plan.triggers.as_ref().is_none_or(|triggers| triggers.never_started().is_none()));
    assert!(scenario.ideal_ps(&paths, flows) <= MAX_TIME_PS);
    assert!(scenario.time_limit_ps(&paths, &plan) < u64::MAX);
}
