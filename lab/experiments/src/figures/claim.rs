//! The form of a paper's claims.

use serde::{Deserialize, Deserializer};

/// A claim of a paper about a value, or about its ratio to another value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in our words.
    pub says: String,
    /// The series it is about.
    pub of: String,
    /// The series to compare with; `others` is all others.
    #[serde(default, deserialize_with = "one_or_several")]
    pub to: Vec<String>,
    /// Whether to compare with the least or the largest of these.
    #[serde(default)]
    pub to_the: Extreme,
    /// The conditions; by default all.
    #[serde(default, deserialize_with = "one_or_several")]
    pub at: Vec<String>,
    /// The condition of the other value; by default the same.
    pub to_at: Option<String>,
    /// Whether it holds for each condition, or for one of them ("up to").
    #[serde(default)]
    pub pick: Pick,
    /// The measure; by default the first.
    pub measure: Option<String>,
    /// The paper's number: the value, or the ratio to the other value.
    pub paper: Option<f64>,
    /// Lower bound, if the paper gives no number.
    pub least: Option<f64>,
    /// Upper bound, likewise.
    pub most: Option<f64>,
    /// The side of the range on which a value is even better.
    pub better: Option<Better>,
    /// The known reason if it is not confirmed: another setup, an artefact, an error of the paper.
    pub why: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    #[default]
    Least,
    Largest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Each; the one that fits worst counts.
    #[default]
    Each,
    /// The one with the least value or ratio.
    Least,
    /// The one with the largest value or ratio.
    Largest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    Less,
    More,
}

fn one_or_several<'de, D: Deserializer<'de>>(names: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(names)? {
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}

pub(super) const OTHERS: &str = "others";
