//! Every measure of a run, declared once: its key, its names, its unit, what it means, and which way is better.
//!
//! `summary.json`, the columns of `runs` and `workloads`, `sweep.json`, tables, reports, figures and metrics take theirs from here. How a measure
//! follows from a run stands beside its declaration: in `flow_figures.rs`, `fabric_figures.rs` and `run_figures.rs`.

use std::sync::LazyLock;

use spray_pipeline::scheme::Counter;

use super::columns::Column;
use super::{
    Collectives, EngineFigures, FabricFigures, FlowFigures, PfcFigures, SimFigures, Spread, Summary, WorkloadSummary,
};

/// Which values of a measure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller ones.
    Less,
    /// Larger ones.
    More,
    /// It says how a run went, not how well.
    Neither,
}

/// A measure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its key in `summary.json`, and its name as a column.
    pub key: &'static str,
    /// Above a column on a terminal, with the unit.
    pub title: &'static str,
    /// In words, without the unit.
    pub name: &'static str,
    /// `us`, `bytes`, ...; empty for what has none.
    pub unit: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Digits behind the point in tables.
    pub digits: usize,
    /// Which way is better.
    pub better: Better,
    /// Whether it counts: its values are whole.
    pub(super) is_count: bool,
    pub(super) of_run: fn(&Self, &Summary) -> Option<f64>,
    pub(super) of_workload: Option<fn(&Self, &WorkloadSummary) -> Option<f64>>,
}

impl Measure {
    /// Its value in a run; `None` where the run has none.
    #[must_use]
    pub fn of(&self, run: &Summary) -> Option<f64> {
        (self.of_run)(self, run)
    }

    /// Whether its value in a run is a lower bound.
    #[must_use]
    pub fn is_bound(&self, run: &Summary) -> bool {
        run.lower_bounds.iter().any(|key| key == self.key)
    }

    /// The spread of its values in several runs: a lower bound if one of them is.
    pub(crate) fn spread<'a>(&self, runs: impl IntoIterator<Item = &'a Summary> + Clone) -> Spread {
        let lower_bound = runs.clone().into_iter().any(|run| self.is_bound(run));
        let values: Vec<f64> = runs.into_iter().filter_map(|run| self.of(run)).collect();
        Spread { lower_bound, ..Spread::of(&values) }
    }

    /// The same for one workload of each of several runs.
    pub(crate) fn spread_of_workloads(&self, workloads: &[&WorkloadSummary]) -> Spread {
        let lower_bound = workloads.iter().any(|own| own.lower_bounds.iter().any(|key| key == self.key));
        let values: Vec<f64> = workloads.iter().filter_map(|own| self.of_workload(own)).collect();
        Spread { lower_bound, ..Spread::of(&values) }
    }

    /// Its value for one workload of a run; `None` too where it is not measured by workload.
    #[must_use]
    pub fn of_workload(&self, workload: &WorkloadSummary) -> Option<f64> {
        self.of_workload.and_then(|of| of(self, workload))
    }

    /// Its value in a run as tables show it: `> 20.0` if it is a lower bound, a dash without one.
    pub(crate) fn text(&self, run: &Summary) -> String {
        self.spread([run]).text(self.digits)
    }
}

/// What the switches' schemes count.
static COUNTED: LazyLock<Vec<Measure>> = LazyLock::new(|| {
    let measure = |counter: &Counter| {
        let Counter { key, title, name, unit, about, less_is_better, .. } = *counter;
        let better = if less_is_better { Better::Less } else { Better::Neither };
        let of_run: fn(&Measure, &Summary) -> Option<f64> = |measure, run| Some(run.counted.get(measure.key)? as f64);
        Measure { key, title, name, unit, about, digits: 0, better, is_count: true, of_run, of_workload: None }
    };
    Counter::all().map(measure).collect()
});

