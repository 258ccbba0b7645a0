//! What is served, as Prometheus reads it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// All values of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name without the prefix `spray_` and the suffix `_total`.
    pub name: String,
    /// What it counts, without a full stop.
    pub help: String,
    /// Whether it only grows; a gauge otherwise.
    pub is_counter: bool,
    /// Labels and values.
    pub values: Vec<(Labels, f64)>,
}

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

impl Metric {
    /// A counter; values are added later.
    pub fn counter(name: impl Into<String>, help: impl Into<String>) -> Self {
        Self { name: name.into(), help: help.into(), is_counter: true, values: Vec::new() }
    }

    /// A gauge.
    pub fn gauge(name: impl Into<String>, help: impl Into<String>) -> Self {
        Self { is_counter: false, ..Self::counter(name, help) }
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, labels: Labels, value: f64) -> Self {
        self.values.push((labels, value));
        self
    }
}

/// What is served: who counts puts it here now and then, whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<Mutex<Vec<Metric>>>);

impl Board {
    pub(super) fn put(&self, metrics: Vec<Metric>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = metrics;
    }

    /// The metrics in the text format of OpenMetrics, which Prometheus reads.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let (mut registry, mut text) = (Registry::with_prefix("spray"), String::new());
        registry.register_collector(Box::new(self.clone()));
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for Board {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Metric { name, help, is_counter, values } in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in values {
                let labels: Labels = labels.iter().map(|(name, value)| (*name, escaped(value))).collect();
                // The encoder of a family writes braces around no labels, too.
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

/// A label's value as the format has it; the encoder leaves it as it is.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
