//! Transfers over plain Linux routers, as a table in Markdown. `cargo xtask real-network` runs it.

use std::path::{Path, PathBuf};

use spray_testbed::Routers;
use spray_tests::real_network::{Condition, Contender, transfer};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "SPRAY BYTES ROUNDS CONTENDER[,CONTENDER...] CONDITION[,...]|all";
    let mut next = || arguments.next().unwrap_or_else(|| panic!("expected {usage}"));
    let (spray, bytes, rounds) =
        (PathBuf::from(next()), next().parse().expect(usage), next().parse::<usize>().expect(usage));
    let (names, wanted) = (next(), next());
    let file = Path::new("/dev/shm").join(format!("spray-real-network-{}.bin", std::process::id()));
    std::fs::write(&file, content(bytes)).expect("a file in memory");
    let conditions: Vec<_> = Condition::ALL
        .into_iter()
        .filter(|one| wanted == "all" || wanted.split(',').any(|want| one.name().starts_with(want)))
        .collect();
    let routers = Routers::new().unwrap_or_else(|error| panic!("{error}"));
    println!("| | {} |", conditions.iter().map(|one| one.name()).collect::<Vec<_>>().join(" | "));
    println!("|---{}|", "|---".repeat(conditions.len()));
    let names: Vec<_> = names.split(',').collect();
    let mut table = vec![vec![String::new(); conditions.len()]; names.len()];
    for _ in 0..rounds {
        for (column, condition) in conditions.iter().enumerate() {
            for (row, name) in names.iter().enumerate() {
                let contender = match *name {
                    "tcp" => Contender::Tcp,
                    "mptcp-kernel" => Contender::Mptcp,
                    text => {
                        let mut words = text.split('+');
                        let mut given = vec!["--balancer".to_string(), words.next().unwrap_or_default().to_string()];
                        given.extend(words.map(str::to_string));
                        Contender::Spray(given)
                    }
                };
                let done =
                    transfer(&routers, &spray, &file, &contender, *condition).unwrap_or_else(|error| panic!("{error}"));
                eprintln!("{name} {}: {:?}\n{}", condition.name(), done.mbps, done.said);
                let cell = &mut table[row][column];
                let separator = if cell.is_empty() { "" } else { "/" };
                *cell += &done.mbps.map_or(format!("{separator}-"), |mbps| format!("{separator}{mbps:.0}"));
            }
        }
    }
    for (name, row) in names.iter().zip(table) {
        println!("| {name} | {} |", row.join(" | "));
    }
    let _ = std::fs::remove_file(&file);
}

fn content(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_ne_bytes()
    };
    std::iter::repeat_with(&mut word).flatten().take(bytes).collect()
}
