//! The table that compares balancers under one scenario.

use std::path::Path;

use super::incomplete::{completed, incomplete_notes};
use super::measures::{Better, Measure, named};
use super::table::{align, lateness_note, loss_note, progress};
use super::{Spread, Summary, WriteError, files, grouped};

#[derive(Clone, Debug, Default, PartialEq)]
struct BalancerRuns {
    balancer: String,
    runs: Vec<Summary>,
    failures: Vec<String>,
}

/// Balancers under one scenario, in the order of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    balancers: Vec<BalancerRuns>,
}

const SHOWN: [&str; 13] = [
    "fct_mean_us",
    "fct_p99_us",
    "fct_max_us",
    "goodput_gbps",
    "drops_queue",
    "drops_link",
    "drops_random",
    "trims",
    "retransmits",
    "timeouts",
    "reordered_packets",
    "freeze_entries",
    "drain_percent_of_fct",
];
/// Measures that are omitted if 0 for all balancers.
const OPTIONAL: [&str; 2] = ["freeze_entries", "drain_percent_of_fct"];
/// Measures with a marked best value: outcomes, not their causes.
const MARKED: [&str; 4] = ["fct_mean_us", "fct_p99_us", "fct_max_us", "goodput_gbps"];
const MERIT: &str = "fct_mean_us";

impl BalancerRuns {
    fn verdict(&self) -> String {
        let (all, complete) = (self.runs.len() + self.failures.len(), self.complete());
        match (self.runs.as_slice(), complete) {
            ([], _) => "FAILED".into(),
            (_, complete) if complete == all => "ok".into(),
            ([run], _) if all == 1 && run.flows.flows_completed == run.flows.flows_total => "wrong payload".into(),
            ([run], _) if all == 1 => progress(&run.flows),
            (runs, complete) => {
                let [_, share] = completed(runs.iter().map(|run| &run.flows));
                format!("{complete}/{all} runs, {share} of flows")
            }
        }
    }

    fn complete(&self) -> usize {
        self.runs.iter().filter(|run| run.is_complete()).count()
    }

    /// Whether all its runs have complete results, so that it can be compared.
    fn is_sound(&self) -> bool {
        self.failures.is_empty() && !self.runs.is_empty() && self.complete() == self.runs.len()
    }
}

fn merit() -> &'static Measure {
    named([MERIT])[0]
}

impl Matrix {
    /// Returns the number of failed or incomplete runs.
    pub fn bad_runs(&self) -> usize {
        self.balancers.iter().map(|one| one.failures.len() + one.runs.len() - one.complete()).sum()
    }

    /// Formats aligned text and notes; `*` marks the best balancer with complete runs only.
    pub fn text(&self) -> String {
        let columns = self.columns();
        let several = self.has_spread();
        let mark = |value: String, best: bool| value + if best { "*" } else { " " };
        let rows: Vec<Vec<String>> = self.balancers.iter().map(|one| self.row(one, &columns, &mark)).collect();
        let mut out = align(&header(&columns, several), 2, &rows);
        self.notes().for_each(|note| out = format!("{out}{note}\n"));
        out
    }

    /// Formats Markdown with the best in bold.
    pub fn markdown(&self) -> String {
        let columns = self.columns();
        let header = header(&columns, self.has_spread());
        let rule: String = (0..header.len()).map(|column| if column < 2 { "---|" } else { "--:|" }).collect();
        let mut out = format!("| {} |\n|{rule}\n", header.join(" | "));
        let mark = |value: String, best: bool| if best { format!("**{value}**") } else { value };
        for one in &self.balancers {
            out += &format!("| {} |\n", self.row(one, &columns, &mark).join(" | "));
        }
        let notes: Vec<String> = self.notes().collect();
        if notes.is_empty() { out } else { format!("{out}\n{}\n", notes.join("  \n")) }
    }

