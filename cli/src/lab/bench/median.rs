//! Medians of measurements.

#[cfg(feature = "xdp")]
use spray_tools::failure::Outcome;

/// The median of `repeat` measurements.
///
/// # Errors
/// The first that failed.
#[cfg(feature = "xdp")]
pub fn median_of(repeat: u32, measure: impl Fn() -> Outcome<f64>) -> Outcome<f64> {
    Ok(median(&(0..repeat).map(|_| measure()).collect::<Outcome<Vec<f64>>>()?))
}

/// The middle value; the mean of the middle two of an even number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (_, middle) => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), median(&[])), (2.0, 2.5, 0.0));
    }
}
