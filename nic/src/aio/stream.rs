//! A connection as a byte stream in each direction.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::channel::Error;
use super::connection::{Connection, RecvHalf, SendHalf};
use crate::endpoint::{ConnectionError, Peer};

/// Longest message of a stream.
const CHUNK_BYTES: usize = 64 << 10;
//= docs/specs/endpoint.md#END-39 at most 8 MiB or 256 messages
/// Limits in flight from the oldest undelivered message on: those of a reader's reorder buffer.
const WINDOW_BYTES: usize = 8 << 20;
const WINDOW_MESSAGES: usize = 256;

/// An ordered byte stream in each direction over one connection.
///
/// Each write becomes a message, so that small writes belong into a `tokio::io::BufWriter`; no
/// flush is needed. Shutdown ends this direction only; it succeeds when the peer has all bytes,
/// even if the peer has closed by then. Dropping the stream closes the connection after delivery.
#[derive(Debug)]
pub struct Stream {
    sending: SendHalf,
    receiving: RecvHalf,
    /// Bytes and outcomes of messages in flight, oldest first.
    in_flight: VecDeque<(usize, oneshot::Receiver<Result<(), Error>>)>,
    in_flight_bytes: usize,
    shut: bool,
    /// The number of the next message in order.
    next: u32,
    early: Early,
    current: Bytes,
    ended: bool,
}

impl Connection {
    /// Converts the connection to byte streams, for `tokio::io`. Both sides must do so after the
    /// same messages: all that were sent before must have been received.
    #[must_use]
    pub fn into_stream(self) -> Stream {
        let (sending, receiving) = self.split();
        Stream::new(sending, receiving)
    }
}

impl Stream {
    fn new(sending: SendHalf, receiving: RecvHalf) -> Self {
        let next = receiving.taken();
        Self {
            sending,
            receiving,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            shut: false,
            next,
            early: Early::default(),
            current: Bytes::new(),
            ended: false,
        }
    }

    /// Returns the peer's addresses.
    pub fn peer(&self) -> Peer {
        self.sending.peer()
    }

