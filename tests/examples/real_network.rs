//! Transfers over plain Linux routers: `cargo xtask real-network` runs it and records its output.
//!
//! Arguments: the `spray` command, bytes of a transfer, rounds, contenders and conditions separated
//! by commas, and the queues of routers: their bytes, then after a `:` the marking threshold in
//! bytes, or after a `/` the RED threshold in bytes, after an `@` the rate of a spine in Mb/s, and
//! after a `+` an additional round-trip time in ms. A contender is `tcp` (CUBIC), `bbr`,
//! `mptcp-kernel`, `tunnel` with further arguments of `spray tunnel`, or a balancer with further
//! arguments of `spray send`, as in `reps+--set=transport.ack_every=1`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use spray_tests::content::Content;
use spray_tests::real_network::{CUBIC, Condition, Contender, Rounds, transfer};
use spray_tests::routers::{RouterQueue, Routers};

/// The balancer for which the targets are checked.
const DEFAULT: &str = "reps-plus";
/// A share of the best contender's rate that counts as equal, because rounds vary by more.
const SPREAD: f64 = 0.97;
const USAGE: &str = "expected SPRAY BYTES ROUNDS CONTENDER,... CONDITION,... BYTES[:BYTES|/BYTES][@MBPS][+MS]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spray, bytes, rounds, contenders, conditions, queue] = arguments.as_slice() else { panic!("{USAGE}") };
    let (bytes, rounds) = (bytes.parse().expect(USAGE), rounds.parse().expect(USAGE));
    let is_wanted = |one: &Condition| conditions.split(',').any(|name| one.name().starts_with(name));
    let conditions: Vec<_> = Condition::ALL.into_iter().filter(is_wanted).collect();
    let contenders: Vec<_> = contenders.split(',').collect();
    let file = Content::new(bytes);
    let mut routers = Routers::new().unwrap_or_else(|error| panic!("{error}"));
    let (queue, delay_ms) = queue.split_once('+').unwrap_or((queue, "0"));
    routers.set_queue(queue_of(queue)).unwrap_or_else(|error| panic!("{error}"));
    let delay = Duration::from_millis(delay_ms.parse().expect(USAGE));
    let _changes = (!delay.is_zero()).then(|| routers.delay_first(delay).unwrap_or_else(|error| panic!("{error}")));
    let mut table = vec![vec![Rounds::default(); conditions.len()]; contenders.len()];
    for _ in 0..rounds {
        for (column, condition) in conditions.iter().enumerate() {
            for (row, name) in contenders.iter().enumerate() {
                let done = transfer(&routers, Path::new(spray), file.path(), &contender(name), *condition);
                let done = done.unwrap_or_else(|error| panic!("{error}"));
                eprintln!("{name}, {}: {:?} Mb/s\n{}", condition.name(), done.mbps, done.output);
                table[row][column].push(done.mbps);
            }
        }
    }
    println!("| | {} |", conditions.iter().map(|one| one.name()).collect::<Vec<_>>().join(" | "));
    println!("|---{}|", "|---".repeat(conditions.len()));
    let left_mbps = |condition: &Condition| condition.left_mbps(routers.rate_bps());
    let left: Vec<_> = conditions.iter().map(|one| format!("{:.0}", left_mbps(one))).collect();
    println!("| *achievable* | {} |", left.join(" | "));
    for (name, row) in contenders.iter().zip(&table) {
        let cells = conditions.iter().enumerate().map(|(column, condition)| {
            let others = table.iter().map(|row| row[column].median()).fold(0.0, f64::max);
            let least = (condition.target() * left_mbps(condition)).max(SPREAD * others);
            let (cell, misses) = (&row[column], *name == DEFAULT && row[column].median() < least);
            if misses { format!("**{cell}**") } else { cell.to_string() }
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn queue_of(text: &str) -> RouterQueue {
    let (text, mbps) = text.split_once('@').unwrap_or((text, "100"));
    let (all, threshold) = text.split_once([':', '/']).map_or((text, None), |(all, threshold)| (all, Some(threshold)));
    let rate_bps = mbps.parse::<u64>().expect(USAGE) * 1_000_000;
    let queue = RouterQueue { rate_bps, ..RouterQueue::unmarked(all.parse().expect(USAGE)) };
    let threshold = threshold.map(|bytes| bytes.parse().expect(USAGE));
    if text.contains(':') {
        RouterQueue { mark_bytes: threshold, ..queue }
    } else {
        RouterQueue { red_bytes: threshold, ..queue }
    }
}

fn contender(name: &str) -> Contender {
    match name {
        "tcp" => Contender::Tcp(CUBIC),
        "bbr" => Contender::Tcp("bbr"),
        "mptcp-kernel" => Contender::Mptcp,
        name => {
            let (balancer, rest) = name.split_once('+').unwrap_or((name, ""));
            let rest = rest.split('+').filter(|word| !word.is_empty()).map(str::to_string);
            if balancer == "tunnel" {
                return Contender::Tunnel(rest.collect());
            }
            Contender::Spray([format!("--balancer={balancer}")].into_iter().chain(rest).collect())
        }
    }
}