    /// Formats CSV: a line per balancer with all columns, means over the runs.
    pub fn csv(&self) -> String {
        let columns = "balancer,runs,runs_complete,completed_percent,slowdown,fct_mean_sd_us,lower_bounds";
        let mut out = format!("{columns},{}\n", SHOWN.join(","));
        for one in &self.balancers {
            let all = one.runs.len() + one.failures.len();
            let slowdown = self.slowdown(one).map_or_else(String::new, |factor| format!("{factor:.4}"));
            let figure = |spread: Spread, of: fn(&Spread) -> f64| {
                if spread.runs == 0 { String::new() } else { format!("{:.3}", of(&spread)) }
            };
            let figures = named(SHOWN).map(|measure| figure(measure.spread(&one.runs), |spread| spread.mean));
            let sd = figure(merit().spread(&one.runs), |spread| spread.sd);
            let [completed] =
                named(["completed_percent"]).map(|measure| figure(measure.spread(&one.runs), |spread| spread.mean));
            let bounds = named(SHOWN).into_iter().filter(|measure| measure.spread(&one.runs).lower_bound);
            let bounds = bounds.map(|measure| measure.key).collect::<Vec<_>>().join(" ");
            let (complete, figures) = (one.complete(), figures.join(","));
            out += &format!("{},{all},{complete},{completed},{slowdown},{sd},{bounds},{figures}\n", one.balancer);
        }
        out
    }

    /// Writes `compare-balancers.txt`, `.csv` and `.md` into `dir`, under `title`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, dir: &Path, title: &str) -> Result<(), WriteError> {
        files::write(dir, "compare-balancers.txt", &format!("{title}\n\n{}", self.text()))?;
        files::write(dir, "compare-balancers.csv", &self.csv())?;
        files::write(dir, "compare-balancers.md", &format!("{title}\n\n{}", self.markdown()))
    }

    fn row(&self, one: &BalancerRuns, columns: &[&Measure], mark: &dyn Fn(String, bool) -> String) -> Vec<String> {
        let mut row = vec![one.balancer.clone(), one.verdict()];
        for column in columns {
            let spread = column.spread(&one.runs);
            let value = spread.mean_text(column.digits);
            let is_best = one.is_sound() && self.best(column).is_some_and(|best| best == spread.mean);
            row.push(if MARKED.contains(&column.key) { mark(value, is_best) } else { value });
            if column.key == MERIT {
                let has_sd = spread.runs > 0 && !spread.lower_bound;
                let sd = if has_sd { format!("{:.1}", spread.sd) } else { "-".into() };
                row.extend(self.has_spread().then_some(sd));
                row.push(self.slowdown(one).map_or_else(|| "-".into(), |factor| format!("{factor:.3}")));
            }
        }
        row
    }

    fn columns(&self) -> Vec<&'static Measure> {
        let has_any =
            |measure: &Measure| self.balancers.iter().flat_map(|one| &one.runs).any(|run| measure.of(run) != Some(0.0));
        named(SHOWN).into_iter().filter(|measure| !OPTIONAL.contains(&measure.key) || has_any(measure)).collect()
    }

    fn has_spread(&self) -> bool {
        self.balancers.iter().any(|one| one.runs.len() > 1)
    }

    fn best(&self, measure: &Measure) -> Option<f64> {
        let means = self.balancers.iter().filter(|one| one.is_sound()).map(|one| measure.spread(&one.runs).mean);
        match measure.better {
            Better::Less => means.min_by(f64::total_cmp),
            Better::More => means.max_by(f64::total_cmp),
            Better::Neither => None,
        }
    }

    /// Returns the mean completion time over the best one.
    fn slowdown(&self, one: &BalancerRuns) -> Option<f64> {
        let best = self.best(merit()).filter(|best| *best > 0.0)?;
        one.is_sound().then(|| merit().spread(&one.runs).mean / best)
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let runs: Vec<Summary> = self.balancers.iter().flat_map(|one| one.runs.clone()).collect();
        let failed = self.balancers.iter().flat_map(|one| {
            one.failures.iter().map(|why| format!("failed: {}, {why}", one.balancer)).collect::<Vec<_>>()
        });
        let wrong = runs.iter().filter(|run| run.payload_verified == Some(false)).map(|run| {
            let Summary { balancer, seed, .. } = run;
            format!("wrong payload: {balancer}, seed {seed}")
        });
        let losses = runs.iter().filter_map(loss_note);
        let notes = incomplete_notes(&runs).into_iter().chain(lateness_note(&runs)).chain(failed).chain(wrong);
        notes.chain(losses).collect::<Vec<_>>().into_iter()
    }
}

