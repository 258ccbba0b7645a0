//! Downsampled time series.

use crate::results::{EventKind, RunResult, gbps, us};

/// Maximum number of points of a line over time.
pub(super) const BINS: usize = 240;
/// Maximum number of points of a distribution.
const STEPS: usize = 400;

/// Returns (middle of the bin in us, rate in Gb/s) from ascending (time in us, cumulative bytes).
pub(super) fn rates(cumulative: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = cumulative.len().div_ceil(BINS).max(1);
    let marks: Vec<&(f64, f64)> = cumulative.iter().step_by(step).chain(cumulative.last()).collect();
    let rate = |pair: &[&(f64, f64)]| {
        let (from, to) = (pair[0], pair[1]);
        let bytes = (to.1 - from.1).max(0.0) as u64;
        (to.0 > from.0).then(|| (f64::midpoint(from.0, to.0), gbps(bytes, to.0 - from.0)))
    };
    marks.windows(2).filter_map(rate).collect()
}

/// Interpolates a cumulative count at `time` between ascending (time, count).
pub(super) fn count_at(samples: &[(f64, f64)], time: f64) -> f64 {
    let next = samples.partition_point(|(at, _)| *at < time);
    match (next.checked_sub(1).map(|before| samples[before]), samples.get(next)) {
        (Some((from, a)), Some((to, b))) => a + (b - a) * (time - from) / (to - from),
        (Some((_, bytes)), None) => bytes,
        (None, first) => first.map_or(0.0, |(_, bytes)| *bytes),
    }
}

/// Returns the cumulative distribution in per cent of `total`, in at most `STEPS` points.
pub(super) fn distribution(values: &[f64], total: usize) -> Vec<(f64, f64)> {
    let percent = |done: usize| done as f64 * 100.0 / total.max(1) as f64;
    if values.len() > STEPS {
        let rank = |step: usize| (step * (values.len() - 1)) / (STEPS - 1);
        return (0..STEPS).map(rank).map(|rank| (values[rank], percent(rank + 1))).collect();
    }
    values.iter().enumerate().flat_map(|(i, value)| [(*value, percent(i)), (*value, percent(i + 1))]).collect()
}

/// Returns the time of the run's last flow, sample or event.
pub(super) fn end_us(run: &RunResult) -> f64 {
    let flows = run.flows.iter().filter_map(|flow| flow.end_us);
    let samples = run.delivered.last().map(|(ps, _)| us(*ps));
    let events = run.events.iter().map(|event| event.time_us);
    flows.chain(samples).chain(events).filter(|time| time.is_finite()).fold(0.0, f64::max)
}

pub(super) fn is_change(kind: EventKind) -> bool {
    matches!(kind, EventKind::Failure | EventKind::Recovered | EventKind::Reroute)
}

/// Keeps at most `most` values, evenly spread.
pub(super) fn thinned<T>(values: Vec<T>, most: usize) -> Vec<T> {
    let step = values.len().div_ceil(most).max(1);
    values.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_between_its_samples_in_proportion() {
        let samples = [(0.0, 0.0), (10.0, 100.0), (30.0, 100.0)];
        let found = [-1.0, 0.0, 5.0, 10.0, 20.0, 99.0].map(|time| count_at(&samples, time));
        assert_eq!(found, [0.0, 0.0, 50.0, 100.0, 100.0, 100.0]);
        assert_eq!(count_at(&[], 1.0), 0.0);
    }

    #[test]
    fn a_distribution_ends_at_the_completed_share() {
        assert_eq!(distribution(&[1.0, 3.0], 4), [(1.0, 0.0), (1.0, 25.0), (3.0, 25.0), (3.0, 50.0)]);
        let many: Vec<f64> = (0..100_000).map(f64::from).collect();
        let found = distribution(&many, many.len());
        assert_eq!((found.len(), found[STEPS - 1]), (STEPS, (99_999.0, 100.0)));
    }

    #[test]
    fn rates_are_between_samples_and_few() {
        assert_eq!(rates(&[(0.0, 0.0), (1.0, 1000.0), (3.0, 1000.0)]), [(0.5, 8.0), (2.0, 0.0)]);
        let many: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 125.0 * f64::from(i))).collect();
        let found = rates(&many);
        assert!(found.len() <= BINS && found.iter().all(|(_, rate)| (rate - 1.0).abs() < 1e-9));
    }
}
