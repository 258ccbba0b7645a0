//! Statistics of values: the one definition of each.

/// The mean; `None` of no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The percentile of ascending values by nearest rank: the least value that at least the share `part`, 0 to 1, of all do not exceed. `None` of no
/// values.
pub(crate) fn percentile(ascending: &[f64], part: f64) -> Option<f64> {
    let rank = (part * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied()
}

/// The standard deviation, of all values and not of a sample, over the mean; `None` where the mean is 0, or of no values.
pub(crate) fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / values.len() as f64).sqrt() / mean)
}

/// Jain's index: the square of the sum over the sum of the squares, for each value. `None` where all are 0, or there is none.
pub(crate) fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = values
        .fold((0.0, 0.0, 0.0), |(count, sum, squares), value| (count + 1.0, sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// The largest value over the mean; `None` where all are 0, or there is none.
pub(crate) fn max_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (sum > 0.0).then(|| values.iter().copied().fold(0.0, f64::max) * values.len() as f64 / sum)
}

/// A count of a whole, in per cent; 0 of nothing.
pub(crate) fn share(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

/// Rounds to thousandths.
pub(crate) fn round3(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_when_all_have_the_same_and_a_share_when_one_has_all() {
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
    fn variation_is_relative_to_the_mean() {
        assert_eq!(coefficient_of_variation(&[1.0, 3.0]), Some(0.5));
        assert_eq!(coefficient_of_variation(&[5.0, 5.0]), Some(0.0));
        assert_eq!((coefficient_of_variation(&[]), coefficient_of_variation(&[0.0])), (None, None));
    }
}
