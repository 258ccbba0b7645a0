use super::*;

/// Pauses and resumes that switches send at one moment arrive in their order: this run has several.
//= docs/specs/pfc.md#PFC-3 the link's sender
#[test]
fn a_lossless_dragonfly_drops_nothing() {
    let figure = FIGURES.iter().find(|figure| figure.number == 13).unwrap();
    let run = Contender::Ecmp.settings()[0].run(&figure.scenario(), 1).unwrap();
    assert!(run.is_complete());
    assert_eq!((run.drops_queue, run.retransmits), (0, 0));
}

#[test]
fn every_figure_is_a_lossless_scenario_whose_statements_are_about_its_contenders() {
    for figure in &FIGURES {
        let scenario = figure.scenario();
        assert!(scenario.queue.pfc && scenario.network.hosts.len() >= 64, "{}", figure.title);
        assert_eq!(scenario.failures.is_some(), figure.number == 9);
        let setting = figure.contenders[0].settings()[0];
        let rows: Vec<Row> = figure
            .contenders
            .iter()
            .map(|contender| Row { contender: *contender, setting, runs: vec![Summary::default()] })
            .collect();
        assert!(figure.statements.iter().all(|statement| statement.check.against(&rows).is_some()), "{}", figure.title);
    }
}

fn row(contender: Contender, p99: f64, reordered: u64) -> Row {
    let run = Summary { fct_p99_us: p99, unexpected_packets: reordered, packets_sent: 100, ..Summary::default() };
    Row { contender, setting: contender.settings()[0], runs: vec![run] }
}

#[test]
fn statements_hold_where_the_figures_say_so() {
    let rows =
        [row(Contender::Ecmp, 300.0, 0), row(Contender::Spraying, 100.0, 60), row(Contender::FlowcutNic, 105.0, 0)];
    let verdict = |check: Check| check.against(&rows).map(|found| found.verdict);
    let (of, to, metric) = (Contender::FlowcutNic, Contender::Spraying, Metric::P99);
    let (yes, no) = (Some(Verdict::Confirmed), Some(Verdict::Contradicted));
    assert_eq!(verdict(Check::Ratio { metric, of, to, least: 1.0, most: 1.2 }), yes);
    assert_eq!(verdict(Check::Ratio { metric, of, to, least: 0.0, most: 1.0 }), no);
    assert_eq!(verdict(Check::Ratio { metric, of, to, least: 1.1, most: 1.2 }), Some(Verdict::Better));
    assert_eq!(verdict(Check::Ratio { metric, of: to, to: of, least: 1.0, most: 1.2 }), no);
    assert_eq!(verdict(Check::Ratio { metric, of, to: Contender::Ugal, least: 0.0, most: 1.0 }), None);
    assert_eq!([to, of].map(|of| verdict(Check::Least { metric, of })), [yes, no]);
    assert_eq!([Contender::Ecmp, of].map(|of| verdict(Check::Most { metric, of })), [yes, no]);
    assert_eq!(verdict(Check::Reordered { of: to, least: 50.0, most: 100.0 }), yes);
}

#[test]
fn flowlets_take_the_best_gap_among_those_that_reorder_little() {
    let gap = |p99: f64, reordered: u64| row(Contender::Ecmp, p99, reordered).runs;
    // By gap: the smallest is fastest and reorders most.
    let runs = |setting: &Setting| match setting.gap_us {
        Some(gap_us) if gap_us < 1.0 => gap(100.0, 40),
        Some(gap_us) if gap_us < 4.0 => gap(150.0, 15),
        Some(gap_us) if gap_us < 8.0 => gap(250.0, 4),
        Some(gap_us) if gap_us < 16.0 => gap(240.0, 1),
        _ => gap(400.0, 0),
    };
    let best = |most_reordered| {
        let row = FIGURES[0].best(Contender::Flowlet { most_reordered }, &runs).unwrap();
        row.setting.gap_us.unwrap()
    };
    assert_eq!([20, 5, 2, 0].map(best), [1.0, 8.0, 8.0, 16.0]);
}
