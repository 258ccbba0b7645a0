//! Random runs of Flowcut until so many packets were sent: `flowcut_order PACKETS [FIRST_SEED]`.

use std::process::ExitCode;

use spray_experiments::fidelity::order::{Outcome, random_run};
use spray_experiments::sim::over_cores;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(packets)), Ok(first)) = (numbers.next(), numbers.next().unwrap_or(Ok(1))) else {
        eprintln!("usage: flowcut_order PACKETS [FIRST_SEED]");
        return ExitCode::from(2);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Outcome::default();
    while sum.packets < packets {
        let from = first + sum.runs;
        match over_cores(16, threads, |job| random_run(from + job as u64)) {
            Ok(runs) => runs.iter().for_each(|run| {
                if run.reordered + run.stuck > 0 {
                    println!("{run:?}");
                }
                sum.add(run);
            }),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    println!("{sum:?}");
    if sum.reordered + sum.stuck == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
