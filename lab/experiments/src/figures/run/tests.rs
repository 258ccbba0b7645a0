use super::*;

const SMALL: &str = r#"
title = "t"
section = "§1"
paper = "p"
preset = "reference"
watch = "leaf0"
[[measure]]
key = "fct_max_us"
title = "runtime"
unit = "us"
[[measure]]
key = "watch.queue_bytes"
title = "queue"
unit = "bytes"
[scenario]
name = "small"
sample_us = 5
topology = { kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2 }
workload = { kind = "cross-leaf-permutation", bytes = "256 KiB" }
[[series]]
name = "ECMP"
set = { "transport.balancer" = "ecmp" }
[[series]]
name = "ECMP again"
set = { "transport.balancer" = "ecmp" }
[[series]]
name = "flowlets"
set = { "transport.balancer" = "ecmp", "switch.scheme" = "letflow" }
tune = { path = "switch.flowlet_gap_us", values = [1, 1000], least = "fct_max_us", limit = { key = "unexpected_percent", most = 0 } }
[[condition]]
name = "healthy"
[[condition]]
name = "dead"
set = { link_event = [{ link = "leaf0->spine*", action = "silent-drop" }], time_limit_us = 2000 }
[full]
seeds = 2
[quick]
seeds = 1
without = ["dead"]
"#;

fn run(plan: &Plan<'_>) -> FigureResults {
    plan.results(&(0..plan.runs()).map(|number| plan.run(number).unwrap()).collect::<Vec<_>>())
}

#[test]
fn cells_have_means_and_counts_of_incomplete_runs() {
    let figure = Figure::parse("t", SMALL).unwrap();
    let plan = figure.plan(Scale::Full);
    // Both settings of ECMP share their runs. With the two gaps these are three; two conditions,
    // two seeds.
    assert_eq!(plan.runs(), 3 * 2 * 2);
    assert_eq!(plan.title(1), "healthy, ECMP, seed 2");
    let results = run(&plan);
    assert_eq!(results.cells[0], results.cells[1]);
    let (healthy, dead) = (&results.cells[0][0], &results.cells[0][1]);
    assert!(healthy.incomplete == 0 && healthy.value("fct_max_us").unwrap() > 20.0, "{healthy:?}");
    assert!(dead.incomplete > 0 && dead.value("fct_max_us") == Some(f64::INFINITY), "{dead:?}");
    assert!(results.cells[2].iter().all(|cell| cell.tuned.is_some()));
    let ports: Vec<&str> = results.port_series[0].iter().map(|lines| lines.port.as_str()).collect();
    assert_eq!(ports, ["leaf0->spine0", "leaf0->spine1"]);
    assert!(results.port_series[0].iter().any(|lines| lines.gbps.iter().any(|(_, gbps)| *gbps > 10.0)));
}

#[test]
fn the_same_settings_in_another_order_are_the_same_runs() {
    let with_gap = |us: u32| {
        let set =
            format!(r#""switch.flowlet_gap_us" = {us}, "switch.scheme" = "letflow", "transport.balancer" = "ecmp""#);
        let text = format!("{SMALL}\n[[series]]\nname = \"a gap\"\nset = {{ {set} }}\n");
        Figure::parse("t", &text).unwrap().plan(Scale::Full).runs()
    };
    // A gap of 1 us is among the tuned values.
    assert_eq!((with_gap(1), with_gap(2)), (12, 16));
}

#[test]
fn a_quick_plan_has_fewer_runs_and_results_can_be_stored() {
    let figure = Figure::parse("t", SMALL).unwrap();
    let plan = figure.plan(Scale::Quick);
    let made: Vec<FigureRun> = (0..plan.runs()).map(|number| plan.run(number).unwrap()).collect();
    assert!(plan.results(&made).cells.iter().all(|row| row.len() == 1));
    let text = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<Vec<FigureRun>>(&text).unwrap(), made);
    let keys: std::collections::HashSet<String> = (0..plan.runs()).map(|number| plan.key(number)).collect();
    assert_eq!(keys.len(), plan.runs());
}

#[test]
fn the_best_value_keeps_its_limit() {
    let figure = Figure::parse("t", SMALL).unwrap();
    let (fast, slow) = (toml::Value::from(1), toml::Value::from(2));
    let run = |us: f64, unexpected: f64| FigureRun {
        measures: [("fct_max_us".into(), us), ("unexpected_percent".into(), unexpected)].into(),
        incomplete: 0,
        port_series: Vec::new(),
    };
    let runs = [run(10.0, 9.0), run(20.0, 1.0)];
    let tried: Tried<'_> = vec![(Some(&fast), vec![0]), (Some(&slow), vec![1])];
    let best = |most: f64| {
        let limit = Some(crate::figures::file::Limit { key: "unexpected_percent".into(), most });
        let tune = Tune { path: String::new(), values: Vec::new(), least: "fct_max_us".into(), limit };
        figure.best(&tried, Some(&tune), &runs).tuned.unwrap()
    };
    assert_eq!((best(20.0).as_str(), best(5.0).as_str(), best(0.0).as_str()), ("1", "2", "2"));
}
