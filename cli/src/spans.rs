//! What a command does before and between its runs, as spans with their times: on standard error with `-v`, and over OpenTelemetry's protocol
//! to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names.

use std::future::Future;
use std::pin::Pin;
use std::sync::Once;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpStream;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::{Failure, Outcome};
use crate::progress::now;
use crate::say::note;

/// Takes part in every span until it is dropped.
#[derive(Debug)]
pub struct Spans(Option<SdkTracerProvider>);

/// The standard names of the collector's address: for everything, and for traces alone.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
/// What a collector has to answer within.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes spans to standard error, as often as `-v` was given, and sends them to the collector that the environment names.
///
/// # Errors
/// 2 when the collector's address is none.
pub fn begin(verbose: u8) -> Outcome<Spans> {
    let ours = |level: LevelFilter| Targets::new().with_target("spray", level);
    let level = if verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let told = (verbose > 0).then(|| Told.with_filter(ours(level)));
    let named = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let provider = if ENDPOINTS.into_iter().any(named) { Some(provider()?) } else { None };
    let sent = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer().with_tracer(provider.tracer("spray")).with_filter(ours(LevelFilter::DEBUG))
    });
    // Fails only where a subscriber is set already, which nobody does.
    let _ = tracing_subscriber::registry().with(told).with(sent).try_init();
    Ok(Spans(provider))
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

/// Sends each span when it ends: they are few, and a command may give its sockets up soon after.
fn provider() -> Outcome<SdkTracerProvider> {
    let exporter =
        SpanExporter::builder().with_http().with_http_client(Client).with_protocol(Protocol::HttpJson).build();
    let exporter = exporter.map_err(|error| {
        Failure::refused(format!("{}: {error}; allowed: http://HOST:PORT", ENDPOINTS.join(", or ")))
    })?;
    let resource = Resource::builder().with_service_name("spray").build();
    Ok(SdkTracerProvider::builder().with_simple_exporter(exporter).with_resource(resource).build())
}

impl Drop for Spans {
    fn drop(&mut self) {
        // A collector that does not answer is no reason to fail.
        let _ = self.0.as_ref().map(SdkTracerProvider::shutdown);
    }
}

/// Posts one request over HTTP/1.1, without TLS: collectors stand on the same machine or in the same pod.
#[derive(Debug)]
struct Client;

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
    {
        Box::pin(async move {
            let address = request.uri().to_string();
            // On a thread of its own: who ends a span may be within a runtime.
            let answer = std::thread::spawn(|| post(request)).join().unwrap_or_else(|_| Err("it panicked".into()));
            if let Err(error) = &answer {
                WARNED.call_once(|| note!("spray: warning: no trace reaches {address}: {error}"));
            }
            answer
        })
    }
}

/// The user knows that the collector does not answer.
static WARNED: Once = Once::new();

fn post(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().cloned().ok_or("the collector's address has no host")?;
    if request.uri().scheme_str() != Some("http") {
        return Err("the collector's address does not begin with http://".into());
    }
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exchange = async {
        let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(4318))).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        connection.abort();
        Ok::<_, HttpError>(Response::from_parts(head, body))
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, exchange).await? })
}
