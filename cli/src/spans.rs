//! What a command does before and between its runs, as spans with their times: on standard error with `-v`, and, in a build with the feature
//! `otlp`, over OpenTelemetry's protocol to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names.

#[cfg(feature = "otlp")]
mod collector;

use std::time::{Duration, Instant};

use spray_tools::failure::Outcome;
use spray_tools::note;
use spray_tools::progress::now;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

#[cfg(feature = "otlp")]
use self::collector::Collector;

/// Stands for a collector where the build has none.
#[cfg(not(feature = "otlp"))]
#[derive(Debug)]
pub enum Collector {}

/// The standard names of the collector's address: for everything, and for traces alone.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Writes spans to standard error, as often as `-v` was given, and sends them to the collector that the environment names. What is returned
/// takes part in every span until it is dropped.
///
/// # Errors
/// 2 when the collector's address is none.
pub fn begin(verbose: u8) -> Outcome<Option<Collector>> {
    let level = if verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let told = (verbose > 0).then(|| Told.with_filter(ours(level)));
    let named = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let layers = tracing_subscriber::registry().with(told);
    send(layers, ENDPOINTS.into_iter().any(named))
}

fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("spray", level)
}

/// Adds the collector, if one is `named`, and has the layers take spans.
#[cfg(feature = "otlp")]
fn send<S>(layers: S, named: bool) -> Outcome<Option<Collector>>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let collector = if named { Some(Collector::new(&ENDPOINTS)?) } else { None };
    let sent = collector.as_ref().map(|collector| collector.layer().with_filter(ours(LevelFilter::DEBUG)));
    // Fails only where a subscriber is set already, which nobody does.
    let _ = layers.with(sent).try_init();
    Ok(collector)
}

/// Has the layers take spans, and says that no collector gets them.
#[cfg(not(feature = "otlp"))]
fn send(layers: impl SubscriberInitExt, named: bool) -> Outcome<Option<Collector>> {
    if named {
        note!(
            "spray: warning: no trace is sent: this spray is built without OpenTelemetry; `cargo xtask build` has it"
        );
    }
    let _ = layers.try_init();
    Ok(None)
}

/// Says of every span that ends how long it took.
struct Told;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Told {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(now());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let took = span.extensions().get::<Instant>().map_or(Duration::ZERO, |begun| now().duration_since(*begun));
        let path: Vec<&str> = span.scope().from_root().map(|span| span.name()).collect();
        note!("{:>10.1} ms  {}", took.as_secs_f64() * 1e3, path.join(" / "));
    }
}
