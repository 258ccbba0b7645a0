//! QUIC with two libraries, each end on a separate thread and runtime.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use s2n_quic::provider::io::tokio::Provider;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::kernel::{Arrivals, CHUNK};
use crate::net::run_both;
use crate::{Outcome, REQUEST_BYTES, Terms};

#[derive(Clone, Copy, Debug)]
pub enum Library {
    Quinn,
    S2n,
}

const OVERHEAD_BYTES: u16 = 60;
/// Headers of IPv4 and UDP, which s2n-quic includes in the MTU.
const HEADER_BYTES: u16 = 28;
const SERVER: &str = "peers";
/// Flow control window, large enough not to limit.
const WINDOW_BYTES: u32 = 16 << 20;
/// Interval at which the receiving end checks whether the sending one has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
type Opened = (Box<dyn Duplex>, Box<dyn std::any::Any>);
type Certificate = rcgen::CertifiedKey<rcgen::KeyPair>;

pub fn run(library: Library, [near, far]: [UdpSocket; 2], terms: Terms) -> io::Result<Outcome> {
    let certificate = rcgen::generate_simple_self_signed(vec![SERVER.to_string()]).map_err(io::Error::other)?;
    for socket in [&near, &far] {
        socket.set_nonblocking(true)?;
    }
    let to = far.local_addr()?;
    let bytes = terms.payload_bytes as u16 + OVERHEAD_BYTES;
    let (round_trips, arrivals) = run_both(
        |_| {
            block_on(async {
                let (mut stream, _guard) = match library {
                    Library::Quinn => quinn_open(&certificate, near, to, bytes).await,
                    Library::S2n => s2n_open(&certificate, near, to, bytes).await,
                }?;
                stream.write_all(&[u8::from(terms.latency)]).await?;
                let until = Instant::now() + terms.duration;
                if terms.latency { ask(&mut stream, until).await } else { fill(&mut stream, until).await }
            })
        },
        |stop| {
            block_on(async {
                let accept = async {
                    match library {
                        Library::Quinn => quinn_accept(&certificate, far, bytes).await,
                        Library::S2n => s2n_accept(&certificate, far, bytes).await,
                    }
                };
                let mut arrivals = Arrivals::default();
                tokio::select! {
                    ended = serve(accept, &mut arrivals) => ended?,
                    () = stopped(stop) => {}
                }
                Ok(arrivals)
            })
        },
    )?;
    Ok(Outcome { round_trips, ..arrivals.outcome() })
}

fn block_on<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn fill(stream: &mut Box<dyn Duplex>, until: Instant) -> io::Result<Vec<Duration>> {
    let chunk = vec![0x5a; CHUNK];
    while Instant::now() < until {
        stream.write_all(&chunk).await?;
    }
    Ok(Vec::new())
}

async fn ask(stream: &mut Box<dyn Duplex>, until: Instant) -> io::Result<Vec<Duration>> {
    let (mut message, mut took) = ([0x5a; REQUEST_BYTES], Vec::new());
    while Instant::now() < until {
        let sent_at = Instant::now();
        stream.write_all(&message).await?;
        stream.flush().await?;
        stream.read_exact(&mut message).await?;
        took.push(sent_at.elapsed());
    }
    Ok(took)
}

/// Serves the kind of measurement in the stream's first byte, until the sending end has gone.
async fn serve(accept: impl Future<Output = io::Result<Opened>>, arrivals: &mut Arrivals) -> io::Result<()> {
    let (mut stream, _guard) = accept.await?;
    if stream.read_u8().await? == 0 {
        let mut chunk = vec![0; CHUNK];
        // A stream ends with an error when the sending end leaves.
        while let Ok(bytes @ 1..) = stream.read(&mut chunk).await {
            arrivals.add(bytes as u64);
        }
        return Ok(());
    }
    let mut message = [0; REQUEST_BYTES];
    while stream.read_exact(&mut message).await.is_ok() {
        stream.write_all(&message).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn quinn_open(
    certificate: &Certificate,
    socket: UdpSocket,
    to: std::net::SocketAddr,
    bytes: u16,
) -> io::Result<Opened> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.cert.der().clone()).map_err(io::Error::other)?;
    let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).map_err(io::Error::other)?;
    config.transport_config(quinn_transport(bytes));
    let mut endpoint = quinn_endpoint(socket, bytes, None)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(to, SERVER).map_err(io::Error::other)?.await.map_err(io::Error::other)?;
    let (send, receive) = connection.open_bi().await.map_err(io::Error::other)?;
    Ok((Box::new(tokio::io::join(receive, send)), Box::new((connection, endpoint))))
}

