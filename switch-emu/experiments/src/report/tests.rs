//! The pages stand alone, are well formed and show what they should.

use super::*;
use crate::results::tests::sample;
use crate::results::{Finished, RunResult, Summary, write_overview};

fn nine() -> Vec<Finished> {
    let conditions = ["healthy", "half-rate uplink", "silent drop"];
    let balancers = [("ecmp", 1.9), ("ops", 1.2), ("reps", 1.0)];
    let mut runs = Vec::new();
    for (c, condition) in conditions.iter().enumerate() {
        for (balancer, slow) in balancers {
            let fcts: Vec<f64> = (0..8).map(|i| (180.0 + 9.0 * f64::from(i)) * slow * (1.0 + 0.3 * c as f64)).collect();
            runs.push(finished(&sample(balancer, condition, &fcts)));
        }
    }
    runs
}

/// Fails unless every tag is closed in order; enough for pages that close everything.
fn assert_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for (at, _) in page.match_indices('<') {
        let tag = &page[at + 1..at + page[at..].find('>').expect("a tag ends")];
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "near {}", &page[at.saturating_sub(80)..at]),
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
}

/// Fails when a browser would have to fetch anything, or would run anything.
fn assert_self_contained(page: &str) {
    for outside in ["http:", "https:", "src=", "<script", "<link", "@import", "url(", "xmlns"] {
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
}

#[test]
fn run_page_stands_alone_with_its_five_plots() {
    let page = run_page(&sample("reps", "silent drop", &[150.0, 120.0, 190.0]));
    assert_well_formed(&page);
    assert_self_contained(&page);
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("freeze entered") && page.contains("leaf0-&gt;spine1"));
}

/// The sample's busiest uplink is leaf0's.
#[test]
fn uplinks_are_those_of_a_switch_at_which_a_link_failed() {
    for (failed, shown) in [
        ("leaf1->spine0", "leaf1->spine0"),
        ("leaf1-spine0", "leaf1->spine0"),
        ("spine0-leaf1", "leaf1->spine0"),
        ("leaf1", "leaf1->spine0"),
        ("leaf1*->spine*", "leaf1->spine0"),
        ("spine1", "leaf0->spine0"),
        ("h9->leaf1", "leaf0->spine0"),
    ] {
        let mut run = sample("reps", "broken", &[150.0]);
        (run.ports[0].counters.bytes, run.ports[2].counters.bytes) = (9_000_000, 10);
        run.events[0].subject = failed.into();
        let names: Vec<_> = series::uplinks(&run, 9).into_iter().map(|line| line.name).collect();
        assert_eq!(names[0], shown, "{failed}: {names:?}");
    }
}

#[test]
fn picture_of_goodput_is_a_file_of_its_own_with_every_bar_and_name() {
    let picture = goodput_picture(&nine());
    assert_well_formed(&picture);
    assert!(picture.starts_with("<svg xmlns="));
    assert!(
        ["ecmp", "ops", "reps", "healthy", "half-rate uplink", "silent drop"].iter().all(|name| picture.contains(name))
    );
    // The ground, three in the legend, three bars in each of three groups.
    assert_eq!(picture.matches("<rect").count(), 1 + 3 + 9);
}

#[test]
fn overview_stands_alone_and_links_each_run() {
    let runs = nine();
    let page = overview_page(&runs);
    assert_well_formed(&page);
    assert_self_contained(&page);
    assert_eq!(page.matches("<svg").count(), 4 + 2 * 3);
    for run in &runs {
        assert!(page.contains(&format!("href=\"{}/report.html\"", run.folder)));
    }
}

