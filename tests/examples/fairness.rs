//! `spray send` beside the kernel's TCP over plain Linux routers: `cargo xtask real-network` runs it and keeps what it prints.
//!
//! Arguments: the `spray` command, bytes of a transfer, and rounds.

use std::path::Path;

use spray_testbed::{RouterQueue, Routers};
use spray_tests::content::Content;
use spray_tests::real_network::{Rivals, Shares, beside};

const USAGE: &str = "expected SPRAY BYTES ROUNDS";
/// Connections of TCP: two a spine, if hashes were even.
const COUNT: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spray, bytes, rounds] = arguments.as_slice() else { panic!("{USAGE}") };
    let (file, rounds): (_, u32) = (Content::new(bytes.parse().expect(USAGE)), rounds.parse().expect(USAGE));
    let mut routers = Routers::new().unwrap_or_else(|error| panic!("{error}"));
    println!("| | CUBIC | CUBIC with ECN | BBR |\n|---|---|---|---|");
    let unmarked = |bytes| RouterQueue { bytes, mark_bytes: None };
    for (name, queue) in [
        ("marked", RouterQueue::MARKED),
        ("50 kB", unmarked(50_000)),
        ("100 kB", unmarked(100_000)),
        ("1 MB", unmarked(1_000_000)),
    ] {
        routers.set_queue(queue).unwrap_or_else(|error| panic!("{error}"));
        let cells = [("cubic", false), ("cubic", true), ("bbr", false)].map(|(control, ecn)| {
            let rivals = Rivals { count: COUNT, control, ecn };
            let round = |_| {
                let shares = beside(&routers, Path::new(spray), file.path(), &rivals);
                cell(name, &rivals, &shares.unwrap_or_else(|error| panic!("{error}")))
            };
            (0..rounds).map(round).collect::<Vec<_>>().join("; ")
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn cell(name: &str, rivals: &Rivals<'_>, shares: &Shares) -> String {
    eprintln!("{name}, {rivals:?}: {shares:.0?}");
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let least = shares.beside.iter().copied().fold(f64::INFINITY, f64::min);
    let ours = shares.ours.map_or("-".into(), |mbps| format!("{mbps:.0}"));
    format!("{ours}, {:.0} of {:.0}, {least:.0}, {:.2}", sum(&shares.beside), sum(&shares.alone), shares.jain())
}
