//! All measures of runs, declared in `flow_figures.rs`, `fabric_figures.rs`, `engine_figures.rs`
//! and `workloads.rs`.

use std::sync::LazyLock;

use spray_pipeline::scheme::Counter;

pub use super::field::Better;
use super::field::{self, ValueOf};
use super::{
    Collectives, EngineFigures, FabricFigures, FlowFigures, PfcFigures, SimFigures, Spread, Summary, WorkloadSummary,
};

/// A measure of a run.
pub type Measure = field::Measure<Of>;

/// The struct of a measure and its accessor.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Of {
    Flows(ValueOf<FlowFigures>),
    Fabric(ValueOf<FabricFigures>),
    Engine(ValueOf<EngineFigures>),
    Sim(ValueOf<SimFigures>),
    Pfc(ValueOf<PfcFigures>),
    SchemeCounters,
    Collectives(ValueOf<Collectives>),
}

impl Measure {
    /// Returns the measures of a struct.
    fn all_of<F>(measures: &[field::Measure<ValueOf<F>>], of: fn(ValueOf<F>) -> Of) -> impl Iterator<Item = Self> {
        measures.iter().map(move |measure| measure.map(of))
    }

    /// Creates the measure of a counter of switch schemes.
    fn of_counter(counter: &Counter) -> Self {
        let Counter { key, title, name, unit, about, less_is_better, .. } = *counter;
        let better = if less_is_better { Better::Less } else { Better::Neither };
        Self { key, title, name, unit, about, digits: 0, better, is_count: true, of: Of::SchemeCounters }
    }

    /// Returns its value in a run, if it has one.
    pub fn of(&self, run: &Summary) -> Option<f64> {
        match self.of {
            Of::Flows(of) => of(&run.flows),
            Of::Fabric(of) => of(&run.fabric),
            Of::Engine(of) => of(&run.engine_figures),
            Of::Sim(of) => of(run.sim.as_ref()?),
            Of::Pfc(of) => of(run.pfc.as_ref()?),
            Of::SchemeCounters => Some(run.scheme_counters.get(self.key)? as f64),
            Of::Collectives(_) => match run.workloads.as_slice() {
                [only] => self.of_workload(only),
                _ => None,
            },
        }
    }

    /// Whether its value in a run is a lower bound.
    pub fn is_bound(&self, run: &Summary) -> bool {
        run.lower_bounds.iter().any(|key| key == self.key)
    }

    /// Returns the spread over runs: a lower bound if one value is.
    pub(crate) fn spread<'a>(&self, runs: impl IntoIterator<Item = &'a Summary> + Clone) -> Spread {
        let lower_bound = runs.clone().into_iter().any(|run| self.is_bound(run));
        let values: Vec<f64> = runs.into_iter().filter_map(|run| self.of(run)).collect();
        Spread { lower_bound, ..Spread::of(&values) }
    }

    /// Returns the spread over the results of a workload.
    pub(crate) fn spread_of_workloads(&self, workloads: &[&WorkloadSummary]) -> Spread {
        let lower_bound = workloads.iter().any(|own| own.lower_bounds.iter().any(|key| key == self.key));
        let values: Vec<f64> = workloads.iter().filter_map(|own| self.of_workload(own)).collect();
        Spread { lower_bound, ..Spread::of(&values) }
    }

    /// Returns its value for a workload; `None` if it has none.
    pub fn of_workload(&self, workload: &WorkloadSummary) -> Option<f64> {
        match self.of {
            Of::Flows(of) => of(&workload.flows),
            Of::Collectives(of) => of(workload.collectives.as_ref()?),
            _ => None,
        }
    }

    pub(super) fn is_of_workloads(&self) -> bool {
        matches!(self.of, Of::Flows(_) | Of::Collectives(_))
    }

    /// Formats its value in a run: `> 20.0` for a lower bound, a dash if missing.
    pub(crate) fn text(&self, run: &Summary) -> String {
        self.spread([run]).text(self.digits)
    }
}

/// All measures, in the order of `summary.json`.
static ALL: LazyLock<Vec<Measure>> = LazyLock::new(|| {
    let flows = Measure::all_of(FlowFigures::MEASURES, Of::Flows);
    let fabric = Measure::all_of(FabricFigures::MEASURES, Of::Fabric);
    let engine = Measure::all_of(EngineFigures::MEASURES, Of::Engine);
    let sim = Measure::all_of(SimFigures::MEASURES, Of::Sim).chain(Measure::all_of(PfcFigures::MEASURES, Of::Pfc));
    let counted = Counter::all().map(Measure::of_counter);
    let collectives = Measure::all_of(Collectives::MEASURES, Of::Collectives);
    flows.chain(fabric).chain(engine).chain(sim).chain(counted).chain(collectives).collect()
});

/// All measures, in the order of `summary.json`.
pub fn all() -> impl Iterator<Item = &'static Measure> {
    ALL.iter()
}

/// Returns the measure with this key.
pub fn find(key: &str) -> Option<&'static Measure> {
    all().find(|measure| measure.key == key)
}

/// Returns the measures with these keys.
///
/// # Panics
/// When a key is unknown: keys are constants.
pub(crate) fn named<const N: usize>(keys: [&str; N]) -> [&'static Measure; N] {
    keys.map(|key| find(key).expect("tables name measures that there are, and a test draws each of them"))
}

pub(super) fn documentation() -> String {
    all().fold(
        "| measure | unit | better | of workloads | meaning |\n|---|---|---|---|---|\n".into(),
        |text: String, measure| {
            let Measure { key, unit, better, about, .. } = measure;
            let better = match better {
                Better::Less => "less",
                Better::More => "more",
                Better::Neither => "",
            };
            let of_workloads = if measure.is_of_workloads() { "yes" } else { "" };
            format!("{text}| `{key}` | {unit} | {better} | {of_workloads} | {about} |\n")
        },
    )
}
