#[cfg(feature = "xdp")]
use spray_tools::failure::Outcome;

#[cfg(feature = "xdp")]
pub fn median_of(repeat: u32, measure: impl Fn() -> Outcome<f64>) -> Outcome<f64> {
    Ok(median(&(0..repeat).map(|_| measure()).collect::<Outcome<Vec<f64>>>()?))
}

/// Returns the median: with an even number of values the mean of the middle two, 0 without any.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (_, middle) => sorted[middle],
    }
}

/// Returns the median, the minimum and the maximum.
pub fn spread(values: &[f64]) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [median(values), least, values.iter().copied().fold(0.0, f64::max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), median(&[])), (2.0, 2.5, 0.0));
    }
}
