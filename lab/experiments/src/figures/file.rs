//! The form of a figure's file.

use serde::{Deserialize, Serialize};
use spray_core::path::BalancerKind;
use toml::{Table, Value};

use super::claim::{Claim, OTHERS};

/// A figure or table of a paper: what it shows, what is run, and what the paper claims.
///
/// A cell is the runs of a series under a condition with all seeds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Paper and number: `reps/7`.
    #[serde(skip)]
    pub id: String,
    /// A short title.
    pub title: String,
    /// Section of the paper: `§4.3.1`.
    pub section: String,
    /// The paper's setup, in our words.
    pub paper: String,
    /// Differences of our setup at full size.
    #[serde(default)]
    pub ours: String,
    /// The reason why it is not run.
    pub not_shown: Option<String>,
    /// Measures; the first is plotted, all are in the tables.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// Type of plot.
    #[serde(default)]
    pub plot: Plot,
    /// Label of the x axis of a line plot.
    #[serde(default)]
    pub x: String,
    /// The switch of which uplinks are plotted over time, under the first condition and seed.
    pub watch: Option<String>,
    /// Settings to start from.
    pub preset: Option<Preset>,
    /// A model of [`models`](super::models), not the simulator; `scenario` has its parameters.
    pub model: Option<String>,
    /// Whether hosts send at the rate that all flows can have (OFAN §4), by seed.
    #[serde(default)]
    pub at_bound_rate: bool,
    /// Settings of all runs.
    #[serde(default)]
    pub scenario: Table,
    /// The series to compare: the rows of the tables.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Whether to add a series for every balancer.
    #[serde(default)]
    pub every_balancer: bool,
    /// The conditions: the columns of the tables.
    #[serde(default)]
    pub condition: Vec<Condition>,
    /// Claims of the paper.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// The size closest to the paper's.
    #[serde(default)]
    pub full: Size,
    /// A size at which all figures take ten minutes on two cores.
    #[serde(default)]
    pub quick: Size,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Key in `summary.json`, or one of those in `measures.rs`.
    pub key: String,
    pub title: String,
    /// Unit; may be empty.
    #[serde(default)]
    pub unit: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// A bar for each series, condition by condition.
    #[default]
    Bars,
    /// A line for each series over the conditions' `x`.
    Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    Reference,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    pub name: String,
    /// Settings by path: `"transport.balancer" = "reps"`.
    #[serde(default)]
    pub set: Table,
    /// A setting with the best value taken for each condition separately.
    pub tune: Option<Tune>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    pub path: String,
    pub values: Vec<Value>,
    pub least: String,
    /// A constraint. If no value satisfies it, the one closest to it counts.
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub key: String,
    pub most: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub name: String,
    /// Position on the x axis of a line plot.
    pub x: Option<f64>,
    /// Settings by path.
    #[serde(default)]
    pub set: Table,
    #[serde(default)]
    pub quick: Table,
}

/// Size of the runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Description: `128 hosts, 8 MiB`.
    #[serde(default)]
    pub about: String,
    /// Number of runs of each cell, with seeds from 1 on.
    #[serde(default)]
    pub seeds: u64,
    /// Settings by path, which those of condition and series override.
    #[serde(default)]
    pub set: Table,
    /// Conditions to leave out.
    #[serde(default)]
    pub without: Vec<String>,
}

/// Selects one of the two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// The size closest to the paper's.
    Full,
    /// The size for all figures within ten minutes.
    Quick,
}

impl Scale {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}

impl Figure {
    /// Parses the file of the figure `id`.
    ///
    /// # Errors
    /// Describes what is wrong with it.
    pub fn parse(id: &str, text: &str) -> Result<Self, String> {
        let figure: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut figure = Self { id: id.into(), ..figure };
        if figure.every_balancer {
            figure.series.extend(BalancerKind::ALL.map(|balancer| {
                let set = [("transport.balancer".to_string(), Value::from(balancer.name()))].into_iter().collect();
                Series { name: balancer.name().into(), set, tune: None }
            }));
        }
        if figure.not_shown.is_none() {
            figure.check()?;
        }
        Ok(figure)
    }

    fn check(&self) -> Result<(), String> {
        let empty = |what: &str, is_empty: bool| if is_empty { Err(format!("no [[{what}]]")) } else { Ok(()) };
        empty("measure", self.measure.is_empty())?;
        empty("series", self.series.is_empty())?;
        empty("condition", self.condition.is_empty())?;
        if self.plot == Plot::Lines && self.condition.iter().any(|condition| condition.x.is_none()) {
            return Err("a condition of a plot of lines lacks `x`".into());
        }
        for scale in [Scale::Full, Scale::Quick] {
            let size = self.size(scale);
            if size.seeds == 0 {
                return Err(format!("[{}] lacks `seeds`", scale.name()));
            }
            if let Some(name) =
                size.without.iter().find(|name| !self.condition.iter().any(|known| known.name == **name))
            {
                return Err(format!("[{}] is without `{name}`, which there is not", scale.name()));
            }
        }
        self.claim.iter().try_for_each(|claim| self.check_claim(claim))
    }

    /// Returns an error for unknown names, and for claims without a number.
    pub(super) fn check_claim(&self, claim: &Claim) -> Result<(), String> {
        let wrong = |what: &str, name: &str| Err(format!("claim `{}`: there is no {what} `{name}`", claim.says));
        let series = |name: &str| self.series.iter().any(|series| series.name == name);
        let condition = |name: &str| self.condition.iter().any(|condition| condition.name == name);
        if !series(&claim.of) {
            return wrong("series", &claim.of);
        }
        if let Some(name) = claim.to.iter().find(|name| *name != OTHERS && !series(name)) {
            return wrong("series", name);
        }
        if let Some(name) = claim.at.iter().chain(&claim.to_at).find(|name| !condition(name)) {
            return wrong("condition", name);
        }
        if let Some(key) = claim.measure.as_ref().filter(|key| !self.measure.iter().any(|known| known.key == **key)) {
            return wrong("measure", key);
        }
        match (claim.paper, claim.least.or(claim.most)) {
            (None, None) => Err(format!("claim `{}`: neither `paper` nor `least` nor `most`", claim.says)),
            (Some(_), Some(_)) => Err(format!("claim `{}`: `paper`, or `least` and `most`", claim.says)),
            _ => Ok(()),
        }
    }

    /// Returns its size at a scale.
    pub const fn size(&self, scale: Scale) -> &Size {
        match scale {
            Scale::Full => &self.full,
            Scale::Quick => &self.quick,
        }
    }

    /// Returns its conditions at a scale.
    pub fn conditions(&self, scale: Scale) -> impl Iterator<Item = &Condition> {
        self.condition.iter().filter(move |condition| !self.size(scale).without.contains(&condition.name))
    }
}
