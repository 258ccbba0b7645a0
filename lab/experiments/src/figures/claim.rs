//! The form of what a paper says of a figure.

use serde::Deserialize;

/// A statement of a paper about one value, or about one value in relation to another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement in our words.
    pub says: String,
    /// The series that it is about.
    pub of: String,
    /// Those that it is compared with: series, or `others` for all others.
    #[serde(default)]
    pub to: Names,
    /// Whether the best (least) or the worst (largest) of these counts.
    #[serde(default)]
    pub to_the: Extreme,
    /// The conditions; by default all.
    #[serde(default)]
    pub at: Names,
    /// The condition in which the other value stands; by default the same.
    #[serde(default)]
    pub to_at: Option<String>,
    /// Whether it holds for each of the conditions, or is about one of them ("up to").
    #[serde(default)]
    pub pick: Pick,
    /// The measure; by default the first.
    #[serde(default)]
    pub measure: Option<String>,
    /// The paper's number: the value, or how many times the other it is.
    #[serde(default)]
    pub paper: Option<f64>,
    /// Where the paper gives no number, at least this is what it means.
    #[serde(default)]
    pub least: Option<f64>,
    /// At most this.
    #[serde(default)]
    pub most: Option<f64>,
    /// Where less than `least`, or more than `most`, is better still.
    #[serde(default)]
    pub better: Option<Better>,
    /// Why it is not confirmed here, where that is known: another set-up, a figure of the published simulator, an error of the text.
    #[serde(default)]
    pub why: Option<String>,
}

/// One name or several.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Names {
    /// None was given.
    #[default]
    None,
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// Which of several values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    /// The least.
    #[default]
    Least,
    /// The largest.
    Largest,
}

/// For which conditions a statement holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Each: the one that fits worst counts.
    #[default]
    Each,
    /// The one with the least value, or the least ratio.
    Least,
    /// The one with the largest.
    Largest,
}

/// Which side of a range is better than it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Below.
    Less,
    /// Above.
    More,
}

impl Names {
    pub(super) fn list(&self) -> Vec<&str> {
        match self {
            Self::None => Vec::new(),
            Self::One(name) => vec![name],
            Self::Several(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// For all other series.
pub(super) const OTHERS: &str = "others";
