use super::super::file::Scale;
use super::super::run::Cell;
use super::*;
use crate::results::Spread;

fn figure() -> Figure {
    let text = r#"
title = "t"
section = "§1"
paper = "p"
[[measure]]
key = "fct_max_us"
title = "runtime"
unit = "us"
[[series]]
name = "A"
[[series]]
name = "B"
[[series]]
name = "C"
[[condition]]
name = "x"
[[condition]]
name = "y"
[full]
seeds = 1
[quick]
seeds = 1
without = ["y"]
"#;
    Figure::parse("t", text).unwrap()
}

/// Series A has 80 and 100 us, B 100 and 300 us, and C never completes.
fn results() -> FigureResults {
    let cell = |value: f64| Cell {
        tuned: None,
        values: [("fct_max_us".to_string(), Spread::of(&[value]))].into(),
        incomplete: u64::from(value > 1e3),
    };
    let cells = [[80.0, 100.0], [100.0, 300.0], [2e3, 2e3]].map(|row| row.map(cell).to_vec()).to_vec();
    FigureResults { scale: Scale::Full, cells, port_series: Vec::new() }
}

fn found(claim: &str) -> Finding {
    let claim: Claim = toml::from_str(&format!("says = \"s\"\n{claim}")).unwrap();
    figure().check_claim(&claim).unwrap();
    claim.against(&figure(), &results())
}

#[test]
fn ratios_are_confirmed_inaccurate_or_contradicted() {
    let verdict = |claim: &str| found(claim).verdict;
    assert_eq!(verdict("of = 'A'\nto = 'B'\nat = 'x'\npaper = 0.75"), Verdict::Confirmed);
    assert_eq!(verdict("of = 'A'\nto = 'B'\nat = 'x'\npaper = 0.5").text(), "off by +60 %");
    assert_eq!(verdict("of = 'A'\nto = 'B'\nat = 'x'\npaper = 1.25"), Verdict::Contradicted);
    assert_eq!(verdict("of = 'B'\nat = 'x'\npaper = 108"), Verdict::Confirmed);
    assert_eq!(verdict("of = 'B'\nat = 'x'\npaper = 50").text(), "off by +100 %");
    assert_eq!(found("of = 'A'\nto = 'B'\nat = 'y'\nmost = 0.5").ours, "100 against 300 us: 0.33 times");
}

#[test]
fn ranges_have_a_better_side() {
    let verdict = |claim: &str| found(claim).verdict;
    assert_eq!(verdict("of = 'A'\nto = 'B'\nat = 'x'\nleast = 0.9\nmost = 1.1"), Verdict::Contradicted);
    assert_eq!(verdict("of = 'A'\nto = 'B'\nat = 'x'\nleast = 0.9\nmost = 1.1\nbetter = 'less'"), Verdict::Better);
    assert_eq!(
        verdict("of = 'B'\nto = 'A'\nat = 'x'\nleast = 0.9\nmost = 1.1\nbetter = 'less'"),
        Verdict::Contradicted
    );
}

#[test]
fn each_condition_counts_or_the_extreme_one() {
    // The ratio is 0.8 at x and 0.33 at y.
    let each = found("of = 'A'\nto = 'B'\nmost = 0.5");
    assert_eq!((each.verdict, each.ours.as_str()), (Verdict::Contradicted, "x: 80 against 100 us: 0.80 times"));
    assert_eq!(found("of = 'A'\nto = 'B'\nmost = 0.5\npick = 'least'").verdict, Verdict::Confirmed);
    assert_eq!(found("of = 'A'\nto_at = 'x'\nat = 'y'\npaper = 1.25").verdict, Verdict::Confirmed);
}

#[test]
fn incomplete_series_are_worst() {
    assert_eq!(found("of = 'A'\nto = 'others'\nmost = 1.0").verdict, Verdict::Confirmed);
    assert_eq!(found("of = 'C'\nto = 'others'\nto_the = 'largest'\nleast = 1.0").verdict, Verdict::Confirmed);
    assert!(found("of = 'C'\nto = 'A'\nat = 'x'\npaper = 2.0").verdict == Verdict::Contradicted);
    assert!(found("of = 'C'\nto = 'A'\nat = 'x'\nleast = 2.0").ours.contains("never against 80"));
}

#[test]
fn missing_runs_have_no_verdict_and_unknown_names_are_rejected() {
    let claim: Claim = toml::from_str("says = 's'\nof = 'A'\nto = 'B'\nat = 'y'\nmost = 1.0").unwrap();
    let quick = FigureResults { scale: Scale::Quick, ..results() };
    assert_eq!(claim.against(&figure(), &quick).verdict, Verdict::NotRun);
    for (text, word) in [
        ("of = 'Z'\nmost = 1.0", "series `Z`"),
        ("of = 'A'\nat = 'z'\nmost = 1.0", "condition `z`"),
        ("of = 'A'", "neither"),
    ] {
        let claim: Claim = toml::from_str(&format!("says = 's'\n{text}")).unwrap();
        assert!(figure().check_claim(&claim).unwrap_err().contains(word), "{text}");
    }
}

#[test]
fn a_cause_is_required_if_a_claim_is_not_confirmed() {
    let of = |claim: &str| found(&format!("of = 'A'\nto = 'B'\nat = 'x'\nwhy = 'w'\n{claim}")).text();
    assert_eq!(of("paper = 0.75"), "confirmed");
    assert_eq!((of("paper = 0.5").as_str(), of("most = 0.5").as_str()), ("off by +60 %: w", "contradicted: w"));
}
