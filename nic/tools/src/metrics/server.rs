//! The HTTP server for `/metrics`, on one thread.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use super::board::Board;
use crate::failure::{Failure, Outcome};

/// Beyond this limit the oldest is closed, which is the slowest, since requests are short.
pub(super) const CONNECTIONS: usize = 16;
const MOST_BYTES: usize = 8192;
const MOST_FIELDS: usize = 64;
/// Timeout of a connection. In tests it must not be the reason that a connection ends.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

/// Holds its port until it is started.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    work: Option<(Runtime, TcpListener, Board)>,
}

impl Server {
    /// Binds the port. Fails with 2 if it is in use, or the address is not of this machine.
    pub(super) fn open(address: SocketAddr, board: Board) -> Outcome<Self> {
        let refused = |error: std::io::Error| {
            let is_down = matches!(error.kind(), ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable);
            let mend = match address.ip().is_loopback() && is_down {
                true => {
                    "is the loopback interface down? `ip link set lo up`, or give the ADDRESS:PORT of another interface"
                }
                false => "allowed: a free port of an address of this machine",
            };
            Failure::refused(format!("--metrics {address}: {error}; {mend}"))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        // Binding succeeds while the loopback interface is down, but no client can connect.
        let reached = std::net::TcpStream::connect_timeout(&listener.local_addr().map_err(refused)?, PATIENCE);
        if let (true, Err(error)) = (address.ip().is_loopback(), reached)
            && error.kind() == ErrorKind::NetworkUnreachable
        {
            return Err(refused(error));
        }
        listener.set_nonblocking(true).map_err(Failure::failed)?;
        let address = listener.local_addr().map_err(Failure::failed)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        Ok(Self { address, work: Some((runtime, listener, board)) })
    }

    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn start(&mut self) -> Outcome {
        let Some((runtime, listener, board)) = self.work.take() else { return Ok(()) };
        let serve = move || runtime.block_on(serve(listener, board));
        let thread = std::thread::Builder::new().name("spray-metrics".into()).spawn(serve);
        thread.map(drop).map_err(|error| Failure::failed(format!("cannot serve metrics at {}: {error}", self.address)))
    }
}

async fn serve(listener: TcpListener, board: Board) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut clients: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or the client has left: try again.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if clients.len() == CONNECTIONS
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let talk = tokio::time::timeout(PATIENCE, talk(stream, board.clone()));
        clients.push_back(tokio::spawn(talk).abort_handle());
    }
}

async fn talk(mut stream: TcpStream, board: Board) -> io::Result<()> {
    let mut head = Vec::new();
    let answer = loop {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let mut answer = answer(&request, &board);
                if request.method == Some("HEAD") {
                    answer.truncate(answer.find("\r\n\r\n").map_or(0, |end| end + 4));
                }
                break answer;
            }
            Ok(httparse::Status::Partial) if head.len() < MOST_BYTES => {}
            _ => break said("400 Bad Request", "this is no request for metrics\n"),
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(answer.as_bytes()).await
}

fn answer(request: &httparse::Request<'_, '_>, board: &Board) -> String {
    let path = request.path.unwrap_or_default().split('?').next();
    match (request.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => match board.text() {
            Ok(text) => response("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", &text),
            Err(error) => said("500 Internal Server Error", &error.to_string()),
        },
        (Some("GET" | "HEAD"), _) => said("404 Not Found", "metrics are at /metrics\n"),
        _ => said("405 Method Not Allowed\r\nAllow: GET, HEAD", "GET /metrics\n"),
    }
}

fn said(status: &str, text: &str) -> String {
    response(status, "text/plain; charset=utf-8", text)
}

fn response(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}
