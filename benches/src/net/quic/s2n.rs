//! `s2n-quic`.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use s2n_quic::client::Connect;
use s2n_quic::provider::io::tokio::Provider;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};
use tokio::sync::mpsc::UnboundedSender;

use super::terms::{Guard, SERVER, Stream, Terms, WINDOW_BYTES};

/// Headers of IPv4 and UDP, which this library counts.
const HEADER_BYTES: u16 = 28;

pub(super) async fn open(
    terms: &Terms,
    socket: UdpSocket,
    to: SocketAddr,
    streams: usize,
) -> io::Result<(Vec<Stream>, Guard)> {
    let tls = rustls::Client::builder().with_certificate(terms.certificate.cert.pem().as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(io::Error::other)?;
    let builder = Client::builder().with_io(provider(terms, socket)?).map_err(io::Error::other)?;
    let builder = builder.with_limits(limits()?).map_err(io::Error::other)?;
    let client = builder.with_tls(tls).map_err(io::Error::other)?.start().map_err(io::Error::other)?;
    let mut connection = client.connect(Connect::new(to).with_server_name(SERVER)).await.map_err(io::Error::other)?;
    let mut opened = Vec::with_capacity(streams);
    for _ in 0..streams {
        let (receive, send) = connection.open_bidirectional_stream().await.map_err(io::Error::other)?.split();
        opened.push(Box::new(tokio::io::join(receive, send)) as Stream);
    }
    Ok((opened, Box::new((connection, client))))
}

pub(super) async fn accept(terms: &Terms, socket: UdpSocket, streams: UnboundedSender<Stream>) -> io::Result<()> {
    let (certificate, key) = (terms.certificate.cert.pem(), terms.certificate.signing_key.serialize_pem());
    let tls = rustls::Server::builder().with_certificate(certificate.as_str(), key.as_str());
    let tls = tls.and_then(|tls| tls.build()).map_err(io::Error::other)?;
    let builder = Server::builder().with_io(provider(terms, socket)?).map_err(io::Error::other)?;
    let builder = builder.with_limits(limits()?).map_err(io::Error::other)?;
    let mut server = builder.with_tls(tls).map_err(io::Error::other)?.start().map_err(io::Error::other)?;
    let Some(mut connection) = server.accept().await else { return Ok(()) };
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let (receive, send) = stream.split();
        let _ = streams.send(Box::new(tokio::io::join(receive, send)));
    }
    Ok(())
}

fn provider(terms: &Terms, socket: UdpSocket) -> io::Result<Provider> {
    let packet_bytes = terms.packet_bytes + HEADER_BYTES;
    let builder = Provider::builder().with_rx_socket(socket.try_clone()?)?.with_tx_socket(socket)?;
    builder.with_max_mtu(packet_bytes)?.with_initial_mtu(packet_bytes)?.build()
}

fn limits() -> io::Result<Limits> {
    let window = u64::from(WINDOW_BYTES);
    Limits::new()
        .with_data_window(window)
        .and_then(|limits| limits.with_bidirectional_local_data_window(window))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(window))
        .and_then(|limits| limits.with_max_send_buffer_size(WINDOW_BYTES))
        .map_err(io::Error::other)
}
