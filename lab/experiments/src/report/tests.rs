//! The pages are self-contained and well formed, and show the run's data.

use serde_json::{Value, json};
use spray_fabric::{Bin, PortOutcome, PortSamples};

use super::*;
use crate::results::tests::sample;
use crate::results::{Completion, Drops, FinishedRun, RunResult, SizeClass, Summary, WorkloadSummary, write_overview};

fn nine() -> Vec<FinishedRun> {
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

/// Returns the page without the contents of its scripts and styles.
fn without_programs(page: &str) -> String {
    let mut rest = page;
    let mut kept = String::new();
    for _ in 0..100 {
        let next = ["script", "style"].into_iter().filter_map(|tag| Some((rest.find(&format!("<{tag}"))?, tag))).min();
        let Some((from, tag)) = next else { break };
        let begin = from + rest[from..].find('>').expect("a tag ends") + 1;
        let end = begin + rest[begin..].find(&format!("</{tag}>")).expect("a closing tag");
        kept += &rest[..begin];
        rest = &rest[end..];
        let closed = rest.find('>').expect("a tag ends") + 1;
        kept += &rest[..closed];
        rest = &rest[closed..];
    }
    kept + rest
}

/// Checks that every tag is closed in order, which suffices for pages without void elements.
fn assert_well_formed(page: &str) {
    let page = without_programs(page);
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

/// Checks that a browser does not have to fetch anything.
fn assert_self_contained(page: &str) {
    for outside in ["http:", "https:", "src=", "<link", "@import", "url(", "xmlns"] {
        assert!(!without_programs(page).contains(outside), "the page refers to {outside}");
    }
    assert!(
        !page.contains(" src=") && !page.contains("<link") && !page.contains("@import"),
        "the page fetches something"
    );
    assert!(page.contains("default-src 'none'"));
}

/// Returns the data of a page's plots.
fn data_of(page: &str) -> Value {
    let begin = page.split("<script type=\"application/json\" id=\"data\">").nth(1).unwrap();
    serde_json::from_str(begin.split("</script>").next().unwrap()).unwrap()
}

/// Returns the ids of the plots for which a page has an element.
fn plots_of(page: &str) -> Vec<&str> {
    page.split("<section class=\"plot\" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn the_run_page_is_self_contained_with_its_plots() {
    let page = run_page(&sample("reps", "silent drop", &[150.0, 120.0, 190.0]));
    assert_well_formed(&page);
    assert_self_contained(&page);
    assert_eq!(plots_of(&page), ["goodput", "ports", "fct", "sizes", "drops", "evs", "events"]);
    assert!(page.contains("<td class=\"w\">freeze_entered</td>") && page.contains("leaf0-&gt;spine1"));
    let data = data_of(&page);
    assert_eq!(data["fct"][0]["y"].as_array().unwrap().last().unwrap(), 100);
    assert_eq!((&data["evs"][0]["bands"], &data["evs"][0]["packets"][2]), (&json!([[3, "1"], [9, "2"]]), &json!([3])));
}

/// The size of the page is bounded for large runs.
#[test]
fn the_page_of_a_large_run_is_small() {
    let mut run = sample("reps", "silent drop", &vec![150.0; 100_000]);
    let network = spray_fabric::LeafSpine::uniform([128, 64, 64], 100_000_000_000, 1).network();
    run.shape = crate::results::Shape::of(&network);
    let port = |name: String| PortOutcome { name, ..run.ports[0].clone() };
    run.ports = run.shape.links.iter().map(|link| port(link.name.clone())).collect();
    let bin = |i: u64| Bin { queue_max: i % 7 * 1500, sent_bytes: 9_000, ..Bin::default() };
    let samples =
        |port| PortSamples { port, bin_ps: 1_000_000, bins: (0..400).map(bin).collect(), ..Default::default() };
    run.port_samples = (0..run.ports.len()).map(samples).collect();
    run.events =
        (0..3_000).map(|i| crate::results::EventRow { time_us: f64::from(i), ..run.events[1].clone() }).collect();
    let page = run_page(&run);
    assert!(page.len() < 600_000, "{} bytes", page.len());
    assert!(page.contains("64 of 16384 ports"));
}

#[test]
fn the_overview_is_self_contained_and_links_each_run() {
    let runs = nine();
    let page = overview_page(&runs);
    assert_well_formed(&page);
    assert_self_contained(&page);
    assert_eq!(plots_of(&page), ["measure", "fct", "goodput", "drops"]);
    let data = data_of(&page);
    assert_eq!((&data["balancers"][2], &data["conditions"][1]), (&"reps".into(), &"half-rate uplink".into()));
    assert_eq!(data["runs"].as_array().unwrap().len(), 9);
    for run in &runs {
        assert!(page.contains(&format!("href=\"{}/report.html\"", run.folder)));
    }
}

/// An axis of the sweep can be selected on the page, with its numbers in ascending order.
#[test]
fn axes_can_be_selected_and_plotted() {
    let of = |evs: i64, seed: u64, slow: f64| {
        let mut run = finished(&sample("reps", "healthy", &[100.0 * slow, 140.0 * slow]));
        let axes = [("transport.evs".to_string(), spray_settings::AxisValue::Whole(evs))].into();
        run.summary = Summary { seed, axes, ..run.summary };
        run
    };
    let page = overview_page(&[of(64, 1, 1.0), of(64, 2, 1.1), of(32, 1, 0.9), of(32, 2, 1.0)]);
    assert_well_formed(&page);
    assert_eq!(plots_of(&page), ["measure", "axis", "fct", "goodput", "drops"]);
    let data = data_of(&page);
    let axis = &data["axes"][0];
    assert_eq!(
        (&axis["name"], &axis["values"], &axis["numbers"]),
        (&"evs".into(), &json!(["32", "64"]), &json!([32, 64]))
    );
    assert_eq!((&data["cells"][0]["axes"], &data["cells"][1]["axes"]), (&json!([1]), &json!([0])));
    assert_eq!((&data["seeds"], &data["t95"]), (&json!([1, 2]), &json!([12.706])));
    assert!(!plots_of(&overview_page(&[of(32, 1, 1.0)])).contains(&"axis"));
}

/// The page of 10,000 runs has a few MB, and names the runs that it leaves out.
#[test]
fn the_page_of_a_large_sweep_is_small() {
    let one = nine().remove(0);
    let run = |seed: u64| {
        let summary = Summary { seed, ..one.summary.clone() };
        FinishedRun { summary, fct_us: (0..=100).map(|i| 123.456 * f64::from(i)).collect(), ..one.clone() }
    };
    let page = overview_page(&(0..6_000).map(run).collect::<Vec<_>>());
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("1000 more runs are in runs.csv"));
    let class = SizeClass { up_to_bytes: 4096, flows: 4, mean: 1.234, p99: 2.345 };
    let several = |seed| {
        let mut run = run(seed);
        let own = &run.summary.workloads[0];
        run.summary.workloads = ["a", "b"].map(|name| WorkloadSummary { name: name.into(), ..own.clone() }).to_vec();
        run.workloads = vec![Completion { fct_us: run.fct_us.clone(), sizes: vec![class; 20] }; 2];
        run
    };
    for (runs, has_curve) in [(1_000, true), (6_000, false)] {
        let page = overview_page(&(0..runs).map(several).collect::<Vec<_>>());
        assert!(page.len() < 5_000_000, "{runs} runs: {} bytes", page.len());
        assert_eq!(data_of(&page)["runs"][0]["completions"][1].is_null(), !has_curve);
    }
}

/// Converts a run to the form in which it is read from its folder.
fn finished(run: &RunResult) -> FinishedRun {
    let delivered = run.delivered.iter().map(|(ps, bytes)| (*ps as f64 / 1e6, *bytes as f64)).collect();
    let folder = format!("{}-{}", run.condition.replace(' ', "-"), run.balancer);
    let drops = run.ports.iter().map(|port| Drops { name: port.layer.clone(), counts: [1, 3, 0, 0, 0] });
    let (sizes, drops) = (Vec::new(), drops.take(1).collect());
    let mut fct_us: Vec<f64> = run.flows.iter().filter_map(|flow| flow.fct_us).collect();
    fct_us.sort_by(f64::total_cmp);
    FinishedRun {
        folder,
        has_report: true,
        summary: run.summary(),
        fct_us,
        delivered,
        sizes,
        drops,
        workloads: Vec::new(),
    }
}

#[test]
fn the_overview_title_has_the_common_parts_of_the_scenarios() {
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
    assert!(!overview_page(&[FinishedRun::default()]).contains("could not be drawn"));
}

#[test]
fn names_are_escaped() {
    let page = run_page(&sample("<b>", "a & b", &[10.0]));
    assert!(page.contains("a &amp; b · &lt;b&gt;") && !without_programs(&page).contains("<b>"));
    assert_eq!(data_of(&page)["balancer"], "<b>");
    assert!(!page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap().contains('<'));
}

#[test]
fn times_and_sizes_of_a_run_have_a_line_per_workload() {
    let mut run = sample("reps", "healthy", &[150.0, 120.0, 190.0]);
    let names = |run: &RunResult| {
        let data = data_of(&run_page(run));
        ["fct", "sizes"]
            .map(|plot| data[plot].as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(&run), [["all flows"], ["all flows"]]);
    run.flows[1].workload = "background".into();
    run.flows[1].unloaded_fct_us = 48.0;
    let lines = ["all flows".into(), Value::from(run.flows[0].workload.as_str()), "background".into()];
    assert_eq!(names(&run), [lines.clone(), lines]);
    let data = data_of(&run_page(&run));
    assert_eq!((&data["fct"][2]["x"], &data["sizes"][2]["sizes"][0]["mean"]), (&json!([120, 120]), &json!(2.5)));
}

/// Writes the pages to the folder named by `SPRAY_REPORT_DIR`, for manual inspection.
#[test]
fn pages_can_be_written_for_inspection() {
    let Some(dir) = std::env::var_os("SPRAY_REPORT_DIR").map(std::path::PathBuf::from) else { return };
    write_overview(&dir, &nine()).unwrap();
    std::fs::write(dir.join("run.html"), run_page(&sample("reps", "silent drop", &[150.0, 120.0, 190.0]))).unwrap();
}

#[test]
fn several_workloads_can_be_chosen_and_have_a_table() {
    assert_eq!(data_of(&overview_page(&nine()))["workloads"], json!([]));
    let named = |run: FinishedRun| {
        let workloads = ["storage", "training"].map(|name| WorkloadSummary {
            name: name.into(),
            flows: crate::results::FlowFigures {
                fct_p99_us: Some(if name == "storage" { 77.0 } else { 123.0 }),
                ..run.summary.flows
            },
            ..run.summary.workloads[0].clone()
        });
        let class = SizeClass { up_to_bytes: 4096, flows: 4, mean: 1.5, p99: 2.0 };
        let completion =
            |slow: f64| Completion { fct_us: run.fct_us.iter().map(|us| us * slow).collect(), sizes: vec![class] };
        let completions = vec![completion(1.0), completion(2.0)];
        FinishedRun { summary: Summary { workloads: workloads.to_vec(), ..run.summary }, workloads: completions, ..run }
    };
    let mut one = nine().remove(0);
    one.summary.workloads[0].name = "storage".into();
    let page = overview_page(&nine().into_iter().map(named).chain([one]).collect::<Vec<_>>());
    let data = data_of(&page);
    let completions = &data["runs"][0]["completions"];
    assert_eq!(completions[0]["fct"], data["runs"][0]["fct"]);
    assert_eq!(completions[1]["fct"][0].as_f64(), data["runs"][0]["fct"][0].as_f64().map(|us| us * 2.0));
    assert_eq!(completions[1]["sizes"], json!([{"up_to_bytes": 4096, "flows": 4, "mean": 1.5, "p99": 2}]));
    assert!(data["runs"][9].get("completions").is_none(), "a run of one workload");
    assert_eq!(data["workloads"], json!(["storage", "training"]));
    let p99 = data["measures"].as_array().unwrap().iter().position(|measure| measure["key"] == "fct_p99_us").unwrap();
    let values: Vec<&Value> = (0..2).map(|workload| &data["runs"][0]["workloads"][workload][p99]).collect();
    assert_eq!(values, [77, 123]);
    assert!(page.contains("<h2>Workloads</h2>"));
    assert_well_formed(&page);
}
