//! Metrics of a campaign: runs by state, progress of running ones, figures of finished ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use spray_experiments::engine::Progress;
use spray_experiments::results::Summary;
use spray_experiments::results::measures::{self, Measure};
use spray_tools::failure::Outcome;
use spray_tools::metrics::{Labels, Metric, Metrics, Section};

/// Maximum number of runs with published figures; the most recent ones.
const RUNS: usize = 1000;

#[derive(Debug, Default)]
pub struct Campaign {
    metrics: Metrics,
    part: Option<Section>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: usize,
    done: usize,
    failed: usize,
    /// Delivered bytes and completed flows of running runs, by name.
    running: BTreeMap<String, (u64, u64)>,
    figures: VecDeque<(Labels, Vec<(&'static Measure, f64)>)>,
}

impl Campaign {
    pub fn new(metrics: Metrics) -> Self {
        Self { part: metrics.part(), metrics, state: Mutex::default() }
    }

    /// Starts serving, with `done` of `all` runs done.
    pub fn begin(&self, all: usize, done: usize) -> Outcome {
        self.change(|state| (state.all, state.done) = (all, done));
        self.metrics.start()
    }

    pub fn on_progress(&self, run: &str, news: &Progress) {
        if let Progress::Running { delivered_bytes, flows_completed, .. } = *news {
            self.change(|state| {
                state.running.insert(run.into(), (delivered_bytes, flows_completed));
            });
        }
    }

    /// Records the end of a run; `summary` is `None` if it failed.
    pub fn on_end(&self, run: &str, summary: Option<&Summary>) {
        self.change(|state| {
            state.running.remove(run);
            let Some(summary) = summary else { return state.failed += 1 };
            state.done += 1;
            if state.figures.len() == RUNS {
                state.figures.pop_front();
            }
            state.figures.push_back((labels(summary), figures(summary)));
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let Some(part) = &self.part else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        part.put(state.metrics());
    }
}

impl State {
    fn metrics(&self) -> Vec<Metric> {
        let Self { all, done, failed, running, figures } = self;
        let open = all.saturating_sub(done + failed + running.len());
        let states = [("done", *done), ("failed", *failed), ("running", running.len()), ("open", open)];
        let runs = Metric::gauge("runs", "Runs of the command, by state");
        let runs =
            states.iter().fold(runs, |runs, (state, count)| runs.with(vec![("state", (*state).into())], *count as f64));
        let mut bytes = Metric::gauge("running_delivered_bytes", "Payload that a run has delivered so far");
        let mut flows = Metric::gauge("running_flows_completed", "Flows of a run that have completed so far");
        for (run, (delivered, completed)) in running {
            bytes = bytes.with(vec![("run", run.clone())], *delivered as f64);
            flows = flows.with(vec![("run", run.clone())], *completed as f64);
        }
        let mut by_key: BTreeMap<&str, Metric> = BTreeMap::new();
        for (labels, figures) in figures {
            for (measure, value) in figures {
                let new =
                    || Metric::gauge(format!("run_{}", measure.key), format!("Of a completed run: {}", measure.about));
                let metric = by_key.remove(measure.key).unwrap_or_else(new);
                by_key.insert(measure.key, metric.with(labels.clone(), *value));
            }
        }
        [runs, bytes, flows].into_iter().chain(by_key.into_values()).collect()
    }
}

fn labels(summary: &Summary) -> Labels {
    let Summary { scenario, condition, balancer, seed, axes, .. } = summary;
    let axes: Vec<String> = axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    vec![
        ("scenario", scenario.clone()),
        ("condition", condition.clone()),
        ("balancer", balancer.clone()),
        ("seed", seed.to_string()),
        ("axes", axes.join(",")),
    ]
}

fn figures(summary: &Summary) -> Vec<(&'static Measure, f64)> {
    measures::all().filter_map(|measure| Some((measure, measure.of(summary)?))).collect()
}

#[cfg(test)]
mod tests {
    use spray_experiments::results::FlowFigures;

    use super::*;

    #[test]
    fn runs_are_counted_by_state_and_their_figures_are_those_of_the_summary() {
        let mut state = State { all: 3, done: 1, ..State::default() };
        state.running.insert("reps".into(), (7, 1));
        let flows = FlowFigures { fct_mean_us: Some(2.5), retransmits: 4, ..FlowFigures::default() };
        let summary = Summary { balancer: "ops".into(), flows, ..Summary::default() };
        state.figures.push_back((labels(&summary), figures(&summary)));
        let metrics = state.metrics();
        let value = |name: &str, at: usize| metrics.iter().find(|metric| metric.name == name).unwrap().values[at].1;
        assert_eq!([0, 1, 2, 3].map(|at| value("runs", at)), [1.0, 0.0, 1.0, 1.0]);
        assert_eq!(
            (value("running_delivered_bytes", 0), value("run_fct_mean_us", 0), value("run_retransmits", 0)),
            (7.0, 2.5, 4.0)
        );
        assert!(!metrics.iter().any(|metric| metric.name == "run_seed"));
    }
}
