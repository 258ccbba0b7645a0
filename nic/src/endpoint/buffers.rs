//! The bytes of messages: those sent are read from the user's buffers, those received are written to buffers that the
//! user gets.

use spray_core::Time;
use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;

use super::{
    Source,
    pages::{Buffer, Pool},
};

/// Where the bytes of a message come from.
#[derive(Debug)]
pub(crate) enum Content {
    Bytes(Bytes),
    Source(Box<dyn Source>),
}

impl Content {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(data) => data.len() as u64,
            Self::Source(source) => source.bytes(),
        }
    }

    /// Writes the bytes from `offset` on into a frame.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "the sender cuts packets out of the message, so that they lie within it"
    )]
    pub(crate) fn fill(&self, offset: u64, to: &mut [u8]) {
        match self {
            Self::Bytes(data) => to.copy_from_slice(&data[offset as usize..offset as usize + to.len()]),
            Self::Source(source) => source.fill(offset, to),
        }
    }
}

/// A message that is not delivered yet.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) content: Content,
    pub(crate) started_at: Time,
}

/// The undelivered messages of one connection, by number.
///
/// Numbers are given in sequence: a deque that begins at an undelivered one finds them without hashing. Older ones are elsewhere: those that
/// wait for a time far ahead, while many others are delivered.
#[derive(Debug, Default)]
pub(crate) struct SendBuffers {
    first: u32,
    messages: VecDeque<Option<Outgoing>>,
    older: BTreeMap<u32, Outgoing>,
    undelivered: usize,
}

/// So many places of the deque may be of delivered messages, beside as many as are not delivered.
const FEW_DELIVERED: usize = 64;

impl SendBuffers {
    /// Takes a message and returns its number.
    pub(crate) fn push(&mut self, content: Content, started_at: Time) -> u32 {
        self.shorten();
        let message = self.first.wrapping_add(self.messages.len() as u32);
        self.messages.push_back(Some(Outgoing { content, started_at }));
        self.undelivered += 1;
        message
    }

    pub(crate) fn get(&self, message: u32) -> Option<&Outgoing> {
        match self.messages.get(message.wrapping_sub(self.first) as usize) {
            Some(place) => place.as_ref(),
            None => self.older.get(&message),
        }
    }

    pub(crate) fn get_mut(&mut self, message: u32) -> Option<&mut Outgoing> {
        match self.messages.get_mut(message.wrapping_sub(self.first) as usize) {
            Some(place) => place.as_mut(),
            None => self.older.get_mut(&message),
        }
    }

    /// Takes out a delivered message.
    pub(crate) fn remove(&mut self, message: u32) -> Option<Outgoing> {
        let removed = match self.messages.get_mut(message.wrapping_sub(self.first) as usize) {
            Some(place) => place.take(),
            None => self.older.remove(&message),
        }?;
        self.undelivered -= 1;
        self.pass_delivered();
        Some(removed)
    }

    pub(crate) fn len(&self) -> usize {
        self.undelivered
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.undelivered == 0
    }

    /// Has the deque begin at its oldest undelivered message.
    fn pass_delivered(&mut self) {
        while let Some(None) = self.messages.front() {
            self.messages.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Puts the oldest ones aside where most places are of delivered messages behind them.
    fn shorten(&mut self) {
        while self.messages.len() > 2 * self.undelivered + FEW_DELIVERED
            && let Some(Some(oldest)) = self.messages.pop_front()
        {
            self.older.insert(self.first, oldest);
            self.first = self.first.wrapping_add(1);
            self.pass_delivered();
        }
    }
}

/// A piece of a message, and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) message: u32,
    pub(crate) message_bytes: u64,
    pub(crate) offset: u64,
    pub(crate) timestamp: Time,
    pub(crate) payload: &'a [u8],
}

/// A message that is being received.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// As first announced.
    bytes: u64,
    /// Empty where the payload is lent.
    pub(crate) data: Buffer,
    pub(crate) started_at: Time,
}

/// The unfinished messages of one connection. The receiver's limits bound their number and length.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffers {
    messages: HashMap<u32, Incoming>,
    /// The message of the last packet, kept out of the map: most packets belong to the same one.
    current: Option<(u32, Incoming)>,
}

impl ReceiveBuffers {
    /// Puts a packet's payload in its place. The first packet of a message makes room for it.
    ///
    /// Returns `false` if it does not fit the message as first announced. The receiver has checked everything else.
    pub(crate) fn place(&mut self, piece: &Piece<'_>, pool: &Pool) -> bool {
        let take = |bytes| pool.take(bytes as usize);
        let incoming = self.find(piece.message, piece.message_bytes, take);
        let Ok(offset) = usize::try_from(piece.offset) else { return false };
        let Some(end) = offset.checked_add(piece.payload.len()) else { return false };
        let Some(place) = incoming.data.as_mut().get_mut(offset..end) else { return false };
        place.copy_from_slice(piece.payload);
        incoming.started_at = incoming.started_at.min(piece.timestamp);
        true
    }

