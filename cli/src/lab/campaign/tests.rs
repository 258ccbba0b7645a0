use std::path::Path;

use spray_core::path::BalancerKind;

use super::plan::Planned;
use super::*;
use crate::lab::runs::Part;

fn campaign(balancers: &str, seeds: &str) -> Campaign {
    let parse = |condition: &str| {
        let text = format!(
            "name = \"test\"\ncondition = \"{condition}\"\nseeds = {seeds}\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\n\
             spines = 2\nhosts_per_leaf = 2\n[workload]\nkind = \"tornado\"\nbytes = 1\n[transport]\nbalancer = {balancers}\n"
        );
        Scenario::parse(Path::new("test.toml"), &text).unwrap()
    };
    let seeds = Seeds { seed: None, seeds: Vec::new(), threads: Some(2) };
    Campaign::new(Engine::Sim, ["healthy", "slow"].map(parse).to_vec(), &seeds)
}

fn folders(plan: &[Planned]) -> Vec<&str> {
    plan.iter().map(|planned| planned.folder.as_str()).collect()
}

#[test]
fn runs_are_ordered_by_condition_with_given_or_default_balancers_and_seeds() {
    let mut campaign = campaign("[\"ecmp\", \"reps\"]", "[4]");
    let titles: Vec<String> = campaign.jobs().iter().map(|job| campaign.title(job)).collect();
    assert_eq!(titles, ["healthy, ecmp", "healthy, reps", "slow, ecmp", "slow, reps"]);
    assert!(campaign.jobs().iter().all(|job| job.seed == 4));
    campaign.scenarios.iter_mut().for_each(|scenario| scenario.transport.balancer = vec![BalancerKind::Ops]);
    campaign.seeds = vec![42, 43];
    let titles: Vec<String> = campaign.jobs().iter().map(|job| campaign.title(job)).collect();
    assert_eq!(titles, ["healthy, ops, seed 42", "healthy, ops, seed 43", "slow, ops, seed 42", "slow, ops, seed 43"]);
}

#[test]
fn completed_runs_are_not_repeated_or_overwritten() {
    let folder = spray_test_support::Folder::new();
    let out = folder.path();
    let campaign = campaign("\"ops\"", "\"1..2\"");
    campaign.run_part(out, Part { number: 2, of: 3 }).unwrap();
    let plan = campaign.plan(out).unwrap();
    assert_eq!(folders(&plan), ["healthy-ops-seed1", "healthy-ops-seed2", "slow-ops-seed1", "slow-ops-seed2"]);
    assert_eq!(plan.iter().map(|planned| planned.is_done).collect::<Vec<_>>(), [false, true, false, false]);
    let written = |name: &str| std::fs::metadata(out.join(name).join("run.json")).unwrap().modified().unwrap();
    let before = written("healthy-ops-seed2");
    let ended = campaign.results(out).unwrap();
    assert_eq!(ended.iter().map(|(job, _)| *job).collect::<Vec<_>>(), campaign.jobs());
    assert!(ended.iter().all(|(job, run)| run.as_ref().unwrap().summary.seed == job.seed));
    assert_eq!(written("healthy-ops-seed2"), before);

    // Without run.json the content of the folder is unknown.
    std::fs::remove_file(out.join("slow-ops-seed1/run.json")).unwrap();
    let refused = campaign.plan(out).unwrap_err().to_string();
    assert!(
        refused.contains("slow-ops-seed1 has something else than") && refused.contains("another folder with --out"),
        "{refused}"
    );
    std::fs::remove_dir_all(out.join("slow-ops-seed1")).unwrap();
    let text =
        std::fs::read_to_string(out.join("slow-ops-seed2/scenario.toml")).unwrap().replace("bytes = 1", "bytes = 2");
    let other = Scenario::parse(Path::new("test.toml"), &text).unwrap();
    let other = Campaign { scenarios: vec![other], seeds: vec![2], ..campaign };
    let refused = other.plan(out).unwrap_err().to_string();
    assert!(refused.contains("slow-ops-seed2 has the results of other settings"), "{refused}");
}
