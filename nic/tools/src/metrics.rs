//! `--metrics`: counters and gauges for Prometheus, served over HTTP while a command runs.

mod board;
mod server;
#[cfg(feature = "xdp")]
pub(crate) mod session;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use clap::Args;

use self::board::Board;
pub use self::board::{Labels, Metric, Section};
use self::server::Server;
use crate::failure::Outcome;

/// The arguments for metrics.
#[derive(Clone, Copy, Debug, Args)]
pub struct Publish {
    /// Publish metrics over HTTP at /metrics of this port, by default on the loopback interface
    #[arg(long, value_name = "[ADDRESS:]PORT", help_heading = "Output")]
    pub metrics: Option<Listen>,
}

/// The address on which metrics are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let here = text.parse().map(loopback);
        here.or_else(|_| text.parse()).map(Self).map_err(|_| "expected PORT, or ADDRESS:PORT as in 127.0.0.1:9464")
    }
}

/// The metrics of a command, empty without `--metrics`.
#[derive(Debug, Default)]
pub struct Metrics {
    board: Board,
    server: Option<Mutex<Server>>,
}

impl Metrics {
    /// Binds the port, if metrics are requested.
    ///
    /// # Errors
    /// 2 if it is not available.
    pub fn open(listen: Option<Listen>) -> Outcome<Self> {
        let board = Board::default();
        let server = listen.map(|Listen(address)| Server::open(address, board.clone())).transpose()?;
        Ok(Self { board, server: server.map(Mutex::new) })
    }

    /// Adds the metrics of one thread; `None` without `--metrics`.
    pub fn part(&self) -> Option<Section> {
        self.server.as_ref().map(|_| self.board.part())
    }

    /// Starts the server thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(&self) -> Outcome {
        self.server.as_ref().map_or(Ok(()), |server| server.lock().unwrap_or_else(PoisonError::into_inner).start())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_port_without_address_is_on_loopback() {
        let port = |text: &str| text.parse::<Listen>().map(|listen| listen.0.to_string());
        assert_eq!(port("9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(port("[::]:9464").unwrap(), "[::]:9464");
        assert!(port("localhost:9464").is_err() && port("70000").is_err());
    }

    fn request(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_current_metrics_are_served() {
        let metrics = Metrics::open(Some("0".parse().unwrap())).unwrap();
        let address = metrics.server.as_ref().unwrap().lock().unwrap().address();
        metrics.start().unwrap();
        let request_of =
            |what: &str| request(address, &format!("{what} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let get = |path: &str| request_of(&format!("GET {path}"));
        let part = metrics.part().unwrap();
        part.put(vec![Metric::counter("frames", "Frames").with(vec![("kind", "da\"ta".into())], 7.0)]);
        let value = "spray_frames_total{kind=\"da\\\"ta\"} 7.0\n";
        let open = get("/metrics");
        assert!(
            open.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;"),
            "{open}"
        );
        let family = "# HELP spray_frames Frames\n# TYPE spray_frames counter\n";
        assert!(open.ends_with(&format!("\r\n\r\n{family}{value}# EOF\n")), "{open}");
        let head = request_of("HEAD /metrics");
        assert_eq!(head, open[..head.len()]);
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        part.put(vec![Metric::gauge("runs", "Runs").with(vec![], 0.5)]);
        let second = get("/metrics");
        assert!(second.contains("spray_runs 0.5\n") && !second.contains("frames"), "{second}");
        assert!(get("/other").starts_with("HTTP/1.1 404"));
        assert!(request_of("POST /metrics").starts_with("HTTP/1.1 405"));
        assert!(request(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn silent_clients_do_not_block_others() {
        let metrics = Metrics::open(Some("0".parse().unwrap())).unwrap();
        let address = metrics.server.as_ref().unwrap().lock().unwrap().address();
        metrics.start().unwrap();
        let idle: Vec<TcpStream> = (0..8 * server::CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let answer = request(address, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // The oldest client was disconnected.
        assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0);
    }
}
