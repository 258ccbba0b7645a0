//! Transfers over plain Linux routers: the tables of `docs/results/real-network.md`.

use std::path::Path;

use crate::demo;
use crate::sh::{self, Failure, Outcome};

const PAGE: &str = "docs/results/real-network.md";
const BYTES: &str = "64000000";
/// Queues of routers: the limit in bytes, and the marking threshold, which is far below it.
const MARKED: &str = "250000:60000";
const UNMARKED: [(&str, &str); 4] =
    [("50 kB", "50000"), ("100 kB", "100000"), ("1 MB", "1000000"), ("250 kB, RED", "250000/60000")];
const OTHER_ROUNDS: &str = "1";
/// Name, bytes per transfer, and the queues of routers.
const OTHER_NETWORKS: [(&str, &str, &str); 5] = [
    ("200 Mb/s a spine, 250 kB, marked", "128000000", "250000:60000@200"),
    ("200 Mb/s a spine, 1 MB, not marked", "128000000", "1000000@200"),
    ("100 Mb/s a spine, 5 ms more, 62.5 kB (1 BDP), not marked", "64000000", "62500@100+5"),
    ("100 Mb/s a spine, 20 ms more, 250 kB (1 BDP), not marked", "192000000", "250000@100+20"),
    ("100 Mb/s a spine, 20 ms more, 125 kB, not marked", "192000000", "125000@100+20"),
];
/// Rounds of concurrent transfers, which take long, and the queues of routers.
const BESIDE_ROUNDS: &str = "1";
const BESIDE_QUEUES: &str = "marked,100 kB,1 MB";
const CONTENDERS: &str = "ecmp,ops,reps,reps-plus,flowcut,mptcp,tcp,mptcp-kernel";
const CONDITIONS: &str = "healthy,a spine,silent,withdrawn,1 %,jitter";
const FEW_CONDITIONS: &str = "healthy,a spine,silent,1 %";
/// Conditions caused by middleboxes.
const MEDDLED: &str = "short,a firewall,policers,bursts,2 %,ECN,marks,one way,rerouted,a far";

/// `cargo xtask real-network [ROUNDS [CONTENDER,... [CONDITION,... [QUEUE]]]]`: with more than
/// ROUNDS only prints one table. Takes some minutes per round.
pub fn real_network(arguments: &[String]) -> Outcome {
    let argument = |place: usize, default: &str| arguments.get(place).map_or(default.into(), String::clone);
    let (spray, rounds) = (demo::build()?, argument(0, "3"));
    let transfers = |contenders: &str, conditions: &str, queue: &str| {
        over_routers("real_network", &spray, &[BYTES, &rounds, contenders, conditions, queue])
    };
    let table = transfers(&argument(1, CONTENDERS), &argument(2, CONDITIONS), &argument(3, MARKED))?;
    if arguments.len() > 1 {
        return Ok(());
    }
    let linux = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!(
        "There were {rounds} rounds, on Linux {}; {cpus} CPUs ran the hosts and the routers.\n\n",
        linux.trim()
    );
    sh::fill(PAGE, "marked", &(machine + &table))?;
    let mut unmarked = String::new();
    for (name, queue) in UNMARKED {
        unmarked += &format!("\n{name}:\n\n{}", transfers("reps,reps-plus,tcp,mptcp-kernel", FEW_CONDITIONS, queue)?);
    }
    sh::fill(PAGE, "unmarked", &unmarked)?;
    let mut others = String::new();
    for (name, bytes, queue) in OTHER_NETWORKS {
        let contenders = "reps-plus,tcp,bbr,mptcp-kernel";
        let table = over_routers("real_network", &spray, &[bytes, OTHER_ROUNDS, contenders, FEW_CONDITIONS, queue])?;
        others += &format!("\n{name}:\n\n{table}");
    }
    sh::fill(PAGE, "others", &others)?;
    sh::fill(PAGE, "meddled", &transfers("reps,reps-plus,flowcut,tcp,mptcp-kernel", MEDDLED, MARKED)?)?;
    sh::fill(PAGE, "beside", &over_routers("fairness", &spray, &[BYTES, BESIDE_ROUNDS, BESIDE_QUEUES, "all"])?)
}

/// Runs an example of `spray-tests` with plain Linux routers; returns its output.
fn over_routers(example: &str, spray: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = sh::cargo();
    command
        .args(["run", "--release", "--package", "spray-tests", "--example", example, "--"])
        .arg(spray)
        .args(arguments);
    let mut table = String::new();
    match sh::run_lines(&mut command, |line| table += &format!("{line}\n"))? {
        true => Ok(table),
        false => Err(Failure::failed("the transfers failed")),
    }
}
