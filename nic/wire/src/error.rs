//! Errors of parsing and emitting frames.

use core::fmt;

/// Why a spray frame is dropped or cannot be emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// Emitting: the buffer is too small for the frame.
    BufferTooSmall,
    /// Emitting: source and destination are of different IP versions.
    Family,
    /// The header's checksum does not match: corrupt, or sent to another address or port.
    HeaderChecksum,
    /// The IPv4 header checksum does not match.
    IpChecksum,
    /// The kind is unknown.
    Kind,
    /// Lengths contradict each other: IP and UDP, or payload and header.
    Length,
    /// The payload's checksum does not match.
    PayloadChecksum,
    /// The frame is sealed, and the reader has no key.
    Sealed,
    /// The frame is sealed, and its tag does not match.
    Tag,
    /// The frame ends before its header or before the end that its lengths state.
    Truncated,
    /// The UDP checksum does not match, or is missing over IPv6.
    UdpChecksum,
    /// A field has an invalid value.
    Value,
    /// The version is not supported.
    Version,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BufferTooSmall => "buffer too small for the frame",
            Self::Family => "source and destination of different ip versions",
            Self::HeaderChecksum => "header checksum mismatch",
            Self::IpChecksum => "ip header checksum mismatch",
            Self::Kind => "unknown frame kind",
            Self::Length => "inconsistent lengths",
            Self::PayloadChecksum => "payload checksum mismatch",
            Self::Sealed => "sealed frame",
            Self::Tag => "the seal does not match",
            Self::Truncated => "truncated frame",
            Self::UdpChecksum => "udp checksum mismatch",
            Self::Value => "field value without meaning",
            Self::Version => "unknown version",
        })
    }
}

impl core::error::Error for Error {}
