//! Scenarios that the search found, or that are like those: how far `reps-plus` is behind the best of other balancers there.
//!
//! The first line of each file in `worst/` has the ratios of the completion times' mean and of the largest, as [`behind`] gives them.
//! `UPDATE_GOLDEN=1` writes what comes out.

use std::fmt::Write as _;
use std::path::Path;

use spray_core::path::BalancerKind;
use spray_experiments::search::behind;

#[test]
fn it_is_no_further_behind_than_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worst");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5);
    let mut worse = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (line, scenario) = text.split_once('\n').unwrap();
        let lag = behind(scenario, BalancerKind::RepsPlus, 2).unwrap().expect("all flows complete");
        let found = format!("# {:.3} {:.3}", lag.mean, lag.largest);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, format!("{found}\n{scenario}")).unwrap();
        } else if found != line {
            writeln!(worse, "{}: {found}, where it was {line}", file.display()).unwrap();
        }
    }
    assert!(worse.is_empty(), "{worse}");
}
