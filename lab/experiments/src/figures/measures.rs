//! Measures of a run for figures: every number of `summary.json` by its key, and derived ones.
//!
//! Nested numbers are `workloads.NAME.fct_p99_us` or `layers.LAYER.queue_max_bytes`. Derived are:
//!
//! - `bound_us`, `bound_gbps`: least time and highest common rate (OFAN appendices A and B);
//! - `above_percent`: the makespan above that bound (OFAN §5);
//! - `fct_p80_us`: the 80th percentile of completion times;
//! - `watch.uneven_percent`: mean deviation of the plotted links from their mean at each sample;
//! - `watch.queue_bytes`: the largest queue sample of these links.

use std::collections::BTreeMap;

use serde_json::Value;

use super::port_series::PortSeries;
use crate::bound::Bound;
use crate::results::statistics::round3;
use crate::results::{RunResult, times};

/// Numbers by key.
pub type Measures = BTreeMap<String, f64>;

pub(super) const OF_BOUND: [&str; 3] = ["bound_us", "bound_gbps", "above_percent"];

/// Returns the measures of a run, with those of `OF_BOUND` if a bound is given.
pub(super) fn of_run(run: &RunResult, bound: Option<&Bound>, port_series: &[PortSeries]) -> Measures {
    let summary = run.summary();
    let mut all = Measures::new();
    let value = serde_json::to_value(&summary).unwrap_or_default();
    flatten("", &value, &mut all);
    if let Some(bound) = bound {
        let bound_us = bound.completion_ps as f64 / 1e6;
        all.extend([("bound_us".into(), bound_us), ("bound_gbps".into(), bound.rate_bps / 1e9)]);
        let above = |us: f64| ("above_percent".into(), 100.0 * (us / bound_us - 1.0));
        all.extend(summary.flows.makespan_us.map(above));
    }
    all.extend(times(run.flows.iter()).percentile(0.8).map(|p80| ("fct_p80_us".into(), p80.value)));
    all.extend(unevenness(port_series));
    all
}

pub(super) fn named<const N: usize>(values: [(&str, f64); N]) -> Measures {
    values.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn flatten(path: &str, value: &Value, all: &mut Measures) {
    let below = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    match value {
        Value::Number(number) => all.extend(number.as_f64().map(|number| (path.to_string(), number))),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&below(name), value, all)),
        Value::Array(items) => {
            for item in items {
                let name = ["name", "layer"].iter().find_map(|key| item.get(key)?.as_str());
                name.into_iter().for_each(|name| flatten(&below(name), item, all));
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn unevenness(port_series: &[PortSeries]) -> Measures {
    let samples = port_series.iter().map(|lines| lines.gbps.len()).min().unwrap_or(0);
    if port_series.is_empty() {
        return Measures::new();
    }
    let (mut sum, mut count) = (0.0, 0u64);
    // Skips the start and the end of the flows.
    for sample in samples / 4..3 * samples / 4 {
        let rates: Vec<f64> = port_series.iter().map(|lines| lines.gbps[sample].1).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        if mean > 0.0 {
            sum += rates.iter().map(|rate| (rate / mean - 1.0).abs()).sum::<f64>();
            count += rates.len() as u64;
        }
    }
    let queue = port_series.iter().flat_map(|port| &port.queue_bytes).fold(0.0f64, |most, (_, bytes)| most.max(*bytes));
    let uneven_percent = round3(100.0 * sum / count.max(1) as f64);
    named([("watch.uneven_percent", uneven_percent), ("watch.queue_bytes", queue)])
}