    /// Waits until at most `messages` and `bytes` are in flight.
    fn poll_room(&mut self, cx: &mut Context<'_>, messages: usize, bytes: usize) -> Poll<io::Result<()>> {
        while let Some((_, delivered)) = self.in_flight.front_mut() {
            let outcome = match Pin::new(delivered).poll(cx) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending if self.in_flight.len() <= messages && self.in_flight_bytes <= bytes => break,
                Poll::Pending => return Poll::Pending,
            };
            let bytes = self.in_flight.pop_front().map_or(0, |(bytes, _)| bytes);
            self.in_flight_bytes -= bytes;
            match outcome.unwrap_or(Err(Error::Stopped)) {
                //= docs/specs/endpoint.md#END-39 that is no error, as long as all bytes are
                Err(Error::Closed | Error::Connection(ConnectionError::PeerClosed)) if bytes == 0 => {}
                outcome => outcome.map_err(broken)?,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn submit(&mut self, data: Bytes) {
        self.in_flight_bytes += data.len();
        self.in_flight.push_back((data.len(), self.sending.submit(data)));
    }

    /// Waits for the next bytes in order; returns `false` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while !self.ended && self.current.is_empty() {
            if let Some(data) = self.early.take(self.next) {
                self.take(data);
                continue;
            }
            match ready!(self.receiving.poll_recv(cx)).map_err(broken)? {
                Some(message) if message.number == self.next => self.take(message.data),
                Some(message) if is_before(message.number, self.next) => {
                    let what =
                        "received a message from before the stream: both sides must begin it after the same messages";
                    return Poll::Ready(Err(invalid(what)));
                }
                Some(message) => self.early.put(message.number, message.data).map_err(invalid)?,
                None if self.early.messages.is_empty() => self.ended = true,
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        Poll::Ready(Ok(!self.ended))
    }

    /// Accepts the next message. An empty one is the end.
    //= docs/specs/endpoint.md#END-39 an empty one is the end
    fn take(&mut self, data: Bytes) {
        self.next = self.next.wrapping_add(1);
        self.ended = data.is_empty();
        self.current = data;
    }
}

/// Messages received out of order.
#[derive(Debug, Default)]
struct Early {
    messages: BTreeMap<u32, Bytes>,
    bytes: usize,
}

impl Early {
    /// Stores a message. Fails if the peer exceeds a stream's limits, which bound memory.
    //= docs/specs/endpoint.md#END-39 a reader ends
    fn put(&mut self, number: u32, data: Bytes) -> Result<(), &'static str> {
        self.bytes += data.len();
        if self.messages.insert(number, data).is_some() {
            return Err("the peer sent two messages with the same number");
        }
        match self.messages.len() < WINDOW_MESSAGES && self.bytes <= WINDOW_BYTES {
            true => Ok(()),
            false => Err("the peer exceeds a stream's limits"),
        }
    }

    fn take(&mut self, number: u32) -> Option<Bytes> {
        let data = self.messages.remove(&number)?;
        self.bytes -= data.len();
        Some(data)
    }
}

/// Returns whether a message precedes another; numbers wrap around.
fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn broken(error: Error) -> io::Error {
    use ConnectionError::{IdleTimeout, MtuBlackHole, PeerUnresponsive, StaleKeys};
    let kind = match error {
        Error::Connection(IdleTimeout | PeerUnresponsive | MtuBlackHole { .. } | StaleKeys) => io::ErrorKind::TimedOut,
        Error::Connection(ConnectionError::Aborted) => io::ErrorKind::ConnectionAborted,
        Error::Connection(_) => io::ErrorKind::ConnectionReset,
        Error::Closed => io::ErrorKind::BrokenPipe,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if ready!(self.poll_next(cx))? {
            let bytes = self.current.len().min(buffer.remaining());
            buffer.put_slice(&self.current[..bytes]);
            self.current.advance(bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let chunk = &data[..data.len().min(CHUNK_BYTES)];
        ready!(self.poll_room(cx, WINDOW_MESSAGES - 1, WINDOW_BYTES - CHUNK_BYTES))?;
        // An empty message would be the end.
        if !chunk.is_empty() {
            self.submit(Bytes::copy_from_slice(chunk));
        }
        Poll::Ready(Ok(chunk.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.shut, true) {
            self.submit(Bytes::new());
        }
        self.poll_room(cx, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_numbers_wrap() {
        let mut early = Early::default();
        let numbers = || (u32::MAX - 2..=u32::MAX).chain(0..3);
        numbers().rev().for_each(|number| early.put(number, Bytes::from(vec![number as u8])).unwrap());
        for (number, next) in numbers().zip(numbers().skip(1)) {
            assert!(is_before(number, next) && !is_before(next, number) && !is_before(number, number));
            assert_eq!(early.take(number), Some(Bytes::from(vec![number as u8])));
        }
    }

    //= docs/specs/endpoint.md#END-39 a number comes twice
    #[test]
    fn a_repeated_number_is_rejected() {
        let mut early = Early::default();
        early.put(5, Bytes::from_static(b"one")).unwrap();
        assert!(early.put(5, Bytes::from_static(b"two")).is_err());
    }

    //= docs/specs/endpoint.md#END-39 a reader ends
    #[test]
    fn early_messages_are_bounded() {
        for (bytes, most) in [(0, 255), (1 << 10, 255), (1 << 20, 8), (WINDOW_BYTES, 1)] {
            let mut early = Early::default();
            let message = Bytes::from(vec![0; bytes]);
            for round in 1..4u32 {
                (1..=most).for_each(|number| early.put(round * 1000 + number, message.clone()).unwrap());
                (1..=most)
                    .for_each(|number| assert_eq!(early.take(round * 1000 + number).map(|it| it.len()), Some(bytes)));
                assert_eq!((early.bytes, early.take(1)), (0, None));
            }
            (1..=most).for_each(|number| early.put(number, message.clone()).unwrap());
            assert!(early.put(0, message.clone()).is_err(), "{bytes} bytes, {most} messages");
        }
    }
}