/// Several seeds make intervals on bars and bands around lines; an axis with numbers makes figures over its values.
#[test]
fn several_seeds_have_intervals_and_an_axis_has_figures() {
    let of = |evs: i64, seed: u64, slow: f64| {
        let mut run = finished(&sample("reps", "healthy", &[100.0 * slow, 140.0 * slow]));
        let axes = [("transport.evs".to_string(), spray_settings::AxisValue::Whole(evs))].into();
        run.summary = Summary { seed, axes, ..run.summary };
        run
    };
    let page = overview_page(&[of(32, 1, 1.0), of(32, 2, 1.1), of(64, 1, 0.9), of(64, 2, 1.0)]);
    assert_well_formed(&page);
    // Bars, over the axis, and two curves for each value.
    assert_eq!(page.matches("<svg").count(), 4 + 4 + 2 * 2);
    assert!(page.contains("<polygon") && page.contains("95 % interval") && page.contains("healthy, evs 32"));
    assert!(!overview_page(&[of(32, 1, 1.0)]).contains("<polygon"));
}

/// As it is once it is read from its folder.
fn finished(run: &RunResult) -> Finished {
    let delivered = run.delivered.iter().map(|(ps, bytes)| (*ps as f64 / 1e6, *bytes as f64)).collect();
    let folder = format!("{}-{}", run.condition.replace(' ', "-"), run.balancer);
    Finished { folder, summary: run.summary(), fct_us: run.sorted_fcts(), delivered }
}

#[test]
fn overview_is_titled_by_what_the_scenarios_share() {
    let titled = |names: &[&str]| {
        let run = |name: &&str| finished(&RunResult { scenario: (*name).into(), ..sample("reps", "healthy", &[10.0]) });
        let page = overview_page(&names.iter().map(run).collect::<Vec<_>>());
        page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap().to_string()
    };
    assert_eq!(titled(&["demo-healthy", "demo-slow-uplink", "demo-silent"]), "demo");
    assert_eq!((titled(&["flap", "flap"]), titled(&["a", "b"])), ("flap".into(), "2 scenarios".into()));
}

#[test]
fn pages_of_empty_and_unfinished_runs_can_be_drawn() {
    assert_well_formed(&run_page(&RunResult::default()));
    assert_well_formed(&overview_page(&[]));
    assert!(!overview_page(&[Finished::default()]).contains("could not be drawn"));
}

#[test]
fn names_are_escaped() {
    let page = run_page(&sample("<b>", "a & b", &[10.0]));
    assert!(page.contains("a &amp; b · &lt;b&gt;") && !page.contains("<b>"));
}

#[test]
fn numbers_are_short() {
    let shown: Vec<String> =
        [0.0, 0.25, 3.0, 31.44, 204.7, 1_204.0, 31_000.0, 3_210_000.0].iter().map(|v| chart::short(*v)).collect();
    assert_eq!(shown, ["0", "0.25", "3", "31.4", "205", "1204", "31k", "3.2M"]);
}

/// Writes the pages to the folder named by `SPRAY_REPORT_DIR`, to be looked at.
#[test]
fn pages_can_be_looked_at() {
    let Some(dir) = std::env::var_os("SPRAY_REPORT_DIR").map(std::path::PathBuf::from) else { return };
    write_overview(&dir, &nine()).unwrap();
    std::fs::write(dir.join("run.html"), run_page(&sample("reps", "silent drop", &[150.0, 120.0, 190.0]))).unwrap();
}

#[test]
fn several_workloads_have_a_figure_and_a_table() {
    const TITLE: &str = "completion time, by workload";
    assert!(!overview_page(&nine()).contains(TITLE));
    let named = |run: Finished| {
        let workloads = ["storage", "training"].map(|name| crate::results::WorkloadSummary {
            name: name.into(),
            fct_p99_us: if name == "storage" { 77.0 } else { 123.0 },
            ..run.summary.workloads[0].clone()
        });
        Finished { summary: Summary { workloads: workloads.to_vec(), ..run.summary }, ..run }
    };
    let page = overview_page(&nine().into_iter().map(named).collect::<Vec<_>>());
    let figures: Vec<&str> = page.split(TITLE).skip(1).collect();
    assert_eq!(figures.len(), 3, "one for each condition");
    let plot = figures[0].split("</svg>").next().unwrap();
    assert!(plot.starts_with(": healthy"), "{plot}");
    assert!(["\nstorage\n", "\ntraining\n", "\n77\n", "\n123\n"].iter().all(|text| plot.contains(text)), "{plot}");
    assert!(page.contains("<h2>Workloads</h2>"));
    assert_well_formed(&page);
}
