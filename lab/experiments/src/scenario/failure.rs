//! `[[failure]]`: links and switches that fail at random; and `[routing]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Micros, Ratio};
use spray_settings::{Document, Mistake};

use super::link_event::{named, span_ps};
use spray_fabric::{HowMany, Level, LinkAction, Network, RandomFailure, Which};

/// Links or switches that fail at one time, drawn from all of a tier or of a name. Its seed, or that of each run, draws which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSettings {
    /// What fails: links (both directions of a cable between two switches) or whole switches, all or those of a tier. Leaves count as
    /// ToRs, spines as aggregation switches. Either this, `link` or `node`.
    #[serde(default)]
    pub what: Option<Level>,
    /// Links by name, as in [[link_event]]: with `-` each cable fails in both directions, with `->` in one.
    #[serde(default)]
    pub link: Option<String>,
    /// Switches or hosts by name, as in [[link_event]]. A host is cut off, and needs `disconnect`.
    #[serde(default)]
    pub node: Option<String>,
    /// Share of them that fails, rounded up to a whole one. Either this or `probability`.
    #[serde(default)]
    #[schemars(range(min = 0.000_001, max = 1))]
    pub share: Option<Ratio>,
    /// Probability with which each fails, by itself.
    #[serde(default)]
    #[schemars(range(min = 0.000_001, max = 1))]
    pub probability: Option<Ratio>,
    /// When they fail.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub at_us: Micros,
    /// When they are back. By default never.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub until_us: Option<Micros>,
    /// Whether the failure may leave a host without a shortest path to another. Otherwise devices that are the last way do not fail.
    #[serde(default)]
    pub disconnect: bool,
    /// Root of the draw, so that the same fail in all runs. By default the run's seed.
    #[serde(default)]
    pub seed: Option<u64>,
    /// What happens.
    #[serde(flatten)]
    pub action: FailureAction,
}

/// What happens to what fails.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum FailureAction {
    /// Its links drop every frame, and routing learns of it after the time in [routing].
    Down,
    /// Its links drop every frame, and routing does not learn of it.
    SilentDrop,
    /// Its links are slower.
    Rate {
        /// Share of the rate that is left.
        #[schemars(range(min = 0.001, max = 0.999))]
        factor: Ratio,
    },
}

impl FailureSettings {
    /// The failure, number `index` of `document`; routing learns of it `convergence_ps` late.
    ///
    /// # Errors
    /// Settings that do not go together, with their place.
    pub(super) fn failure(
        &self,
        document: &Document,
        index: usize,
        network: &Network,
        convergence_ps: u64,
    ) -> Result<RandomFailure, Mistake> {
        let entry = format!("failure.{index}");
        let named = named(document, &entry, network, &self.link, &self.node)?;
        let what = match (self.what, named) {
            (Some(level), None) => Which::Level(level),
            (None, Some((name, _))) => Which::Named(name.into()),
            _ => {
                let message = "needs `what`, `link` or `node`; allowed: one of them";
                return Err(document.mistake(&format!("{entry}.what"), message));
            }
        };
        let part = |ratio: Ratio| ratio.ppm() as f64 / 1e6;
        let how_many = match (self.share, self.probability) {
            (Some(share), None) => HowMany::Share(part(share)),
            (None, Some(probability)) => HowMany::Probability(part(probability)),
            _ => {
                let message = "needs `share` or `probability`; allowed: one of the two";
                return Err(document.mistake(&format!("{entry}.{}", self.field()), message));
            }
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

    /// The setting that says which devices may fail.
    pub(super) fn field(&self) -> &'static str {
        match (&self.link, &self.node) {
            (Some(_), _) => "link",
            (_, Some(_)) => "node",
            _ => "what",
        }
    }
}

/// The failure in a few words.
pub(super) fn words(failure: &RandomFailure) -> String {
    let how_many = match failure.how_many {
        HowMany::Share(share) => format!("{} % of", share * 100.0),
        HowMany::Probability(probability) => format!("each with {} % of", probability * 100.0),
    };
    let what = match failure.action {
        LinkAction::Rate { ppm } => format!("at {} % rate", f64::from(ppm) / 1e4),
        action => action.name().into(),
    };
    format!("{how_many} {} {what}", failure.what.words())
}

/// How routing learns of failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Routing {
    /// Time from the moment at which links go down, or are back, until all switches have the new routes and weights: the G of OFAN
    /// (§5.2). Until then frames on links that are down are lost. 0: routes are right at once. `"never"`: routing does not learn of it.
    pub convergence_us: Convergence,
}

/// Time until routing has learned of a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Convergence {
    /// That much later.
    After(Micros),
    /// Not during the run.
    Never,
}

impl Convergence {
    /// In ps; [`u64::MAX`] is never.
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

/// The two TOML types that a time may have.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Time(Micros),
    Text(String),
}

impl TryFrom<Written> for Convergence {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Time(time) if time <= MOST => Ok(Self::After(time)),
            Written::Text(text) if text == "never" => Ok(Self::Never),
            _ => Err("not a time"),
        }
    }
}

/// An hour, as of other times.
const MOST: Micros = Micros::new(3_600_000_000);

impl From<Convergence> for Written {
    fn from(convergence: Convergence) -> Self {
        match convergence {
            Convergence::After(time) => Self::Time(time),
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