async fn quinn_accept(certificate: &Certificate, socket: UdpSocket, bytes: u16) -> io::Result<Opened> {
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).map_err(io::Error::other)?;
    let mut config =
        quinn::ServerConfig::with_single_cert(vec![certificate.cert.der().clone()], key).map_err(io::Error::other)?;
    config.transport_config(quinn_transport(bytes));
    let endpoint = quinn_endpoint(socket, bytes, Some(config))?;
    let incoming = endpoint.accept().await.ok_or_else(|| io::Error::other("the endpoint is closed"))?;
    let connection = incoming.await.map_err(io::Error::other)?;
    let (send, receive) = connection.accept_bi().await.map_err(io::Error::other)?;
    Ok((Box::new(tokio::io::join(receive, send)), Box::new((connection, endpoint))))
}

fn quinn_endpoint(socket: UdpSocket, bytes: u16, server: Option<quinn::ServerConfig>) -> io::Result<quinn::Endpoint> {
    let mut config = quinn::EndpointConfig::default();
    config.max_udp_payload_size(bytes).map_err(io::Error::other)?;
    quinn::Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))
}

fn quinn_transport(bytes: u16) -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    config.initial_mtu(bytes).min_mtu(bytes).mtu_discovery_config(None);
    config.stream_receive_window(WINDOW_BYTES.into()).receive_window(WINDOW_BYTES.into());
    config.send_window(WINDOW_BYTES.into());
    Arc::new(config)
}

async fn s2n_open(
    certificate: &Certificate,
    socket: UdpSocket,
    to: std::net::SocketAddr,
    bytes: u16,
) -> io::Result<Opened> {
    let tls = rustls::Client::builder().with_certificate(certificate.cert.pem().as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(io::Error::other)?;
    let builder = s2n_quic::Client::builder().with_io(s2n_provider(socket, bytes)?).map_err(io::Error::other)?;
    let builder = builder.with_limits(s2n_limits()?).map_err(io::Error::other)?;
    let client = builder.with_tls(tls).map_err(io::Error::other)?.start().map_err(io::Error::other)?;
    let connect = s2n_quic::client::Connect::new(to).with_server_name(SERVER);
    let mut connection = client.connect(connect).await.map_err(io::Error::other)?;
    let stream = connection.open_bidirectional_stream().await.map_err(io::Error::other)?;
    Ok((Box::new(stream), Box::new((connection, client))))
}

async fn s2n_accept(certificate: &Certificate, socket: UdpSocket, bytes: u16) -> io::Result<Opened> {
    let (chain, key) = (certificate.cert.pem(), certificate.signing_key.serialize_pem());
    let tls = rustls::Server::builder().with_certificate(chain.as_str(), key.as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(io::Error::other)?;
    let builder = s2n_quic::Server::builder().with_io(s2n_provider(socket, bytes)?).map_err(io::Error::other)?;
    let builder = builder.with_limits(s2n_limits()?).map_err(io::Error::other)?;
    let mut server = builder.with_tls(tls).map_err(io::Error::other)?.start().map_err(io::Error::other)?;
    let mut connection = server.accept().await.ok_or_else(|| io::Error::other("the endpoint is closed"))?;
    let stream = connection.accept_bidirectional_stream().await.map_err(io::Error::other)?;
    let stream = stream.ok_or_else(|| io::Error::other("the connection is closed"))?;
    Ok((Box::new(stream), Box::new((connection, server))))
}

fn s2n_provider(socket: UdpSocket, bytes: u16) -> io::Result<Provider> {
    let builder = Provider::builder().with_rx_socket(socket.try_clone()?)?.with_tx_socket(socket)?;
    builder.with_max_mtu(bytes + HEADER_BYTES)?.with_initial_mtu(bytes + HEADER_BYTES)?.build()
}

fn s2n_limits() -> io::Result<Limits> {
    let window = u64::from(WINDOW_BYTES);
    Limits::new()
        .with_data_window(window)
        .and_then(|limits| limits.with_bidirectional_local_data_window(window))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(window))
        .and_then(|limits| limits.with_max_send_buffer_size(WINDOW_BYTES))
        .map_err(io::Error::other)
}
