//! `spray bench`: how fast things are, as ratios measured side by side in one run.

#[cfg(target_os = "linux")]
mod hostile;
mod sim;
#[cfg(feature = "xdp")]
mod speed;
#[cfg(feature = "xdp")]
mod start;
#[cfg(feature = "xdp")]
mod switch;
#[cfg(target_os = "linux")]
mod transport;
#[cfg(feature = "xdp")]
mod veth;

#[cfg(feature = "xdp")]
pub use veth::peers;

use spray_tools::failure::Outcome;

use crate::lab::args::Bench;

/// Measures what the arguments name.
///
/// # Errors
/// 2 when the machine does not allow it, 1 when a measurement failed, 130 after Ctrl-C.
pub fn bench(arguments: &Bench) -> Outcome {
    match arguments {
        #[cfg(feature = "xdp")]
        Bench::Veth(arguments) => veth::veth(arguments),
        Bench::Sim(arguments) => sim::sim(arguments),
        #[cfg(target_os = "linux")]
        Bench::Hostile(arguments) => hostile::hostile(arguments),
        #[cfg(target_os = "linux")]
        Bench::Transport(arguments) => transport::transport(arguments),
        #[cfg(feature = "xdp")]
        Bench::Switch(arguments) => switch::switch(arguments),
        #[cfg(feature = "xdp")]
        Bench::Start(arguments) => start::start(arguments),
        #[cfg(feature = "xdp")]
        Bench::Speed(arguments) => speed::speed(arguments),
    }
}

/// The median of so many measurements.
///
/// # Errors
/// The first that failed.
#[cfg(feature = "xdp")]
fn median_of(repeat: u32, measure: impl Fn() -> Outcome<f64>) -> Outcome<f64> {
    Ok(median(&(0..repeat).map(|_| measure()).collect::<Outcome<Vec<f64>>>()?))
}

/// The middle value; the mean of the middle two of an even number.
fn median(values: &[f64]) -> f64 {
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
