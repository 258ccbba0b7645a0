//! Looks for scenarios in which `reps-plus` is behind other balancers and writes the worst, made small: `cargo xtask search`.
use std::path::Path;
use std::process::ExitCode;

use spray_core::path::BalancerKind;
use spray_core::rng;
use spray_experiments::search::{Case, Lag};

const OURS: BalancerKind = BalancerKind::RepsPlus;
/// Cases that are made small and written.
const WORST: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |cases: &str, seed: &str| Some((cases.parse::<u32>().ok()?, seed.parse::<u64>().ok()?));
    let parsed = match arguments.as_slice() {
        [folder, cases, seed] => numbers(cases, seed).zip(Some(folder)),
        _ => None,
    };
    let Some(((cases, seed), folder)) = parsed else {
        eprintln!("usage: search FOLDER CASES SEED");
        return ExitCode::from(2);
    };
    match search(cases, seed, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(1)
        }
    }
}

fn search(count: u32, seed: u64, folder: &Path) -> Result<(), String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rng = rng::stream(seed, 0);
    let mut cases: Vec<(Case, Lag)> = Vec::new();
    for _ in 0..count {
        let case = Case::draw(&mut rng);
        cases.extend(case.glance(OURS, threads)?.map(|lag| (case, lag)));
    }
    let lagging = cases.iter().filter(|(_, lag)| lag.excess() > 0.0).count();
    let completed: Vec<Lag> = cases.iter().map(|(_, lag)| *lag).filter(|lag| lag.mean.is_finite()).collect();
    let geometric = |figure: fn(&Lag) -> f64| {
        (completed.iter().map(|lag| figure(lag).ln()).sum::<f64>() / completed.len() as f64).exp()
    };
    println!(
        "{} cases: {:.3} times the best of all in the mean, {:.3} in the largest (geometric means); more than 1 % or 3 % behind in \
         {lagging}; in {} of these only others complete; {} more that none completes",
        cases.len(),
        geometric(|lag| lag.mean),
        geometric(|lag| lag.largest),
        cases.len() - completed.len(),
        count as usize - cases.len(),
    );
    cases.sort_by(|one, other| other.1.excess().total_cmp(&one.1.excess()));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = 0;
    for (case, _) in cases.into_iter().filter(|(_, lag)| lag.excess() > 0.0) {
        let Some((case, lag)) = case.shrink(OURS, threads)? else { continue };
        let file = folder.join(format!("{seed}-{found}.toml"));
        let text = format!("# {:.3} {:.3}\n{}", lag.mean, lag.largest, case.toml());
        std::fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{}\n{text}", file.display());
        found += 1;
        if found == WORST {
            break;
        }
    }
    Ok(())
}
