//! Ways through a dragonfly: the shortest one, and detours over a third group.

use std::fmt::Write;
use std::path::Path;

use spray_core::path::BalancerKind::{self, Ecmp, Ops};
use spray_fabric::{Scheme, Switching};

use crate::scenario::{Document, Scenario};
use crate::sim::{Simulation, over_cores};
use crate::workload::{Flow, Pattern};

const HEAD: &str = "## Detours in a dragonfly

72 hosts: nine groups of four switches, each with two hosts and two cables to other groups; the default transport without the gap rule.
*Next group*: all hosts of a group send 1 MiB to the next group, whose one cable takes that in 671 us. *All to all*: 24 kB from
each host to each, in queues of 64 MB. When the last flow ends in us, mean over seeds 1 to";

/// The rows: what hosts and switches run.
const ROWS: [(BalancerKind, Scheme); 7] = [
    (Ecmp, Scheme::Ecmp),
    (Ops, Scheme::Ecmp),
    (Ecmp, Scheme::Adaptive),
    (Ecmp, Scheme::Valiant),
    (Ecmp, Scheme::Ugal),
    (Ecmp, Scheme::FlowcutIngress),
    (Ecmp, Scheme::FlowcutSwitch),
];

/// The comparison as a section of the document.
///
/// # Errors
/// What a run refused.
pub fn dragonfly(seeds: u64, threads: usize) -> Result<String, String> {
    let scenarios = [next_group(), all_to_all()];
    let one = |job: usize| {
        let (seed, rest) = (job as u64 % seeds + 1, job / seeds as usize);
        let (balancer, scheme) = ROWS[rest / 2];
        let mut scenario = scenarios[rest % 2].clone();
        scenario.network.switching = Switching::all(scheme);
        let run = Simulation::new(&scenario).run(balancer, seed, &[]);
        Ok::<_, String>(run.map_err(|error| error.to_string())?.summary().fct_max_us)
    };
    let ends_us = over_cores(ROWS.len() * 2 * seeds as usize, threads, one)?;
    let mut text = format!("{HEAD} {seeds}.\n\n| hosts | switches | next group | all to all |\n|---|---|--:|--:|\n");
    for ((balancer, scheme), cells) in ROWS.iter().zip(ends_us.chunks(2 * seeds as usize)) {
        let mean = |cell: &[f64]| cell.iter().sum::<f64>() / seeds as f64;
        let (next, all) = cells.split_at(seeds as usize);
        let _ = writeln!(text, "| {balancer} | {scheme} | {:.1} | {:.1} |", mean(next), mean(all));
    }
    Ok(text)
}

/// A balanced dragonfly of 72 hosts: nine groups of four switches with two hosts and two cables to other groups each. `workload` is what
/// follows `[workload]` in the scenario's file.
///
/// # Panics
/// When `workload` is none.
pub fn scenario(workload: &str) -> Scenario {
    let text = format!(
        "name = \"dragonfly\"\nsample_us = 0\n[topology]\nkind = \"dragonfly\"\ngroups = 9\nrouters_per_group = 4\n\
         hosts_per_router = 2\nglobal_cables = 2\n[transport]\nbalancer = \"ecmp\"\nsack_gap_packets = 0\n[workload]\n{workload}"
    );
    let document = Document::parse(Path::new("dragonfly"), &text).expect("part of the program");
    Scenario::read(&document).expect("part of the program")
}

/// Every host of a group sends 1 MiB to the host in its place in the next group: eight flows share the one cable of their two groups.
pub fn next_group() -> Scenario {
    let mut scenario = scenario("kind = \"permutation\"\nbytes = \"1 MiB\"");
    let (hosts, group) = (scenario.network.hosts.len(), scenario.network.hosts.len() / 9);
    let flow = |src: usize| Flow {
        flow: src as u32,
        src,
        dst: (src + group) % hosts,
        bytes: 1 << 20,
        start_ps: 0,
        ..Flow::default()
    };
    scenario.workloads[0].pattern = Pattern::Flows((0..hosts).map(flow).collect());
    scenario
}

/// 24 kB from each host to each. Queues are deep, so that nothing is sent twice.
pub fn all_to_all() -> Scenario {
    scenario("kind = \"all-to-all\"\nbytes = \"24 kB\"\n[queue]\nlimit = \"64 MB\"")
}
