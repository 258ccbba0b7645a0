//! What a frame says, whichever its kind.

use crate::header::Kind;
use crate::switch_view::udp_payload_offset;
use crate::{Accept, Ack, Close, Connect, Data, Error, Nack, Probe, ProbeAck, Pull, PullRequest, Reset};

/// The part of our header that depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A piece of a message.
    Data(Data),
    /// What the receiver got.
    Ack(Ack),
    /// A trimmed frame arrived.
    Nack(Nack),
    /// A client asks for a connection.
    Connect(Connect),
    /// The server's answer.
    Accept(Accept),
    /// No more data, or the acknowledgement of that.
    Close(Close),
    /// No such connection.
    Reset(Reset),
    /// Asks whether a path is alive.
    Probe(Probe),
    /// Says so.
    ProbeAck(ProbeAck),
    /// Credit from a receiver.
    Pull(Pull),
    /// A sender asks for credit.
    PullRequest(PullRequest),
}

impl Body {
    /// Return the kind on the wire.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Data(_) => Kind::Data,
            Self::Ack(_) => Kind::Ack,
            Self::Nack(_) => Kind::Nack,
            Self::Connect(_) => Kind::Connect,
            Self::Accept(_) => Kind::Accept,
            Self::Close(_) => Kind::Close,
            Self::Reset(_) => Kind::Reset,
            Self::Probe(_) => Kind::Probe,
            Self::ProbeAck(_) => Kind::ProbeAck,
            Self::Pull(_) => Kind::Pull,
            Self::PullRequest(_) => Kind::PullRequest,
        }
    }

    /// Return the bytes of our header, common part and echoes included, without payload.
    #[inline]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Ack(ack) => Kind::Ack.bytes() + ack.echoes.bytes(),
            _ => self.kind().bytes(),
        }
    }

    /// Return the bytes of all headers of its frame: Ethernet, IP, UDP and ours. The payload starts there.
    #[inline]
    pub const fn header_bytes(&self, v6: bool) -> usize {
        udp_payload_offset(v6) + self.bytes()
    }

    /// Read the body out of `header`, which is ours from its first byte on.
    #[inline]
    pub(crate) fn parse(kind: Kind, header: &[u8]) -> Result<Self, Error> {
        Ok(match kind {
            Kind::Data => Self::Data(Data::parse(chunk(header)?)),
            Kind::Ack => Self::Ack(Ack::parse(header)?),
            Kind::Nack => Self::Nack(Nack::parse(chunk(header)?)),
            Kind::Connect => Self::Connect(Connect::parse(chunk(header)?)),
            Kind::Accept => Self::Accept(Accept::parse(chunk(header)?)),
            Kind::Close => Self::Close(Close::parse(chunk(header)?)?),
            Kind::Reset => Self::Reset(Reset::parse(chunk(header)?)),
            Kind::Probe => Self::Probe(Probe::parse(chunk(header)?)),
            Kind::ProbeAck => Self::ProbeAck(ProbeAck::parse(chunk(header)?)),
            Kind::Pull => Self::Pull(Pull::parse(chunk(header)?)),
            Kind::PullRequest => Self::PullRequest(PullRequest::parse(chunk(header)?)),
        })
    }

    /// Write the body into `header`, which is ours from its first byte on; the CRCs are left to the caller.
    #[inline]
    pub(crate) fn emit(&self, header: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Data(body) => body.emit(chunk_mut(header)?),
            Self::Ack(body) => body.emit(header)?,
            Self::Nack(body) => body.emit(chunk_mut(header)?),
            Self::Connect(body) => body.emit(chunk_mut(header)?),
            Self::Accept(body) => body.emit(chunk_mut(header)?),
            Self::Close(body) => body.emit(chunk_mut(header)?),
            Self::Reset(body) => body.emit(chunk_mut(header)?),
            Self::Probe(body) => body.emit(chunk_mut(header)?),
            Self::ProbeAck(body) => body.emit(chunk_mut(header)?),
            Self::Pull(body) => body.emit(chunk_mut(header)?),
            Self::PullRequest(body) => body.emit(chunk_mut(header)?),
        }
        Ok(())
    }

    pub(crate) const fn flags(&self) -> u8 {
        match self {
            Self::Data(body) => body.flags(),
            Self::Nack(body) => body.flags(),
            Self::Close(body) => body.flags(),
            _ => 0,
        }
    }
}

fn chunk<const N: usize>(header: &[u8]) -> Result<&[u8; N], Error> {
    header.first_chunk().ok_or(Error::Truncated)
}

fn chunk_mut<const N: usize>(header: &mut [u8]) -> Result<&mut [u8; N], Error> {
    header.first_chunk_mut().ok_or(Error::BufferTooSmall)
}