/// All measures, in the order of `summary.json`.
pub fn all() -> impl Iterator<Item = &'static Measure> {
    [
        FlowFigures::MEASURES,
        FabricFigures::MEASURES,
        EngineFigures::MEASURES,
        SimFigures::MEASURES,
        PfcFigures::MEASURES,
        &COUNTED,
        Collectives::MEASURES,
    ]
    .into_iter()
    .flatten()
}

/// The measure with this key.
#[must_use]
pub fn find(key: &str) -> Option<&'static Measure> {
    all().find(|measure| measure.key == key)
}

/// The measures with these keys.
///
/// # Panics
/// When there is none with one of them: the keys are written in the program.
pub(crate) fn named<const N: usize>(keys: [&str; N]) -> [&'static Measure; N] {
    keys.map(|key| find(key).expect("tables name measures that there are, and a test draws each of them"))
}

/// The columns of a table with a row for each run.
pub(super) fn columns_of_runs() -> Vec<Column<Summary>> {
    all().map(|measure| Column::of_measure(measure, measure.of_run)).collect()
}

/// The columns of a table with a row for each workload.
pub(super) fn columns_of_workloads() -> Vec<Column<WorkloadSummary>> {
    all().filter_map(|measure| Some(Column::of_measure(measure, measure.of_workload?))).collect()
}

/// All of them as a table in Markdown.
pub(super) fn documentation() -> String {
    all().fold(
        "| measure | unit | better | of workloads | meaning |\n|---|---|---|---|---|\n".into(),
        |text: String, measure| {
            let Measure { key, unit, better, about, of_workload, .. } = measure;
            let better = match better {
                Better::Less => "less",
                Better::More => "more",
                Better::Neither => "",
            };
            format!(
                "{text}| `{key}` | {unit} | {better} | {} | {about} |\n",
                if of_workload.is_some() { "yes" } else { "" }
            )
        },
    )
}

/// What a field of figures may be.
pub(super) trait Value {
    const IS_COUNT: bool;
    fn value(self) -> Option<f64>;
}

impl Value for u64 {
    const IS_COUNT: bool = true;
    fn value(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Value for f64 {
    const IS_COUNT: bool = false;
    fn value(self) -> Option<f64> {
        Some(self)
    }
}

impl Value for Option<f64> {
    const IS_COUNT: bool = false;
    fn value(self) -> Option<f64> {
        self
    }
}

/// Declares a struct of figures, each with its type, its title on terminals, its name, its unit, its digits and which way is better, and the list
/// of its measures. `run` says where a [`Summary`] has the struct; `workload` where a [`WorkloadSummary`] has it, if it does.
macro_rules! figures {
    (
        $(#[$meta:meta])* $name:ident as $list:ident, run $run:expr, workload $workload:expr;
        $($(#[doc = $about:literal])+ $key:ident: $type:ty, $title:literal, $words:literal, $unit:literal, $digits:literal, $better:ident;)+
    ) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $about])+ pub $key: $type,)+
        }

        impl $name {
            const OF_RUN: fn(&crate::results::Summary) -> Option<Self> = $run;
            const OF_WORKLOAD: Option<fn(&crate::results::WorkloadSummary) -> Option<Self>> = $workload;
            pub(super) const $list: &[crate::results::measures::Measure] = &[$(crate::results::measures::Measure {
                key: stringify!($key),
                title: $title,
                name: $words,
                unit: $unit,
                about: concat!($($about),+).trim_ascii(),
                digits: $digits,
                better: crate::results::measures::Better::$better,
                is_count: <$type as crate::results::measures::Value>::IS_COUNT,
                of_run: |_, run| crate::results::measures::Value::value(Self::OF_RUN(run)?.$key),
                of_workload: if Self::OF_WORKLOAD.is_some() {
                    Some(|_, own| crate::results::measures::Value::value(Self::OF_WORKLOAD?(own)?.$key))
                } else {
                    None
                },
            }),+];
        }
    };
}
pub(super) use figures;
