//! Slowdown by message size, in the same classes for all runs.

use serde::Serialize;

use super::statistics::{mean, percentile, round3};

/// Flows with messages of more than half of `up_to_bytes`, up to `up_to_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// A power of two.
    pub up_to_bytes: u64,
    pub flows: u64,
    pub mean: f64,
    /// 99th percentile of the slowdown.
    pub p99: f64,
}

/// Classifies completed flows, given as (bytes, slowdown); smaller sizes first.
pub(crate) fn size_classes(flows: impl Iterator<Item = (u64, f64)>) -> Vec<SizeClass> {
    let mut classes: Vec<Vec<f64>> = vec![Vec::new(); 64];
    for (bytes, slowdown) in flows {
        classes[bytes.max(1).checked_next_power_of_two().map_or(63, u64::trailing_zeros) as usize].push(slowdown);
    }
    let of = |(power, mut own): (usize, Vec<f64>)| {
        own.sort_by(f64::total_cmp);
        (!own.is_empty()).then(|| SizeClass {
            up_to_bytes: 1 << power,
            flows: own.len() as u64,
            mean: mean(&own).map_or(0.0, round3),
            p99: percentile(&own, 0.99).map_or(0.0, round3),
        })
    };
    classes.into_iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_fall_into_classes_by_powers_of_two() {
        let found = size_classes([(1000, 1.0), (1024, 3.0), (1025, 5.0), (0, 2.0)].into_iter());
        let class = |up_to_bytes, flows, mean, p99| SizeClass { up_to_bytes, flows, mean, p99 };
        assert_eq!(found, [class(1, 1, 2.0, 2.0), class(1024, 2, 2.0, 3.0), class(2048, 1, 5.0, 5.0)]);
    }
}
