//! `[[link_event]]`: changes of links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Micros, Ratio};
use spray_settings::{Document, Mistake};

use super::list;
use spray_fabric::Node;
use spray_fabric::{LinkAction, LinkEvent, Network};

/// A change of a link, and when it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEventSettings {
    /// The link: `leaf0->spine1` is one direction, `leaf0-spine1` both, `leaf0->spine1#2` the second of parallel cables. Links
    /// that leave a host cannot change.
    pub link: String,
    /// When it begins.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub at_us: Micros,
    /// When it ends. By default never.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub until_us: Option<Micros>,
    /// What happens.
    #[serde(flatten)]
    pub action: ActionSettings,
}

/// What happens to a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum ActionSettings {
    /// The link drops every frame, and routing learns of it.
    Down {
        /// Time that routing takes to learn of the beginning, and of the end. By default that of [routing].
        #[serde(default)]
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        convergence_us: Option<Micros>,
    },
    /// The link drops every frame, and routing does not learn of it.
    SilentDrop,
    /// The link is slower.
    Rate {
        /// Share of the rate that is left.
        #[schemars(range(min = 0.001, max = 0.999))]
        factor: Ratio,
    },
    /// The link drops frames at random.
    Loss {
        /// Share of the frames that the link drops.
        #[schemars(range(min = 0.000_001, max = 1))]
        probability: Ratio,
    },
    /// The link drops every frame during a part of each period.
    Flap {
        /// Length of a cycle.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        period_us: Micros,
        /// Time from the beginning of each cycle in which the link drops frames; less than `period_us`.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        down_us: Micros,
    },
}

impl LinkEventSettings {
    /// The event in `network`, of which routing learns `convergence_ps` late unless it says otherwise. It is number `index` of
    /// `document`.
    ///
    /// # Errors
    /// A setting that does not fit the network, with its place.
    pub(super) fn event(
        &self,
        (document, index): (&Document, usize),
        network: &Network,
        convergence_ps: u64,
    ) -> Result<LinkEvent, Mistake> {
        let mistake = |field: &str, message: String| document.mistake(&format!("link_event.{index}.{field}"), message);
        let links = network.links_named(&self.link).ok_or_else(|| {
            let leaving = network.links.iter().filter(|link| matches!(link.from, Node::Switch(_)));
            let names = list(leaving.map(|link| &link.name));
            let message = format!("there is no link `{}`; allowed: {names}, and with `-` both directions", self.link);
            mistake("link", message)
        })?;
        let (at_ps, until_ps) = span_ps(document, &format!("link_event.{index}"), self.at_us, self.until_us)?;
        let action = match self.action {
            ActionSettings::Down { convergence_us } => {
                LinkAction::Down { convergence_ps: convergence_us.map_or(convergence_ps, Micros::ps) }
            }
            ActionSettings::SilentDrop => LinkAction::SilentDrop,
            ActionSettings::Rate { factor } => LinkAction::Rate { ppm: factor.ppm() as u32 },
            ActionSettings::Loss { probability } => LinkAction::Loss { ppm: probability.ppm() as u32 },
            ActionSettings::Flap { period_us, down_us } if down_us >= period_us => {
                return Err(mistake("down_us", "`down_us` is not less than `period_us`; allowed: less".into()));
            }
            ActionSettings::Flap { period_us, down_us } => {
                LinkAction::Flap { period_ps: period_us.ps(), down_ps: down_us.ps() }
            }
        };
        Ok(LinkEvent { name: self.link.clone(), links, at_ps, until_ps, action })
    }
}

/// When the `entry` of a document begins and ends, by its `at_us` and `until_us`.
///
/// # Errors
/// It ends before it begins.
pub(super) fn span_ps(
    document: &Document,
    entry: &str,
    at_us: Micros,
    until_us: Option<Micros>,
) -> Result<(u64, Option<u64>), Mistake> {
    if until_us.is_some_and(|until| until <= at_us) {
        let message = "`until_us` is not after `at_us`; allowed: later times";
        return Err(document.mistake(&format!("{entry}.until_us"), message));
    }
    Ok((at_us.ps(), until_us.map(Micros::ps)))
}
