//! `[[failure]]`, random failures of links and switches, and `[routing]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Micros, Ratio};
use spray_settings::{Document, Error};

use super::link_event::{named, span_ps};
use super::number_or_text::NumberOrText;
use spray_fabric::{DeviceKind, FailureCount, FailureTarget, LinkAction, Network, RandomFailure};

/// Links or switches of a tier or name that fail at one time, drawn from a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSettings {
    /// What fails: links (both directions of a cable between switches) or switches, all or those of
    /// a tier. Leaves are ToRs, spines are aggregation switches. Either this, `link` or `node`.
    pub what: Option<DeviceKind>,
    /// Links by name, as in [[link_event]]: `-` is both directions of each cable, `->` one.
    pub link: Option<String>,
    /// Switches or hosts by name, as in [[link_event]]. Hosts need `disconnect`.
    pub node: Option<String>,
    /// Share of them that fails, rounded up to an integer. Either this or `probability`.
    #[schemars(range(min = 0.000_001, max = 1))]
    pub share: Option<Ratio>,
    /// Probability of each to fail, independently.
    #[schemars(range(min = 0.000_001, max = 1))]
    pub probability: Option<Ratio>,
    /// Time of the failure.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub at_us: Micros,
    /// Time of the recovery. By default never.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub until_us: Option<Micros>,
    /// Whether hosts may be disconnected. Otherwise the last device on their paths does not fail.
    #[serde(default)]
    pub disconnect: bool,
    /// Seed of the draw, for the same failures in all runs. By default the run's seed.
    pub seed: Option<u64>,
    /// Effect of the failure.
    #[serde(flatten)]
    pub action: FailureAction,
}

/// Effect of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum FailureAction {
    /// Its links drop every frame; routing converges after the time in [routing].
    Down,
    /// Its links drop every frame; routing does not react.
    SilentDrop,
    /// Its links have a lower rate.
    Rate {
        /// Share of the rate that remains.
        #[schemars(range(min = 0.001, max = 0.999))]
        factor: Ratio,
    },
}

impl FailureSettings {
    /// Converts entry `index` of `document`; `convergence_ps` applies to links that are down.
    pub(super) fn failure(
        &self,
        document: &Document,
        index: usize,
        network: &Network,
        convergence_ps: u64,
    ) -> Result<RandomFailure, Error> {
        let entry = format!("failure.{index}");
        let mistake = |field: &str, message: &str| Err(document.error(&format!("{entry}.{field}"), message));
        let named = named(document, &entry, network, &self.link, &self.node)?;
        let what = match (self.what, named) {
            (Some(level), None) => FailureTarget::Kind(level),
            (None, Some((name, _))) => FailureTarget::Named(name.into()),
            _ => return mistake("what", "needs `what`, `link` or `node`; allowed: one of them"),
        };
        let part = |ratio: Ratio| ratio.ppm() as f64 / 1e6;
        let how_many = match (self.share, self.probability) {
            (Some(share), None) => FailureCount::Share(part(share)),
            (None, Some(probability)) => FailureCount::Probability(part(probability)),
            _ => return mistake(self.field(), "needs `share` or `probability`; allowed: one of the two"),
        };
        let (at_ps, until_ps) = span_ps(document, &entry, self.at_us, self.until_us)?;
        let action = match self.action {
            FailureAction::Down => LinkAction::Down { convergence_ps },
            FailureAction::SilentDrop => LinkAction::SilentDrop,
            FailureAction::Rate { factor } => LinkAction::Rate { ppm: factor.ppm() as u32 },
        };
        let Self { disconnect, seed, .. } = *self;
        Ok(RandomFailure { what, how_many, at_ps, until_ps, action, disconnect, seed })
    }

    /// Returns the setting that selects the devices.
    pub(super) fn field(&self) -> &'static str {
        match (&self.link, &self.node) {
            (Some(_), _) => "link",
            (_, Some(_)) => "node",
            _ => "what",
        }
    }
}

pub(super) fn words(failure: &RandomFailure) -> String {
    let how_many = match failure.how_many {
        FailureCount::Share(share) => format!("{} % of", share * 100.0),
        FailureCount::Probability(probability) => format!("each with {} % of", probability * 100.0),
    };
    let what = match failure.action {
        LinkAction::Rate { ppm } => format!("at {} % rate", f64::from(ppm) / 1e4),
        action => action.name().into(),
    };
    format!("{how_many} {} {what}", failure.what.label())
}

/// Reaction of routing to failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Routing {
    /// Time from a link's failure or recovery until all switches have the new routes and weights: G
    /// of OFAN (§5.2). Until then frames on failed links are lost. 0: at once. `"never"`: routing
    /// does not react.
    pub convergence_us: Convergence,
}

/// Convergence time of routing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText<Micros>", into = "NumberOrText<Micros>")]
pub enum Convergence {
    /// After this time.
    After(Micros),
    /// Not during the run.
    Never,
}

impl Convergence {
    /// Returns it in ps; [`u64::MAX`] is never.
    pub fn ps(self) -> u64 {
        match self {
            Self::After(time) => time.ps(),
            Self::Never => u64::MAX,
        }
    }
}

impl Default for Convergence {
    fn default() -> Self {
        Self::After(Micros::new(50))
    }
}

impl TryFrom<NumberOrText<Micros>> for Convergence {
    type Error = &'static str;

    fn try_from(written: NumberOrText<Micros>) -> Result<Self, Self::Error> {
        match written {
            NumberOrText::Number(time) if time <= MOST => Ok(Self::After(time)),
            NumberOrText::Text(text) if text == "never" => Ok(Self::Never),
            _ => Err("not a time"),
        }
    }
}

/// An hour, the maximum of all times.
const MOST: Micros = Micros::new(3_600_000_000);

impl From<Convergence> for NumberOrText<Micros> {
    fn from(convergence: Convergence) -> Self {
        match convergence {
            Convergence::After(time) => Self::Number(time),
            Convergence::Never => Self::Text("never".into()),
        }
    }
}

inline_schema!(Convergence, {
    "type": ["number", "string"],
    "minimum": 0,
    "maximum": 3_600_000_000_u64,
    "pattern": "^never$",
    "x-allowed": "0 to 3600000000, or \"never\"",
});