impl FromIterator<(String, Result<Summary, String>)> for Matrix {
    /// Collects runs, or the reasons why they failed, by balancer.
    fn from_iter<I: IntoIterator<Item = (String, Result<Summary, String>)>>(runs: I) -> Self {
        let of = |(balancer, all): (String, Vec<Result<Summary, String>>)| {
            let mut one = BalancerRuns { balancer, ..BalancerRuns::default() };
            for run in all {
                match run {
                    Ok(run) => one.runs.push(run),
                    Err(why) => one.failures.push(why),
                }
            }
            one
        };
        Self { balancers: grouped(runs).into_iter().map(of).collect() }
    }
}

fn header(columns: &[&Measure], several: bool) -> Vec<&'static str> {
    let mut header = vec!["balancer", "flows"];
    for column in columns {
        header.push(column.title);
        if column.key == MERIT {
            header.extend(several.then_some("sd"));
            header.push("slowdown");
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::super::Incomplete;
    use super::super::tests::{incomplete, sample};
    use super::*;

    fn matrix() -> Matrix {
        let run = |balancer: &str, seed, fct: f64| {
            let run = Summary { seed, ..sample(balancer, "healthy", &[fct, fct]).summary() };
            (balancer.to_string(), Ok(run))
        };
        let mut lost = sample("plb", "healthy", &[10.0, 10.0]);
        lost.end_us = 20.0;
        incomplete(&mut lost.flows[1], Incomplete::CutOff, 20.0);
        let mut drained = sample("flowcut", "healthy", &[120.0, 120.0]);
        drained.flows[0].sender.drained_ps = 60_000_000;
        let broken = ("ecmp".into(), Err("seed 1: the machine is on fire".into()));
        let runs = [run("reps", 1, 100.0), run("reps", 2, 110.0), run("ops", 1, 126.0)];
        runs.into_iter()
            .chain([("plb".into(), Ok(lost.summary())), ("flowcut".into(), Ok(drained.summary())), broken])
            .collect()
    }

    #[test]
    fn the_best_is_marked_among_those_that_completed() {
        let text = matrix().text();
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(cells(0)[..6], ["balancer", "flows", "mean", "us", "sd", "slowdown"]);
        assert!(text.contains("drain %") && !text.contains("freezes") && !text.contains("wrong"), "{text}");
        assert_eq!(cells(2)[..5], ["reps", "ok", "105.0*", "7.1", "1.000"]);
        assert_eq!(cells(3)[..5], ["ops", "ok", "126.0", "0.0", "1.200"]);
        assert_eq!(cells(4)[6..9], ["15.0", "-", "-"]);
        assert_eq!(cells(4)[..6], ["plb", "1/2", "flows,", "50.0", "%", ">"], "too good, since half of it");
        assert!(lines[5].starts_with("flowcut") && lines[5].trim_end().ends_with("25.00"));
        assert_eq!(cells(6)[..4], ["ecmp", "FAILED", "-", "-"]);
        assert!(text.contains("failed: ecmp, seed 1: the machine is on fire\n"), "{text}");
        assert!(text.contains("warning: not all flows completed: plb 50.0 % (1 of 2)\n"), "{text}");
        assert_eq!(matrix().bad_runs(), 2);
    }

    #[test]
    fn files_hold_the_same() {
        let csv = matrix().csv();
        let fields: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert!(fields.iter().all(|line| line.len() == fields[0].len()), "{csv}");
        assert_eq!(fields[1][..6], ["reps", "2", "2", "100.000", "1.0000", "7.071"]);
        assert_eq!(fields[5][..6], ["ecmp", "1", "0", "", "", ""]);
        assert_eq!(fields[3][6], "fct_mean_us fct_p99_us fct_max_us");
        let markdown = matrix().markdown();
        assert!(markdown.contains("| reps | ok | **105.0** | 7.1 | 1.000 |"), "{markdown}");
        let rows: Vec<usize> = markdown.lines().take(7).map(|line| line.matches('|').count()).collect();
        assert!(rows.iter().all(|bars| *bars == rows[0]), "{markdown}");
    }
}
