//! Settings that both ends of a connection share, and its streams, for either library.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quic {
    /// `quinn`.
    Quinn,
    /// `s2n-quic`.
    S2n,
}

/// What both ends agree on.
#[derive(Clone)]
pub(super) struct Terms {
    pub library: Quic,
    /// Self-signed; the client trusts it alone.
    pub certificate: Arc<rcgen::CertifiedKey<rcgen::KeyPair>>,
    /// Bytes of the longest UDP payload.
    pub packet_bytes: u16,
}

/// The name in the certificate.
pub(super) const SERVER: &str = "spray";
/// What may be under way, on a stream and on a connection: never what limits.
pub(super) const WINDOW_BYTES: u32 = 16 << 20;

/// A stream that goes both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
/// A stream of either library.
pub(super) type Stream = Box<dyn Duplex>;
/// Keeps a connection open until it is dropped.
pub(super) type Guard = Box<dyn std::any::Any>;
