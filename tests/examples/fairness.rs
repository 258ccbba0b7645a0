//! `spray send` beside the kernel's TCP over plain Linux routers: `cargo xtask real-network` runs it and keeps what it prints.
//!
//! Arguments: the `spray` command, bytes of a transfer, rounds, queues of routers and kinds of TCP, both separated by commas; `all` for all.

use std::path::Path;

use spray_testbed::{RouterQueue, Routers};
use spray_tests::content::Content;
use spray_tests::real_network::{Guest, Rivals, Shares, beside};

const USAGE: &str = "expected SPRAY BYTES ROUNDS QUEUE,... TCP,...";
/// Connections of TCP over each spine.
const EACH: usize = 2;
const QUEUES: [(&str, RouterQueue); 4] = [
    ("marked", RouterQueue::MARKED),
    ("50 kB", RouterQueue::unmarked(50_000)),
    ("100 kB", RouterQueue::unmarked(100_000)),
    ("1 MB", RouterQueue::unmarked(1_000_000)),
];
const RIVALS: [(&str, Rivals<'_>); 3] = [
    ("CUBIC", Rivals { each: EACH, control: "cubic", ecn: false }),
    ("CUBIC with ECN", Rivals { each: EACH, control: "cubic", ecn: true }),
    ("BBR", Rivals { each: EACH, control: "bbr", ecn: false }),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spray, bytes, rounds, queues, rivals] = arguments.as_slice() else { panic!("{USAGE}") };
    let (file, rounds): (_, u32) = (Content::new(bytes.parse().expect(USAGE)), rounds.parse().expect(USAGE));
    let wanted = |names: &str, name| names == "all" || names.split(',').any(|one| one == name);
    let rivals: Vec<_> = RIVALS.into_iter().filter(|(name, _)| wanted(rivals, *name)).collect();
    let mut routers = Routers::new().unwrap_or_else(|error| panic!("{error}"));
    let heads: Vec<_> = rivals.iter().map(|(name, _)| *name).collect();
    println!("| | | {} |\n|---|---{}|", heads.join(" | "), "|---".repeat(heads.len()));
    for (name, queue) in QUEUES.into_iter().filter(|(name, _)| wanted(queues, *name)) {
        routers.set_queue(queue).unwrap_or_else(|error| panic!("{error}"));
        for (who, guest) in [("spray send", Guest::Spray(Path::new(spray))), ("four of CUBIC", Guest::Tcp)] {
            let cells = rivals.iter().map(|(rival, rivals)| {
                let round = |_| {
                    let shares = beside(&routers, guest, file.path(), rivals).unwrap_or_else(|error| panic!("{error}"));
                    eprintln!("{name}, {who} beside {rival}: {shares:.0?}");
                    cell(&shares)
                };
                (0..rounds).map(round).collect::<Vec<_>>().join("; ")
            });
            println!("| {name} | {who} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

fn cell(shares: &Shares) -> String {
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let least = shares.beside.iter().copied().fold(f64::INFINITY, f64::min);
    let ours = shares.ours.map_or("-".into(), |mbps| format!("{mbps:.0}"));
    format!("{ours}, {:.0} of {:.0}, {least:.0}, {:.2}", sum(&shares.beside), sum(&shares.alone), shares.jain())
}
