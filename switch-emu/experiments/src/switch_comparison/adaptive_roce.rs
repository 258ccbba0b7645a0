//! Adaptive RoCE (the port with the shortest queue for each packet) on a lossless fabric, under receivers that take packets in any order and
//! under those of RoCE NICs that do not, beside Flowcut.

use std::fmt::Write;

use spray_core::loss::ReceiverKind::{self, GoBackN, Irn, Selective};
use spray_core::path::BalancerKind::{self, Ecmp, Flowcut, Reps};
use spray_fabric::{Scheme, Switching};

use super::flowcut::FIGURES;
use crate::results::Summary;
use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores};
use crate::workload::Pattern;

/// The section's first line.
pub const HEADING: &str = "## Adaptive RoCE on a lossless fabric";

const HEAD: &str = "
The fabric and the permutation of Flowcut's figures 8 and 9 below (128 hosts on three tiers, priority flow control, a fixed window; with slow links 1 % of them have a tenth of their rate), and
a tornado of 8 MiB. `jsq` is the adaptive RoCE of REPS's simulations (REPS §4.1). Receivers: *any order* takes packets as they come; `irn` takes them too, and the first one
out of order begins a recovery; `go-back-n` drops what is out of order. p99 of the completion times in us and, in parentheses, how many per cent of the packets went again;
*overtaken* as in Flowcut's figures, with any order. Mean over seeds 1 to";

/// The rows: what hosts and switches run.
const ROWS: [(BalancerKind, Scheme); 7] = [
    (Ecmp, Scheme::Ecmp),
    (Reps, Scheme::Ecmp),
    (Ecmp, Scheme::Random),
    (Ecmp, Scheme::Jsq),
    (Flowcut, Scheme::Ecmp),
    (Ecmp, Scheme::FlowcutIngress),
    (Ecmp, Scheme::FlowcutSwitch),
];

const RECEIVERS: [ReceiverKind; 3] = [Selective, Irn, GoBackN];

/// The comparison as a section of the document.
///
/// # Errors
/// What a run refused.
pub fn adaptive_roce(seeds: u64, threads: usize) -> Result<String, String> {
    let (of, count) = (RECEIVERS.len(), seeds as usize);
    let mut text = format!("{HEADING}\n{HEAD} {seeds}.\n");
    for (name, scenario) in scenarios() {
        let one = |job: usize| {
            let (seed, rest) = (job as u64 % seeds + 1, job / count);
            run(&scenario, ROWS[rest / of], RECEIVERS[rest % of], seed)
        };
        let runs = over_cores(ROWS.len() * of * count, threads, one)?;
        let _ = writeln!(text, "\n### {name}\n\n| hosts | switches | any order | `irn` | `go-back-n` | overtaken |");
        text += "|---|---|--:|--:|--:|--:|\n";
        for ((balancer, scheme), runs) in ROWS.iter().zip(runs.chunks(of * count)) {
            let cells: Vec<String> = runs.chunks(count).map(cell).collect();
            let overtaken = mean(&runs[..count], |run| share(run.reordered_packets, run));
            let _ = writeln!(text, "| {balancer} | {scheme} | {} | {overtaken:.2} % |", cells.join(" | "));
        }
    }
    Ok(text)
}

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let figure = |number| FIGURES.iter().find(|figure| figure.number == number).expect("one of the list").scenario();
    let mut tornado = figure(8);
    if let Pattern::Permutation(each) = tornado.workloads[0].pattern {
        tornado.workloads[0].pattern = Pattern::Tornado(each);
    }
    vec![("Permutation", figure(8)), ("Tornado", tornado), ("Permutation with slow links", figure(9))]
}

fn run(
    scenario: &Scenario,
    (balancer, scheme): (BalancerKind, Scheme),
    receiver: ReceiverKind,
    seed: u64,
) -> Result<Summary, String> {
    let mut scenario = scenario.clone();
    let longest_ps = scenario.longest_ps(&scenario.paths());
    scenario.network.switching = Switching { longest_ps, ..Switching::all(scheme) };
    scenario.transport.receiver = receiver;
    let run = Simulation::new(&scenario).run(balancer, seed, &[]);
    run.map(|result| result.summary()).map_err(|error| format!("{balancer}, {scheme}, {receiver:?}: {error}"))
}

/// A cell of the table; a run whose flows did not all complete has no p99.
fn cell(runs: &[Summary]) -> String {
    let again = mean(runs, |run| share(run.retransmits, run));
    match runs.iter().all(Summary::is_complete) {
        true => format!("{:.0} ({again:.1})", mean(runs, |run| run.fct_p99_us)),
        false => {
            let done = mean(runs, |run| 100.0 * run.flows_completed as f64 / run.flows_total as f64);
            format!("{done:.0} % complete ({again:.1})")
        }
    }
}

fn share(packets: u64, run: &Summary) -> f64 {
    100.0 * packets as f64 / run.packets_sent.max(1) as f64
}

fn mean(runs: &[Summary], of: impl Fn(&Summary) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest queue is another one for each packet of a tornado's flows, and the fabric is symmetric: nothing overtakes.
    #[test]
    fn in_a_tornado_the_shortest_queue_keeps_the_order() {
        let scenarios = scenarios();
        assert!(scenarios.iter().all(|(_, scenario)| scenario.queue.pfc));
        let jsq = (Ecmp, Scheme::Jsq);
        let tornado = run(&scenarios[1].1, jsq, GoBackN, 1).unwrap();
        let permutation = run(&scenarios[0].1, jsq, Irn, 1).unwrap();
        assert_eq!((tornado.retransmits, tornado.drops_queue, permutation.drops_queue), (0, 0, 0));
        assert!(permutation.retransmits * 5 > permutation.packets_sent, "needless ones: {}", permutation.retransmits);
        assert!(tornado.fct_p99_us < permutation.fct_p99_us);
    }
}
