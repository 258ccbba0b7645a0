//! Spans with their durations on standard error, with `-v`.

use std::time::{Duration, Instant};

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

pub fn begin(verbose: u8) {
    let level = if verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let printer = (verbose > 0).then(|| SpanPrinter.with_filter(Targets::new().with_target("spray", level)));
    // Fails only if a subscriber is set already, which is never the case.
    let _ = tracing_subscriber::registry().with(printer).try_init();
}

/// Prints the duration of every span at its end.
struct SpanPrinter;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanPrinter {
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
