//! Spans over OpenTelemetry's protocol (HTTP with JSON).

use std::future::Future;
use std::pin::Pin;
use std::sync::Once;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::note;
use tokio::net::TcpStream;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

/// What a collector has to answer within.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends spans until it is dropped.
#[derive(Debug)]
pub struct Collector(SdkTracerProvider);

impl Collector {
    /// Sends each span when it ends: they are few, and a command may give its sockets up soon after. `variables` of the environment name the
    /// collector's address.
    ///
    /// # Errors
    /// 2 when the environment names no address.
    pub(super) fn new(variables: &[&str]) -> Outcome<Self> {
        let exporter =
            SpanExporter::builder().with_http().with_http_client(Client).with_protocol(Protocol::HttpJson).build();
        let exporter = exporter.map_err(|error| {
            Failure::refused(format!("{}: {error}; allowed: http://HOST:PORT", variables.join(", or ")))
        })?;
        let resource = Resource::builder().with_service_name("spray").build();
        Ok(Self(SdkTracerProvider::builder().with_simple_exporter(exporter).with_resource(resource).build()))
    }

    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("spray"))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A collector that does not answer is no reason to fail.
        let _ = self.0.shutdown();
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
            let answer = match std::thread::Builder::new().spawn(|| post(request)) {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err("it panicked".into())),
                Err(error) => Err(error.into()),
            };
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
