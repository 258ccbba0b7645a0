//! HTTP for metrics: one thread, few connections, nothing but `GET /metrics`.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use super::Board;
use crate::failure::{Failure, Outcome};

/// Most connections at a time; others wait for one of them to end.
pub(super) const CONNECTIONS: usize = 8;
/// A connection ends after this time, whatever its client does.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server of metrics: it holds a port, and answers once it is started.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    work: Option<(Runtime, TcpListener, Board)>,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    /// 2 when another program has it, or the address is none of this machine's.
    pub(super) fn open(address: SocketAddr, board: Board) -> Outcome<Self> {
        let refused = |error| {
            Failure::refused(format!(
                "--metrics {address}: {error}; allowed: a free port of an address of this machine"
            ))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(Failure::failed)?;
        let address = listener.local_addr().map_err(Failure::failed)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        Ok(Self { address, work: Some((runtime, listener, board)) })
    }

    /// Where it listens.
    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to answer, until the process ends.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(&mut self) -> Outcome {
        let Some((runtime, listener, board)) = self.work.take() else { return Ok(()) };
        let serve = move || runtime.block_on(serve(listener, board));
        let thread = std::thread::Builder::new().name("spray-metrics".into()).spawn(serve);
        thread.map(drop).map_err(|error| Failure::failed(format!("cannot serve metrics at {}: {error}", self.address)))
    }
}

async fn serve(listener: TcpListener, board: Board) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or a client that has left: there is more to come.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let board = board.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, talk(stream, board)).await;
            drop(place);
        });
    }
}

/// Answers one client. One that breaks off is its own business.
async fn talk(stream: TcpStream, board: Board) {
    let answer = |request: Request<Incoming>| {
        let answer = answer(&request, &board);
        async move { Ok::<_, Infallible>(answer) }
    };
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

fn answer(request: &Request<Incoming>, board: &Board) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match board.text() {
            Ok(text) => (StatusCode::OK, METRICS, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
        },
        (&Method::GET, _) => (StatusCode::NOT_FOUND, TEXT, "metrics are at /metrics\n".into()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET /metrics\n".into()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    answer
}
