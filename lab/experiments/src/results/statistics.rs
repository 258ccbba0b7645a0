//! The statistics that all measures use.

use std::collections::HashMap;

/// Returns the mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the percentile by nearest rank; `part` is 0 to 1. `None` without values.
pub(crate) fn percentile(ascending: &[f64], part: f64) -> Option<f64> {
    ascending.get(rank(ascending.len(), part) - 1).copied()
}

/// Ascending values, some of which are lower bounds: durations of what had not ended.
pub(crate) struct Censored {
    ascending: Vec<f64>,
    /// Index of the least lower bound; the number of values if there is none.
    first_bound: usize,
}

/// A statistic of [`Censored`] values: a lower bound if greater true values would raise it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Statistic {
    pub value: f64,
    pub is_bound: bool,
}

impl Statistic {
    pub fn over(self, whole: f64) -> Self {
        Self { value: self.value / whole, ..self }
    }
}

impl Censored {
    /// Creates it from (value, is a lower bound).
    pub fn new(values: impl Iterator<Item = (f64, bool)>) -> Self {
        let mut values: Vec<(f64, bool)> = values.collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let first_bound = values.iter().position(|(_, is_bound)| *is_bound).unwrap_or(values.len());
        Self { ascending: values.into_iter().map(|(value, _)| value).collect(), first_bound }
    }

    pub fn len(&self) -> usize {
        self.ascending.len()
    }

    pub fn has_bounds(&self) -> bool {
        self.first_bound < self.ascending.len()
    }

    pub fn mean(&self) -> Option<Statistic> {
        Some(Statistic { value: mean(&self.ascending)?, is_bound: self.has_bounds() })
    }

    /// Computes [`percentile`], which is exact if no lower bound is below it.
    pub fn percentile(&self, part: f64) -> Option<Statistic> {
        let value = percentile(&self.ascending, part)?;
        Some(Statistic { value, is_bound: self.first_bound < rank(self.ascending.len(), part) })
    }

    /// Returns the coefficient of variation; `None` if values are lower bounds.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        coefficient_of_variation(&self.ascending).filter(|_| !self.has_bounds())
    }
}

/// Returns the number of values up to and including the percentile.
fn rank(values: usize, part: f64) -> usize {
    ((part * values as f64).ceil() as usize).max(1)
}

/// Returns the population standard deviation over the mean; `None` if the mean is 0.
pub(crate) fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / values.len() as f64).sqrt() / mean)
}

/// Returns Jain's index: (sum of values)² / (n · sum of squares); `None` if all are 0.
pub(crate) fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = values
        .fold((0.0, 0.0, 0.0), |(count, sum, squares), value| (count + 1.0, sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// Returns the maximum over the mean; `None` if all are 0.
pub(crate) fn max_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (sum > 0.0).then(|| values.iter().copied().fold(0.0, f64::max) * values.len() as f64 / sum)
}

/// Returns a part in per cent; 0 of nothing.
pub(crate) fn share(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

pub(crate) fn round3(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

pub(crate) fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Groups values by key, in the order of first occurrence.
pub(crate) fn grouped<K: Clone + Eq + std::hash::Hash, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places = HashMap::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, own)) => own.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_1_for_equal_values_and_1_over_n_for_one_value() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(jain([9.0, 0.0, 0.0].into_iter()), Some(1.0 / 3.0));
        assert!((jain([1.0, 2.0, 3.0].into_iter()).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain(std::iter::empty()), None);
    }

    #[test]
    fn percentiles_are_values_by_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            [0.5, 0.99, 0.999, 1.0].map(|part| percentile(&hundred, part)),
            [50.0, 99.0, 100.0, 100.0].map(Some)
        );
        assert_eq!(percentile(&hundred[..10], 0.99), Some(10.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn lower_bounds_count_with_their_known_value() {
        let of = |values: &[(f64, bool)]| Censored::new(values.iter().copied());
        let exact = |value| Some(Statistic { value, is_bound: false });
        let bound = |value| Some(Statistic { value, is_bound: true });
        let all = of(&[(4.0, false), (2.0, false)]);
        assert_eq!((all.mean(), all.percentile(1.0), all.has_bounds()), (exact(3.0), exact(4.0), false));
        let late = of(&[(10.0, true), (1.0, false), (2.0, false), (3.0, false)]);
        assert_eq!((late.mean(), late.percentile(0.75), late.percentile(0.99)), (bound(4.0), exact(3.0), bound(10.0)));
        assert_eq!((late.len(), late.coefficient_of_variation()), (4, None));
        // A flow observed for a short time may be the slowest: every percentile above its time is a
        // lower bound.
        let early = of(&[(1.0, true), (2.0, false), (3.0, false)]);
        assert_eq!((early.percentile(0.1), early.percentile(0.5)), (bound(1.0), bound(2.0)));
        // Equal values: exact ones are sorted below bounds.
        assert_eq!(of(&[(2.0, true), (2.0, false)]).percentile(0.5), exact(2.0));
        assert_eq!((of(&[]).mean(), of(&[]).percentile(0.5)), (None, None));
    }

    /// For any true values, a statistic that is marked as a lower bound is at most theirs, and
    /// every other one equals it.
    #[test]
    fn no_true_values_contradict_a_statistic() {
        proptest::proptest!(|(values in proptest::collection::vec((0u16..50, 0u16..50, proptest::bool::ANY), 1..30), part in 0.01..1.0f64)| {
            let seen = Censored::new(values.iter().map(|(value, _, is_bound)| (f64::from(*value), *is_bound)));
            let truth = |(value, more, is_bound): &(u16, u16, bool)| (f64::from(value + if *is_bound { *more } else { 0 }), false);
            let truth = Censored::new(values.iter().map(truth));
            for (seen, truth) in [(seen.mean(), truth.mean()), (seen.percentile(part), truth.percentile(part))] {
                let (seen, truth) = (seen.unwrap(), truth.unwrap());
                assert!(if seen.is_bound { seen.value <= truth.value } else { seen.value == truth.value }, "{seen:?} {truth:?}");
            }
        });
    }

    #[test]
    fn variation_is_relative_to_the_mean() {
        assert_eq!(coefficient_of_variation(&[1.0, 3.0]), Some(0.5));
        assert_eq!(coefficient_of_variation(&[5.0, 5.0]), Some(0.0));
        assert_eq!((coefficient_of_variation(&[]), coefficient_of_variation(&[0.0])), (None, None));
    }
}
