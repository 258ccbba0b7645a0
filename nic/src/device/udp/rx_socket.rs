//! Received datagrams: the kernel returns several at once, and may coalesce those of one flow
//! (GRO).

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSocketState};

use super::options;

/// The longest coalesced piece.
const PIECE_BYTES: usize = 1 << 16;

/// The receiving socket, and the pieces that it returned last.
pub(super) struct RxSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
    /// The number of pieces received.
    received: usize,
    /// The next piece, and the next offset in it.
    piece: usize,
    offset: usize,
}

pub(super) struct Segment<'a> {
    pub(super) payload: &'a [u8],
    pub(super) from: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
}

impl RxSocket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            socket,
            buffers: vec![0; BATCH_SIZE * PIECE_BYTES].into(),
            metas: [RecvMeta::default(); BATCH_SIZE],
            received: 0,
            piece: 0,
            offset: 0,
        })
    }

    #[cfg(test)]
    pub(super) fn address(&self) -> std::net::IpAddr {
        self.socket.local_addr().unwrap().ip()
    }

    /// Returns a file descriptor that is readable when there are datagrams.
    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns whether there is a datagram to take; reads the socket when all are taken.
    pub(super) fn fill(&mut self) -> bool {
        loop {
            if self.piece < self.received {
                if self.offset < self.metas[self.piece].len {
                    return true;
                }
                (self.piece, self.offset) = (self.piece + 1, 0);
                continue;
            }
            // Errors of datagrams that were not delivered are ignored: the transport detects
            // losses.
            match self.read_batch() {
                Ok(received) if received > 0 => (self.received, self.piece, self.offset) = (received, 0, 0),
                _ => return false,
            }
        }
    }

    /// Returns the next datagram, after [`fill`](Self::fill) returned true.
    pub(super) fn take(&mut self) -> Option<Segment<'_>> {
        let Self { buffers, metas, piece, offset, .. } = self;
        let meta = metas.get(*piece)?;
        let rest = buffers.get(*piece * PIECE_BYTES..)?.get(*offset..meta.len.min(PIECE_BYTES))?;
        let bytes = if meta.stride == 0 { rest.len() } else { meta.stride.min(rest.len()) };
        *offset += bytes.max(1);
        Some(Segment { payload: &rest[..bytes], from: meta.addr, ecn: meta.ecn })
    }

    /// Returns the number of datagrams lost to a full socket buffer.
    pub(super) fn dropped(&self) -> u64 {
        options::dropped(&self.socket).into()
    }

    fn read_batch(&mut self) -> io::Result<usize> {
        let mut buffers = self.buffers.chunks_exact_mut(PIECE_BYTES);
        let mut pieces: [_; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        self.state.recv((&self.socket).into(), &mut pieces, &mut self.metas)
    }
}

impl std::fmt::Debug for RxSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arrivals").field("socket", &self.socket).finish_non_exhaustive()
    }
}
