//! Fairness of `spray send` in competition with the kernel's TCP, with itself and with single
//! datagrams, over plain Linux routers: `cargo xtask real-network` runs it and records its output.
//!
//! Arguments: the `spray` command, bytes of a transfer, rounds, queues of routers and kinds of TCP,
//! both separated by commas; `all` for all.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use spray_switch::RunError;
use spray_tests::content::Content;
use spray_tests::real_network::{
    CUBIC, Candidate, CompetingFlows, Contender, Rounds, Shares, compete, jain, latency, two_transfers,
};
use spray_tests::routers::{RouterQueue, Routers};

const USAGE: &str = "expected SPRAY BYTES ROUNDS QUEUE,... TCP,...";
/// Bytes of a transfer that lasts some seconds.
const LONG: usize = 128_000_000;
/// The number of TCP connections over each spine.
const EACH: usize = 2;
const QUEUES: [(&str, RouterQueue); 5] = [
    ("marked", RouterQueue::MARKED),
    ("50 kB", RouterQueue::unmarked(50_000)),
    ("100 kB", RouterQueue::unmarked(100_000)),
    ("1 MB", RouterQueue::unmarked(1_000_000)),
    ("250 kB, RED", RouterQueue::RED),
];
const COMPETING: [(&str, CompetingFlows<'_>); 3] = [
    ("CUBIC", CompetingFlows { each: EACH, control: "cubic", ecn: false }),
    ("CUBIC with ECN", CompetingFlows { each: EACH, control: "cubic", ecn: true }),
    ("BBR", CompetingFlows { each: EACH, control: "bbr", ecn: false }),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spray, bytes, rounds, queues, competing] = arguments.as_slice() else { panic!("{USAGE}") };
    let (file, rounds): (_, u32) = (Content::new(bytes.parse().expect(USAGE)), rounds.parse().expect(USAGE));
    let wanted = |names: &str, name| names == "all" || names.split(',').any(|one| one == name);
    let competing: Vec<_> = COMPETING.into_iter().filter(|(name, _)| wanted(competing, *name)).collect();
    let mut routers = Routers::new().unwrap_or_else(|error| panic!("{error}"));
    let heads: Vec<_> = competing.iter().map(|(name, _)| *name).collect();
    println!("| | | {} |\n|---|---{}|", heads.join(" | "), "|---".repeat(heads.len()));
    for (name, queue) in QUEUES.into_iter().filter(|(name, _)| wanted(queues, *name)) {
        routers.set_queue(queue).unwrap_or_else(|error| panic!("{error}"));
        for (who, candidate) in [("spray send", Candidate::Spray(Path::new(spray))), ("four of CUBIC", Candidate::Tcp)]
        {
            let cells = competing.iter().map(|(flows, competing)| {
                let round = |_| {
                    let shares =
                        compete(&routers, candidate, file.path(), competing).unwrap_or_else(|error| panic!("{error}"));
                    eprintln!("{name}, {who} competing with {flows}: {shares:.0?}");
                    shares
                };
                cell(&(0..rounds).map(round).collect::<Vec<_>>())
            });
            println!("| {name} | {who} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    let queues: Vec<_> = QUEUES.into_iter().filter(|(name, _)| wanted(queues, *name)).collect();
    drop(routers);
    two_of_spray(Path::new(spray), rounds, &queues).unwrap_or_else(|error| panic!("{error}"));
    latency_of_datagrams(Path::new(spray), rounds, &queues).unwrap_or_else(|error| panic!("{error}"));
}

/// Measures the latency of single datagrams during a transfer of each contender, over each kind of
/// queue.
fn latency_of_datagrams(spray: &Path, rounds: u32, queues: &[(&str, RouterQueue)]) -> Result<(), RunError> {
    let file = Content::new(LONG);
    let mut routers = Routers::new()?;
    let ours = |balancer: &str| Contender::Spray(vec![format!("--balancer={balancer}")]);
    let contenders = [
        ("reps", ours("reps")),
        ("reps-plus", ours("reps-plus")),
        ("tcp", Contender::Tcp(CUBIC)),
        ("mptcp-kernel", Contender::Mptcp),
    ];
    println!(
        "\n| | {} |\n|---{}|",
        contenders.each_ref().map(|(name, _)| *name).join(" | "),
        "|---".repeat(contenders.len())
    );
    for (name, queue) in queues {
        routers.set_queue(*queue)?;
        let cell = |contender| {
            let [mut half, mut most, mut lost] = [(); 3].map(|()| Rounds::default());
            for _ in 0..rounds {
                let seen = latency(&routers, spray, file.path(), contender)?;
                let share = 1.0 - seen.took.len() as f64 / seen.sent as f64;
                eprintln!("{name}, datagrams beside {contender:?}: {} sent, {share:.3} lost", seen.sent);
                half.push(seen.quantile(0.5));
                most.push(seen.quantile(0.99));
                lost.push(Some(100.0 * share));
            }
            Ok::<_, RunError>(format!("{half:.1}, {most:.1}, {lost:.1} %"))
        };
        let cells = contenders.iter().map(|(_, contender)| cell(contender)).collect::<Result<Vec<_>, _>>()?;
        println!("| {name} | {} |", cells.join(" | "));
    }
    Ok(())
}

/// Measures two of our transfers at the same time, over each kind of queue: with the same
/// round-trip time, and with 5 ms more for the second.
fn two_of_spray(spray: &Path, rounds: u32, queues: &[(&str, RouterQueue)]) -> Result<(), RunError> {
    const FAR: Duration = Duration::from_millis(5);
    let file = Content::new(LONG);
    let mut routers = Routers::new()?;
    routers.add_interface()?;
    println!("\n| | alike | 5 ms more for the second |\n|---|---|---|");
    for (name, queue) in queues {
        routers.set_queue(*queue)?;
        let cell = || {
            let [mut ones, mut others, mut index] = [(); 3].map(|()| Rounds::default());
            for _ in 0..rounds {
                let rates = two_transfers(&routers, spray, file.path())?;
                eprintln!("{name}, two of ours: {rates:.0?}");
                ones.push(rates.map(|[one, _]| one));
                others.push(rates.map(|[_, other]| other));
                index.push(rates.map(|rates| jain(&rates)));
            }
            Ok::<_, RunError>(format!("{ones}, {others}, {index:.2}"))
        };
        let alike = cell()?;
        let delay = routers.delay_second(FAR)?;
        let far = cell()?;
        drop(delay);
        println!("| {name} | {alike} | {far} |");
    }
    Ok(())
}

/// Formats the shares of the rounds; bold if a connection's median is below half of a fair share.
fn cell(rounds: &[Shares]) -> String {
    let of = |figure: fn(&Shares) -> Option<f64>| rounds.iter().map(figure).collect::<Rounds>();
    let ours = of(|shares| shares.ours);
    let beside = of(|shares| Some(shares.during.iter().sum())).median();
    let alone = of(|shares| Some(shares.alone.iter().sum())).median();
    let (least, jain) = (of(|shares| Some(shares.least())), of(|shares| Some(shares.jain())).median());
    let shares = format!("{ours}, {beside:.0} of {alone:.0}, {least:.2}, {jain:.2}");
    if least.median() < 0.5 { format!("**{shares}**") } else { shares }
}
