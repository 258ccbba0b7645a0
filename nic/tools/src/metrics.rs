//! `--metrics`: counters and gauges for Prometheus, served while a command runs.
//!
//! | file | content |
//! |---|---|
//! | `server` | answers requests for them |
//! | `session` | those of `send` and `recv` |

mod server;
#[cfg(feature = "xdp")]
pub(crate) mod session;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use self::server::Server;
use crate::failure::Outcome;

/// Metrics for Prometheus.
#[derive(Clone, Copy, Debug, Args)]
pub struct Publish {
    /// Publish metrics over HTTP while the command runs, at /metrics of this port of the loopback interface or of another address
    #[arg(long, value_name = "[ADDRESS:]PORT", help_heading = "Output")]
    pub metrics: Option<Listen>,
}

/// Where metrics are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl FromStr for Listen {
    type Err = &'static str;

    /// `PORT` of the loopback interface, or `ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let here = text.parse().map(loopback);
        here.or_else(|_| text.parse()).map(Self).map_err(|_| "expected PORT, or ADDRESS:PORT as in 127.0.0.1:9464")
    }
}

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
struct Board(Arc<Mutex<Vec<Metric>>>);

impl Board {
    fn put(&self, metrics: Vec<Metric>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = metrics;
    }

    /// The metrics in the text format of OpenMetrics, which Prometheus reads.
    fn text(&self) -> Result<String, fmt::Error> {
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

/// The metrics of a command: nothing where nobody asked for them.
#[derive(Debug, Default)]
pub struct Metrics {
    board: Board,
    server: Option<Mutex<Server>>,
}

impl Metrics {
    /// Takes the port, if metrics are asked for.
    ///
    /// # Errors
    /// 2 when it cannot be had.
    pub fn open(listen: Option<Listen>) -> Outcome<Self> {
        let board = Board::default();
        let server = listen.map(|Listen(address)| Server::open(address, board.clone())).transpose()?;
        Ok(Self { board, server: server.map(Mutex::new) })
    }

    /// Whether anybody may look at them.
    pub fn are_served(&self) -> bool {
        self.server.is_some()
    }

    /// Begins to serve them, on a thread that opens nothing but connections.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&self) -> Outcome {
        self.server.as_ref().map_or(Ok(()), |server| server.lock().unwrap_or_else(PoisonError::into_inner).start())
    }

    /// Replaces what is served.
    pub fn put(&self, metrics: Vec<Metric>) {
        self.board.put(metrics);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_port_is_of_the_loopback_interface_unless_an_address_is_given() {
        let port = |text: &str| text.parse::<Listen>().map(|listen| listen.0.to_string());
        assert_eq!(port("9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(port("[::]:9464").unwrap(), "[::]:9464");
        assert!(port("localhost:9464").is_err() && port("70000").is_err());
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn they_are_served_as_they_are_at_the_moment_and_nothing_else_is() {
        let metrics = Metrics::open(Some("0".parse().unwrap())).unwrap();
        let address = metrics.server.as_ref().unwrap().lock().unwrap().address();
        metrics.start().unwrap();
        let get = |path: &str| ask(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        metrics.put(vec![Metric::counter("frames", "Frames").with(vec![("kind", "da\"ta".into())], 7.0)]);
        let first = get("/metrics");
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("application/openmetrics-text"), "{first}");
        assert!(first.contains("# HELP spray_frames Frames\n# TYPE spray_frames counter\n"), "{first}");
        assert!(first.contains("spray_frames_total{kind=\"da\\\"ta\"} 7.0\n# EOF\n"), "{first}");
        metrics.put(vec![Metric::gauge("runs", "Runs").with(vec![], 0.5)]);
        let second = get("/metrics");
        assert!(second.contains("spray_runs 0.5\n") && !second.contains("frames"), "{second}");
        assert!(get("/other").starts_with("HTTP/1.1 404"));
        assert!(
            ask(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 405")
        );
        assert!(ask(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_else_out() {
        let metrics = Metrics::open(Some("0".parse().unwrap())).unwrap();
        let address = metrics.server.as_ref().unwrap().lock().unwrap().address();
        metrics.start().unwrap();
        let idle: Vec<TcpStream> = (0..3 * server::CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(idle);
    }
}