    /// Notes a packet whose payload is lent to the user. Returns `false` if it does not fit the message as first announced.
    pub(crate) fn lend(&mut self, piece: &Piece<'_>) -> bool {
        let incoming = self.find(piece.message, piece.message_bytes, |_| Buffer::NONE);
        let end = piece.offset.checked_add(piece.payload.len() as u64);
        incoming.started_at = incoming.started_at.min(piece.timestamp);
        end.is_some_and(|end| end <= incoming.bytes)
    }

    /// Takes out a finished message.
    pub(crate) fn finish(&mut self, message: u32) -> Option<Incoming> {
        match self.current.take() {
            Some((current, incoming)) if current == message => Some(incoming),
            other => {
                self.current = other;
                self.messages.remove(&message)
            }
        }
    }

    /// The message of that number. `take` makes room for a new one.
    fn find(&mut self, message: u32, bytes: u64, take: impl FnOnce(u64) -> Buffer) -> &mut Incoming {
        if self.current.as_ref().is_none_or(|(current, _)| *current != message) {
            let found = self.messages.remove(&message);
            let fresh = || Incoming { bytes, data: take(bytes), started_at: Time::NEVER };
            if let Some((current, incoming)) = self.current.replace((message, found.unwrap_or_else(fresh))) {
                self.messages.insert(current, incoming);
            }
        }
        &mut self.current.as_mut().expect("set above").1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SendBuffers {
        /// Begins as if so many messages had been delivered.
        pub(crate) fn start_at(&mut self, first: u32) {
            self.first = first;
        }

        /// Places for messages.
        pub(crate) fn kept(&self) -> usize {
            self.messages.capacity() + self.older.len()
        }
    }

    fn first_byte(outgoing: &Outgoing) -> u8 {
        let mut byte = [0];
        outgoing.content.fill(0, &mut byte);
        byte[0]
    }

    #[test]
    fn send_buffers_numbers_in_sequence_and_removes_in_any_order() {
        let mut send_buffers = SendBuffers::default();
        let numbers: Vec<u32> = (0..4u8)
            .map(|n| send_buffers.push(Content::Bytes(Bytes::copy_from_slice(&[n])), Time::from_ns(n.into())))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(first_byte(&send_buffers.remove(1).unwrap()), 1);
        assert!(send_buffers.remove(1).is_none());
        assert_eq!(send_buffers.remove(0).unwrap().started_at, Time::ZERO);
        assert!(send_buffers.get(0).is_none() && send_buffers.get(4).is_none());
        assert_eq!(first_byte(send_buffers.get(3).unwrap()), 3);
        assert_eq!(send_buffers.push(Content::Bytes(Bytes::new()), Time::from_ns(9)), 4);
        assert_eq!(send_buffers.len(), 3);
    }

    #[test]
    fn message_numbers_begin_anew() {
        let mut send_buffers = SendBuffers::default();
        send_buffers.start_at(u32::MAX - 1);
        let numbers: Vec<u32> =
            (0..4).map(|_| send_buffers.push(Content::Bytes(Bytes::from_static(b"x")), Time::ZERO)).collect();
        assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 0, 1]);
        assert!(send_buffers.remove(0).is_some() && send_buffers.remove(0).is_none());
        assert!(send_buffers.get(u32::MAX).is_some() && send_buffers.get(2).is_none());
        assert!(send_buffers.remove(u32::MAX - 1).is_some() && send_buffers.remove(u32::MAX).is_some());
        assert_eq!((send_buffers.first, send_buffers.len(), send_buffers.messages.len()), (1, 1, 1));
    }

    #[test]
    fn receive_buffers_places_interleaved_messages() {
        let (mut receive_buffers, pool) = (ReceiveBuffers::default(), Pool::default());
        let mut place = |message, message_bytes, offset, payload, ns| {
            let timestamp = Time::from_ns(ns);
            receive_buffers.place(&Piece { message, message_bytes, offset, timestamp, payload }, &pool)
        };
        assert!(place(7, 6, 3, &b"def"[..], 20));
        assert!(place(8, 2, 0, b"xy", 30));
        assert!(place(7, 6, 0, b"abc", 10));
        assert!(!place(7, 6, 4, b"beyond", 10));
        assert!(!place(7, 6, u64::MAX, b"beyond", 10));
        let seven = receive_buffers.finish(7).unwrap();
        assert_eq!((seven.started_at, Bytes::from(seven.data)), (Time::from_ns(10), Bytes::from_static(b"abcdef")));
        assert_eq!(Bytes::from(receive_buffers.finish(8).unwrap().data), &b"xy"[..]);
        assert!(receive_buffers.is_empty() && receive_buffers.finish(8).is_none());
    }

    #[test]
    fn lent_pieces_may_lie_beyond_4_gib() {
        let mut receive_buffers = ReceiveBuffers::default();
        let mut lend = |offset| {
            receive_buffers.lend(&Piece {
                message: 7,
                message_bytes: 5 << 30,
                offset,
                timestamp: Time::ZERO,
                payload: &[0; 8],
            })
        };
        assert!(lend(0) && lend(u64::from(u32::MAX) - 4) && lend(1 << 32) && lend((5 << 30) - 8));
        assert!(!lend((5 << 30) - 7) && !lend(u64::MAX));
    }
}
