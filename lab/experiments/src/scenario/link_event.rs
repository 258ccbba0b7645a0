//! `[[link_event]]`: changes of links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spray_core::units::{Micros, Ratio};
use spray_settings::{Document, Error, did_you_mean};

use super::mistake::{allow, list};
use spray_fabric::{LinkAction, LinkEvent, LinkPattern, Network};

/// A timed change of links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEventSettings {
    /// The links: `leaf0->spine1` is one direction, `leaf0-spine1` both, `leaf0->spine1#2` the
    /// second of parallel cables, `leaf0->spine1#*` each of them. `*` matches any text, as in
    /// `leaf*->spine1`. Either this or `node`.
    pub link: Option<String>,
    /// Switches or hosts, as `spine1` or `spine*`: all their links change in both directions.
    pub node: Option<String>,
    /// Start of the change.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub at_us: Micros,
    /// End of the change. By default never.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub until_us: Option<Micros>,
    /// Effect of the change.
    #[serde(flatten)]
    pub action: ActionSettings,
}

/// Effect of a link event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum ActionSettings {
    /// The link drops every frame; routing converges.
    Down {
        /// Convergence time of routing, at the start and at the end. By default that of [routing].
        #[schemars(range(min = 0, max = 3_600_000_000_u64))]
        convergence_us: Option<Micros>,
    },
    /// The link drops every frame; routing does not react.
    SilentDrop,
    /// The link has a lower rate.
    Rate {
        /// Share of the rate that remains.
        #[schemars(range(min = 0.001, max = 0.999))]
        factor: Ratio,
    },
    /// The link drops frames at random.
    Loss {
        /// Share of the frames dropped.
        #[schemars(range(min = 0.000_001, max = 1))]
        probability: Ratio,
    },
    /// The link drops every frame during a part of each period.
    Flap {
        /// Length of a period.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        period_us: Micros,
        /// Time from each period's start during which frames are dropped; less than `period_us`.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        down_us: Micros,
    },
}

impl LinkEventSettings {
    /// Converts entry `index` of `document`; `convergence_ps` is the default convergence time.
    pub(super) fn event(
        &self,
        document: &Document,
        index: usize,
        network: &Network,
        convergence_ps: u64,
    ) -> Result<LinkEvent, Error> {
        let mistake = |field: &str, message: String| document.error(&format!("link_event.{index}.{field}"), message);
        let (name, links) = named(document, &format!("link_event.{index}"), network, &self.link, &self.node)?
            .ok_or_else(|| mistake("action", "needs `link` or `node`; allowed: one of the two".into()))?;
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
        Ok(LinkEvent { name: name.into(), links, at_ps, until_ps, action })
    }
}

/// Returns the `link` or `node` name of an `entry` and its links; `None` without either.
pub(super) fn named<'a>(
    document: &Document,
    entry: &str,
    network: &Network,
    link: &'a Option<String>,
    node: &'a Option<String>,
) -> Result<Option<(&'a str, Vec<usize>)>, Error> {
    let (field, name) = match (link, node) {
        (None, None) => return Ok(None),
        (Some(name), None) => ("link", name),
        (None, Some(name)) => ("node", name),
        (Some(_), Some(_)) => {
            let message = "`link` and `node`; allowed: one of the two";
            return Err(document.error(&format!("{entry}.node"), message));
        }
    };
    let links = network.links_named(name).filter(|_| LinkPattern::new(name).is_node() == (field == "node"));
    let links = links.ok_or_else(|| {
        let nodes = || network.switches.iter().map(|switch| &switch.name).chain(&network.hosts);
        let links = || network.links.iter().map(|link| &link.name);
        let (names, other, addition): (Vec<&str>, _, _) = match field {
            "node" => (nodes().map(String::as_str).collect(), "link", ""),
            _ => (links().map(String::as_str).collect(), "node", ", and with `-` both directions"),
        };
        let hint = match network.links_named(name) {
            Some(_) => format!(" (it is a {other}: `{other} = \"{name}\"`)"),
            None => did_you_mean(name, &names),
        };
        let allowed = list(names) + addition;
        let message = format!("there is no {field} `{name}`{hint}; allowed: {allowed}, and `*` for any text");
        document.error(&format!("{entry}.{field}"), message)
    })?;
    Ok(Some((name, links)))
}

pub(super) fn span_ps(
    document: &Document,
    entry: &str,
    at_us: Micros,
    until_us: Option<Micros>,
) -> Result<(u64, Option<u64>), Error> {
    allow(document, until_us.is_none_or(|until| until > at_us), &format!("{entry}.until_us"), || {
        "`until_us` is not after `at_us`; allowed: later times".into()
    })?;
    Ok((at_us.ps(), until_us.map(Micros::ps)))
}
