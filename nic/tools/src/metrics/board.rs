//! Storage and OpenMetrics encoding of metrics.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// A family of values with the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name without the prefix `spray_` and the suffix `_total`.
    pub name: String,
    /// The description, without a full stop.
    pub help: String,
    /// Whether it is a counter; a gauge otherwise.
    pub is_counter: bool,
    /// Labels and values.
    pub values: Vec<(Labels, f64)>,
    /// Of a histogram: upper bounds (the last is `f64::MAX`) and counts. Its value is the sum.
    pub buckets: Vec<(f64, u64)>,
}

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

impl Metric {
    /// Creates a counter without values.
    pub fn counter(name: impl Into<String>, help: impl Into<String>) -> Self {
        Self { name: name.into(), help: help.into(), is_counter: true, values: Vec::new(), buckets: Vec::new() }
    }

    /// Creates a gauge without values.
    pub fn gauge(name: impl Into<String>, help: impl Into<String>) -> Self {
        Self { is_counter: false, ..Self::counter(name, help) }
    }

    /// Creates a histogram without labels.
    pub fn histogram(name: impl Into<String>, help: impl Into<String>, sum: f64, buckets: Vec<(f64, u64)>) -> Self {
        Self { buckets, ..Self::gauge(name, help).with(Labels::new(), sum) }
    }

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, labels: Labels, value: f64) -> Self {
        self.values.push((labels, value));
        self
    }

    fn add(&mut self, other: &Self) {
        for (labels, value) in &other.values {
            match self.values.iter_mut().find(|(known, _)| known == labels) {
                Some((_, known)) => *known += value,
                None => self.values.push((labels.clone(), *value)),
            }
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|((_, count), (_, more))| *count += more);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<Mutex<Vec<Vec<Metric>>>>);

/// The metrics of one thread.
#[derive(Debug)]
pub struct Section {
    board: Board,
    place: usize,
}

impl Section {
    /// Replaces the metrics of this section.
    pub fn put(&self, metrics: Vec<Metric>) {
        self.board.parts()[self.place] = metrics;
    }
}

impl Board {
    pub(super) fn part(&self) -> Section {
        let mut parts = self.parts();
        parts.push(Vec::new());
        Section { board: self.clone(), place: parts.len() - 1 }
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Vec<Metric>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sum(&self) -> Vec<Metric> {
        let parts = self.parts();
        let Some((first, others)) = parts.split_first() else { return Vec::new() };
        let mut sum = first.clone();
        for metric in others.iter().flatten() {
            match sum.iter_mut().find(|known| known.name == metric.name) {
                Some(known) => known.add(metric),
                None => sum.push(metric.clone()),
            }
        }
        sum
    }

    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let (mut registry, mut text) = (Registry::with_prefix("spray"), String::new());
        registry.register_collector(Box::new(self.clone()));
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for Board {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Metric { name, help, is_counter, values, buckets } in &self.sum() {
            if let [(_, sum), ..] = values[..]
                && !buckets.is_empty()
            {
                let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
                let count = buckets.iter().map(|(_, count)| count).sum();
                family.encode_histogram::<NoLabelSet>(sum, count, buckets, None)?;
                continue;
            }
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in values {
                let labels: Labels = labels.iter().map(|(name, value)| (*name, escaped(value))).collect();
                // The encoder of a family writes braces even without labels.
                match labels.is_empty() {
                    true => write(&mut family, *is_counter, *value)?,
                    false => write(&mut family.encode_family(&labels)?, *is_counter, *value)?,
                }
            }
        }
        Ok(())
    }
}

fn write(encoder: &mut MetricEncoder<'_>, is_counter: bool, value: f64) -> Result<(), fmt::Error> {
    if is_counter { encoder.encode_counter::<NoLabelSet, _, u64>(&value, None) } else { encoder.encode_gauge(&value) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_threads_add_up() {
        let board = Board::default();
        let parts = [board.part(), board.part(), board.part()];
        let of = |kind: &'static str| vec![("kind", kind.to_string())];
        for (part, count) in parts.iter().zip([1.0, 20.0, 300.0]) {
            part.put(vec![Metric::counter("frames", "Frames").with(of("data"), 7.0)]);
            part.put(vec![Metric::counter("frames", "Frames").with(of("data"), count)]);
        }
        for count in [1, 2] {
            let buckets = vec![(0.5, count), (f64::MAX, 10 * count)];
            board.part().put(vec![Metric::histogram("rtt_seconds", "Times", count as f64, buckets)]);
        }
        let histogram = board.text().unwrap();
        let lines: Vec<&str> = histogram.lines().filter(|line| line.contains("rtt")).skip(1).collect();
        assert_eq!(
            lines,
            [
                "# TYPE spray_rtt_seconds histogram",
                "spray_rtt_seconds_sum 3.0",
                "spray_rtt_seconds_count 33",
                "spray_rtt_seconds_bucket{le=\"0.5\"} 3",
                "spray_rtt_seconds_bucket{le=\"+Inf\"} 33"
            ]
        );
        parts[1].put(vec![
            Metric::gauge("connections", "Open").with(vec![], 2.0),
            Metric::counter("frames", "Frames").with(of("ack"), 4.0).with(of("data"), 5.0),
        ]);
        let text = board.text().unwrap();
        for line in
            ["spray_frames_total{kind=\"data\"} 306.0", "spray_frames_total{kind=\"ack\"} 4.0", "spray_connections 2.0"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.matches("# TYPE spray_frames").count(), 1, "{text}");
    }
}
