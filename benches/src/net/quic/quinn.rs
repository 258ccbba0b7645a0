//! `quinn`.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use tokio::sync::mpsc::UnboundedSender;

use super::terms::{Guard, SERVER, Stream, Terms, WINDOW_BYTES};

pub(super) async fn open(
    terms: &Terms,
    socket: UdpSocket,
    to: SocketAddr,
    streams: usize,
) -> io::Result<(Vec<Stream>, Guard)> {
    let mut roots = RootCertStore::empty();
    roots.add(terms.certificate.cert.der().clone()).map_err(io::Error::other)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).map_err(io::Error::other)?;
    config.transport_config(transport(terms));
    let mut endpoint = endpoint(terms, socket, None)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(to, SERVER).map_err(io::Error::other)?.await.map_err(io::Error::other)?;
    let mut opened = Vec::with_capacity(streams);
    for _ in 0..streams {
        let (send, receive) = connection.open_bi().await.map_err(io::Error::other)?;
        opened.push(Box::new(tokio::io::join(receive, send)) as Stream);
    }
    Ok((opened, Box::new((connection, endpoint))))
}

pub(super) async fn accept(terms: &Terms, socket: UdpSocket, streams: UnboundedSender<Stream>) -> io::Result<()> {
    let key = PrivateKeyDer::try_from(terms.certificate.signing_key.serialize_der()).map_err(io::Error::other)?;
    let certificate = terms.certificate.cert.der().clone();
    let mut config = ServerConfig::with_single_cert(vec![certificate], key).map_err(io::Error::other)?;
    config.transport_config(transport(terms));
    let endpoint = endpoint(terms, socket, Some(config))?;
    let Some(incoming) = endpoint.accept().await else { return Ok(()) };
    let connection = incoming.await.map_err(io::Error::other)?;
    while let Ok((send, receive)) = connection.accept_bi().await {
        let _ = streams.send(Box::new(tokio::io::join(receive, send)));
    }
    Ok(())
}

fn endpoint(terms: &Terms, socket: UdpSocket, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(terms.packet_bytes).map_err(io::Error::other)?;
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime))
}

fn transport(terms: &Terms) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.initial_mtu(terms.packet_bytes).min_mtu(terms.packet_bytes).mtu_discovery_config(None);
    config.stream_receive_window(WINDOW_BYTES.into()).receive_window(WINDOW_BYTES.into());
    config.send_window(WINDOW_BYTES.into());
    Arc::new(config)
}
