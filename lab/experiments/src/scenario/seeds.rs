//! Seeds as scenarios write them: numbers, ranges, and lists of them.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::number_or_text::NumberOrText;

/// Maximum number of seeds of a scenario.
pub const MAX_SEEDS: usize = 10_000;
/// Largest seed: TOML's largest integer.
const MAX_SEED: u64 = i64::MAX as u64;

/// An inclusive range of seeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText<u64>", into = "String")]
pub struct Seeds(RangeInclusive<u64>);

impl Seeds {
    /// Parses `7` or `1..20`: the first is at most the last, and there are at most [`MAX_SEEDS`].
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().ok().filter(|seed| *seed <= MAX_SEED);
        let (first, last) = (number(first)?, number(last)?);
        (first <= last && last - first < MAX_SEEDS as u64).then_some(Self(first..=last))
    }

    /// Returns the distinct seeds of a list, in order.
    pub fn all(list: &[Self]) -> Vec<u64> {
        let mut seen = std::collections::HashSet::new();
        list.iter().flat_map(|seeds| seeds.0.clone()).filter(|seed| seen.insert(*seed)).collect()
    }
}

impl From<Seeds> for String {
    fn from(Seeds(range): Seeds) -> Self {
        format!("{}..{}", range.start(), range.end())
    }
}

impl TryFrom<NumberOrText<u64>> for Seeds {
    type Error = &'static str;

    fn try_from(written: NumberOrText<u64>) -> Result<Self, Self::Error> {
        let text = match written {
            NumberOrText::Number(seed) => seed.to_string(),
            NumberOrText::Text(text) => text,
        };
        Self::parse(&text).ok_or("no seeds")
    }
}

inline_schema!(Seeds, {
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": "^[0-9]+(\\.\\.[0-9]+)?$",
    "x-allowed": format!("a number, or a range such as \"1..20\", the smaller end first, of at most {MAX_SEEDS}"),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_values_are_parsed_and_others_rejected() {
        let all =
            |texts: &[&str]| Seeds::all(&texts.iter().map(|text| Seeds::parse(text).unwrap()).collect::<Vec<_>>());
        assert_eq!(all(&["3..5", "1", "4..6"]), [3, 4, 5, 1, 6]);
        for text in ["5..3", "1...", "a..b", "0..10000", "-1..2", "9223372036854775808", ""] {
            assert_eq!(Seeds::parse(text), None, "{text}");
        }
    }
}
