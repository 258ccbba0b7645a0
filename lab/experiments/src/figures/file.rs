//! The form of a figure's file.

use serde::{Deserialize, Serialize};
use spray_core::path::BalancerKind;
use toml::{Table, Value};

use super::claim::{Claim, OTHERS};

/// A figure or table of a paper: what it shows, what is run for it, and what the paper says.
///
/// Its cells are the runs of every [`Series`] under every [`Condition`] with every seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its paper and number there: `reps/7`.
    #[serde(skip)]
    pub id: String,
    /// What it shows, in a few words.
    pub title: String,
    /// Where the paper has it: `§4.3.1`.
    pub section: String,
    /// The paper's setting, in our words.
    pub paper: String,
    /// In what ours differs, at full size.
    #[serde(default)]
    pub ours: String,
    /// Why it is not shown. Then nothing is run.
    #[serde(default)]
    pub not_shown: Option<String>,
    /// What is measured; the first is drawn, all are in the tables.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// How it is drawn.
    #[serde(default)]
    pub plot: Plot,
    /// What the x axis of a plot of lines has.
    #[serde(default)]
    pub x: String,
    /// The switch whose uplinks are drawn over time, for each series under the first condition with the first seed.
    #[serde(default)]
    pub watch: Option<String>,
    /// Settings that the scenario begins with: only `reference`, those of the published REPS simulations.
    #[serde(default)]
    pub preset: Option<Preset>,
    /// A name of [`models`](super::models) in place of the simulator. Its parameters stand where a scenario's settings would.
    #[serde(default)]
    pub model: Option<String>,
    /// Whether hosts send at the rate that all flows can have at once (OFAN §4): a bound computed for each seed.
    #[serde(default)]
    pub at_bound_rate: bool,
    /// What all runs have in common.
    #[serde(default)]
    pub scenario: Table,
    /// What is compared: the rows of the tables.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Whether every balancer is a series, by its name.
    #[serde(default)]
    pub every_balancer: bool,
    /// Under which conditions: the columns.
    #[serde(default)]
    pub condition: Vec<Condition>,
    /// What the paper says.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// The size that comes nearest to the paper's.
    #[serde(default)]
    pub full: Size,
    /// The size that all figures have together within ten minutes on two cores.
    #[serde(default)]
    pub quick: Size,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Its key, see `measures.rs`: those of `summary.json`, and what follows from them.
    pub key: String,
    /// Its name.
    pub title: String,
    /// Its unit; empty for what has none.
    #[serde(default)]
    pub unit: String,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// A bar for each series, condition by condition.
    #[default]
    Bars,
    /// A line for each series over the conditions' `x`.
    Lines,
}

/// Settings to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The settings of the published REPS simulations.
    Reference,
}

/// One of those that are compared.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its settings, by path: `"transport.balancer" = "reps"`.
    #[serde(default)]
    pub set: Table,
    /// A setting of which the best value is taken, under each condition by itself.
    #[serde(default)]
    pub tune: Option<Tune>,
}

impl Series {
    fn of_balancer(balancer: BalancerKind) -> Self {
        let set = [("transport.balancer".to_string(), Value::from(balancer.name()))].into_iter().collect();
        Self { name: balancer.name().into(), set, tune: None }
    }
}

/// A setting whose best value counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// Its path.
    pub path: String,
    /// Its values.
    pub values: Vec<Value>,
    /// The measure that is to be least.
    pub least: String,
    /// A measure that has a limit. Where no value keeps it, the value with the least of it counts.
    #[serde(default)]
    pub limit: Option<Limit>,
}

/// The most that a measure may be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Its key.
    pub key: String,
    /// The limit.
    pub most: f64,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Where it stands on the x axis of a plot of lines.
    #[serde(default)]
    pub x: Option<f64>,
    /// Its settings, by path.
    #[serde(default)]
    pub set: Table,
    /// Settings that it has in addition at quick size.
    #[serde(default)]
    pub quick: Table,
}

/// How large the runs are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// What it is, for people: `128 hosts, 8 MiB`.
    #[serde(default)]
    pub about: String,
    /// Runs of each cell, with seeds from 1 on.
    #[serde(default)]
    pub seeds: u64,
    /// Settings, by path, before those of condition and series.
    #[serde(default)]
    pub set: Table,
    /// Conditions that are left out.
    #[serde(default)]
    pub without: Vec<String>,
}

/// Which of the two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As near to the paper's as ours comes.
    Full,
    /// For all figures within ten minutes.
    Quick,
}

impl Scale {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}

impl Figure {
    /// Reads the text of the file of the figure `id`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(id: &str, text: &str) -> Result<Self, String> {
        let figure: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut figure = Self { id: id.into(), ..figure };
        if figure.every_balancer {
            figure.series.extend(BalancerKind::ALL.map(Series::of_balancer));
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

    /// Refuses names that the figure does not have, and statements without a number.
    pub(super) fn check_claim(&self, claim: &Claim) -> Result<(), String> {
        let wrong = |what: &str, name: &str| Err(format!("claim `{}`: there is no {what} `{name}`", claim.says));
        let series = |name: &str| self.series.iter().any(|series| series.name == name);
        let condition = |name: &str| self.condition.iter().any(|condition| condition.name == name);
        if !series(&claim.of) {
            return wrong("series", &claim.of);
        }
        if let Some(name) = claim.to.list().into_iter().find(|name| *name != OTHERS && !series(name)) {
            return wrong("series", name);
        }
        let conditions = claim.at.list().into_iter().chain(claim.to_at.as_deref());
        if let Some(name) = conditions.into_iter().find(|name| !condition(name)) {
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

    /// Whether it is drawn as lines.
    pub fn has_lines(&self) -> bool {
        self.plot == Plot::Lines
    }

    /// Its size at a scale.
    pub const fn size(&self, scale: Scale) -> &Size {
        match scale {
            Scale::Full => &self.full,
            Scale::Quick => &self.quick,
        }
    }

    /// The conditions at a scale.
    pub fn conditions(&self, scale: Scale) -> impl Iterator<Item = &Condition> {
        self.condition.iter().filter(move |condition| !self.size(scale).without.contains(&condition.name))
    }
}
