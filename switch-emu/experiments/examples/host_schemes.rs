//! Runs all balancers under all conditions and writes the comparison: `cargo xtask results`.

use std::path::Path;
use std::process::ExitCode;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_experiments::comparison::{CONDITIONS, Costs, markdown};

const SEEDS: u64 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, criterion] = arguments.as_slice() else {
        eprintln!("usage: host_schemes FILE.md CRITERION_FOLDER");
        return ExitCode::from(2);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cells = Vec::new();
    for condition in &CONDITIONS {
        let row = match condition.run(&BalancerKind::ALL, SEEDS, threads) {
            Ok(row) => row,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(1);
            }
        };
        for (balancer, cell) in BalancerKind::ALL.iter().zip(&row) {
            let (mean, max) = (cell.spread("fct_mean_us").mean, cell.spread("fct_max_us").mean);
            let note = if cell.is_complete() { "" } else { ", incomplete" };
            eprintln!("{:24} {balancer:22} mean {mean:9.1} us, max {max:9.1} us{note}", condition.name);
        }
        cells.push(row);
    }
    let text = markdown(&BalancerKind::ALL, &cells, &costs(Path::new(criterion)));
    let written = Path::new(file).parent().map_or(Ok(()), std::fs::create_dir_all);
    match written.and_then(|()| std::fs::write(file, text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::from(2)
        }
    }
}

/// The medians that `cargo bench -p spray-benches --bench path --bench cc` left in `criterion`, in ns.
fn costs(criterion: &Path) -> Costs {
    let median = |(group, name): (&str, &str)| {
        let file = criterion.join(group).join(name).join("new/estimates.json");
        let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        Some((name.to_string(), estimates["median"]["point_estimate"].as_f64()?))
    };
    let balancers = BalancerKind::names().iter().map(|name| ("path", *name));
    balancers.chain(CcKind::names().iter().map(|name| ("cc", *name))).filter_map(median).collect()
}
