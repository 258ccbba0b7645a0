//! Notes below tables about incomplete flows.

use super::statistics::share;
use super::{FlowFigures, Summary, grouped};

/// Formats the completed and the total number of flows: `9158/14400`, `63.6 %`.
pub(super) fn completed<'a>(runs: impl IntoIterator<Item = &'a FlowFigures>) -> [String; 2] {
    let (completed, total) = runs
        .into_iter()
        .fold((0, 0), |(completed, total), own| (completed + own.flows_completed, total + own.flows_total));
    [format!("{completed}/{total}"), percent(completed, total)]
}

/// Returns notes about incomplete flows, if there are any.
pub fn incomplete_notes(runs: &[Summary]) -> Vec<String> {
    let sum = |of: fn(&FlowFigures) -> u64| runs.iter().map(|run| of(&run.flows)).sum::<u64>();
    if sum(|flows| flows.flows_total - flows.flows_completed) == 0 {
        return Vec::new();
    }
    let shares = "warning: not all flows completed: ".to_string() + &shares(runs);
    let marks = "`>` marks lower bounds: a flow that did not complete counts with the time that it had".to_string();
    let given_up = sum(|flows| flows.flows_given_up);
    let cut_off = sum(|flows| flows.flows_cut_off);
    let not_started = sum(|flows| flows.flows_not_started);
    let reasons = [
        (given_up > 0).then(|| format!("flows given up: {given_up}{}", when_given_up(runs))),
        (cut_off > 0).then(|| format!("flows cut off: {cut_off}{}", limit(runs))),
        (not_started > 0)
            .then(|| format!("flows not started: {not_started}, which wait for others or for a later time")),
    ];
    [shares, marks].into_iter().chain(reasons.into_iter().flatten()).collect()
}

/// `ecmp 17.3 % (2495 of 14400), flowcut 63.6 % (9158 of 14400)`.
fn shares(runs: &[Summary]) -> String {
    let several = runs.iter().any(|run| run.switch != runs[0].switch);
    let name = |run: &Summary| match several {
        true => format!("{} over {}", run.balancer, run.switch),
        false => run.balancer.clone(),
    };
    let groups = grouped(runs.iter().map(|run| (name(run), &run.flows)));
    let text = |(name, flows): (String, Vec<&FlowFigures>)| {
        let completed: u64 = flows.iter().map(|flows| flows.flows_completed).sum();
        let total: u64 = flows.iter().map(|flows| flows.flows_total).sum();
        (completed < total).then(|| format!("{name} {} ({completed} of {total})", percent(completed, total)))
    };
    groups.into_iter().filter_map(text).collect::<Vec<_>>().join(", ")
}

/// Formats a share; one below 100 % is never rounded up to it: `17.3 %`, `99.9 %`.
pub(crate) fn percent(part: u64, all: u64) -> String {
    match share(part, all) {
        100.0 => "100 %".into(),
        share => format!("{:.1} %", (share * 10.0).floor() / 10.0),
    }
}

/// Describes when connections gave up, and by which setting.
fn when_given_up(runs: &[Summary]) -> String {
    let first = runs.iter().filter_map(|run| run.flows.given_up_first_us).min_by(f64::total_cmp);
    let last = runs.iter().filter_map(|run| run.flows.given_up_last_us).max_by(f64::total_cmp);
    let after = runs.iter().filter_map(|run| run.give_up_us).max_by(f64::total_cmp);
    let when = match first.zip(last) {
        Some((first, last)) if first < last => format!(", at {first:.0} to {last:.0} us"),
        Some((first, _)) => format!(", at {first:.0} us"),
        None => String::new(),
    };
    let after = after.map_or_else(String::new, |after| format!(" for {after:.0} us"));
    format!("{when}: no packet of their connections was acknowledged{after} (`give_up_us` in [transport])")
}

fn limit(runs: &[Summary]) -> String {
    let limits = || runs.iter().filter_map(|run| run.time_limit_us);
    let (least, most) = (limits().fold(f64::INFINITY, f64::min), limits().fold(0.0, f64::max));
    match most {
        0.0 => ", as the run was stopped".into(),
        most if least < most => format!(", by the time limits of {least:.0} to {most:.0} us (`time_limit_us`)"),
        most => format!(", by the time limit of {most:.0} us (`time_limit_us`)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Incomplete;
    use super::super::tests::{incomplete, sample};
    use super::*;

    #[test]
    fn each_reason_has_its_number_time_and_setting() {
        let whole = sample("ops", "healthy", &[10.0, 20.0]);
        assert!(incomplete_notes(&[whole.summary()]).is_empty());
        let mut run = sample("ecmp", "healthy", &[10.0, 20.0, 30.0, 40.0]);
        (run.end_us, run.time_limit_us, run.give_up_us) = (500.0, Some(500.0), Some(200.0));
        incomplete(&mut run.flows[1], Incomplete::GivenUp, 300.0);
        incomplete(&mut run.flows[2], Incomplete::CutOff, 500.0);
        incomplete(&mut run.flows[3], Incomplete::NotStarted, 0.0);
        let notes = incomplete_notes(&[run.summary(), whole.summary()]);
        assert_eq!(notes[0], "warning: not all flows completed: ecmp 25.0 % (1 of 4)");
        assert!(notes[1].contains("lower bounds"), "{notes:?}");
        assert_eq!(
            notes[2],
            "flows given up: 1, at 300 us: no packet of their connections was acknowledged for 200 us (`give_up_us` in [transport])"
        );
        assert_eq!(notes[3], "flows cut off: 1, by the time limit of 500 us (`time_limit_us`)");
        assert!(notes[4].starts_with("flows not started: 1,"), "{notes:?}");
    }

    #[test]
    fn a_share_below_all_is_not_shown_as_all() {
        assert_eq!(
            [(1, 1), (99_999, 100_000), (1, 8), (0, 3)].map(|(part, all)| percent(part, all)),
            ["100 %", "99.9 %", "12.5 %", "0.0 %"]
        );
    }
}
