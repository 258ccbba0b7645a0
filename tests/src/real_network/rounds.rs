//! A figure over several rounds.

use core::fmt;

/// The figure of each round; `None` if the transfer failed.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Vec<Option<f64>>);

impl Rounds {
    /// Adds the figure of a round.
    pub fn push(&mut self, figure: Option<f64>) {
        self.0.push(figure);
    }

    /// Returns the median, or the mean of the two in the middle; 0 if one of these failed, and
    /// without rounds.
    pub fn median(&self) -> f64 {
        self.middle().unwrap_or_default()
    }

    fn middle(&self) -> Option<f64> {
        let sorted = self.sorted();
        let at = |index: usize| sorted.get(index).copied().flatten();
        Some((at(sorted.len() / 2)? + at(sorted.len().saturating_sub(1) / 2)?) / 2.0)
    }

    fn sorted(&self) -> Vec<Option<f64>> {
        let mut sorted = self.0.clone();
        sorted.sort_by(|one, other| one.unwrap_or(-1.0).total_cmp(&other.unwrap_or(-1.0)));
        sorted
    }
}

impl FromIterator<Option<f64>> for Rounds {
    fn from_iter<T: IntoIterator<Item = Option<f64>>>(rounds: T) -> Self {
        Self(rounds.into_iter().collect())
    }
}

/// Formats the median, and for several rounds the minimum and maximum: `191 (19–191)`; `-` for a
/// failed transfer. The precision is the number of decimals.
impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let one = |figure: Option<f64>| figure.map_or("-".into(), |figure| format!("{figure:.digits$}"));
        f.write_str(&one(self.middle()))?;
        match self.sorted().as_slice() {
            [least, .., most] => write!(f, " ({}–{})", one(*least), one(*most)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_formatted_as_median_and_range() {
        let rounds = |figures: &[Option<f64>]| figures.iter().copied().collect::<Rounds>();
        assert_eq!(rounds(&[Some(191.2), Some(19.0), Some(191.4)]).to_string(), "191 (19–191)");
        assert_eq!(rounds(&[None, Some(183.0), Some(185.0)]).to_string(), "183 (-–185)");
        assert_eq!(rounds(&[None, Some(1.0), None]).to_string(), "- (-–1)");
        assert_eq!(format!("{:.2}", rounds(&[Some(0.987)])), "0.99");
        assert_eq!(rounds(&[Some(0.0)]).to_string(), "0");
        assert_eq!(rounds(&[Some(3.0), Some(1.0), Some(2.0), None]).median(), 1.5);
        assert_eq!(rounds(&[None, None, Some(1.0)]).median(), 0.0);
    }
}
