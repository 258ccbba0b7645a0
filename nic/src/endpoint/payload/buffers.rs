//! The bytes of messages: those sent are read from the user's buffers, those received are written
//! to buffers for the user.

use spray_core::Time;
use spray_core::flow::{Part, PayloadSlot};
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::endpoint::{
    Source,
    payload::pages::{Buffer, Pool},
};

/// The source of a message's bytes.
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

/// A message that is not delivered.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) content: Content,
    pub(crate) started_at: Time,
}

/// The undelivered messages of a connection, by number.
///
/// Numbers are consecutive, so that a deque that starts at an undelivered message needs no hashing.
/// Older messages are kept separately, such as those scheduled for a late time while others are
/// delivered.
#[derive(Debug, Default)]
pub(crate) struct SendBuffers {
    first: u32,
    messages: VecDeque<Option<Outgoing>>,
    older: BTreeMap<u32, Outgoing>,
    undelivered: usize,
}

/// Entries of delivered messages in the deque that are tolerated, beyond the number of undelivered
/// ones.
const FEW_DELIVERED: usize = 64;

impl SendBuffers {
    /// Adds a message. Returns its number.
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

    /// Removes a delivered message.
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

    /// Removes delivered messages from the front.
    fn pass_delivered(&mut self) {
        while let Some(None) = self.messages.front() {
            self.messages.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Moves the oldest messages out of the deque if most entries behind them are delivered.
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
struct Incoming {
    /// Empty where the payload is lent.
    data: Buffer,
    /// Bytes that have been written or lent.
    written: u64,
    started_at: Time,
}

impl Incoming {
    const NONE: Self = Self { data: Buffer::NONE, written: 0, started_at: Time::NEVER };
}

/// A complete message.
#[derive(Debug)]
pub(crate) struct CompleteMessage {
    message: u32,
    pub(crate) data: Bytes,
    pub(crate) started_at: Time,
}

/// The received messages of a connection that the user has not taken.
///
/// Reassembly assigns each incomplete message a buffer ([`PayloadSlot`]). The first packet of a
/// message starts a new buffer, and the last one removes it: no packet of another message can write
/// to it.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffers {
    open: Vec<Incoming>,
    /// Buffers in use.
    used: usize,
    /// Complete messages with bytes, in the order of completion.
    whole: VecDeque<CompleteMessage>,
}

impl ReceiveBuffers {
    /// Writes a packet's payload. Returns `false` if it is outside its message, which the receiver
    /// has checked, as well as that no byte arrives twice.
    #[inline]
    pub(crate) fn place(&mut self, piece: &Piece<'_>, place: PayloadSlot, pool: &Pool) -> bool {
        if place.part == Part::Next {
            return self.add(piece, place, |data| data.write(piece.offset, piece.payload));
        }
        self.place_edge(piece, place, pool)
    }

    /// As [`place`](Self::place), for the first or last packet of a message.
    #[inline(never)]
    fn place_edge(&mut self, piece: &Piece<'_>, place: PayloadSlot, pool: &Pool) -> bool {
        match place.part {
            Part::Whole => return self.complete(piece, Bytes::copy_from_slice(piece.payload), piece.timestamp),
            Part::First => self.begin(place.buffer, pool.take(piece.message_bytes, true)),
            Part::FirstOfMany => self.begin(place.buffer, pool.take(piece.message_bytes, false)),
            Part::Next | Part::Last => {}
        }
        let is_written = self.add(piece, place, |data| data.write(piece.offset, piece.payload));
        if place.part == Part::Last { self.end(piece, place.buffer) } else { is_written }
    }

    /// Counts a payload that is lent to the user.
    pub(crate) fn lend(&mut self, piece: &Piece<'_>, place: PayloadSlot) -> bool {
        match place.part {
            Part::Whole => return self.complete(piece, Bytes::new(), piece.timestamp),
            Part::First | Part::FirstOfMany => self.begin(place.buffer, Buffer::NONE),
            Part::Next | Part::Last => {}
        }
        self.add(piece, place, |_| true) && (place.part != Part::Last || self.end(piece, place.buffer))
    }

    /// Removes the message that was completed first, if it has this number.
    pub(crate) fn take(&mut self, message: u32) -> Option<CompleteMessage> {
        self.whole.front().filter(|whole| whole.message == message)?;
        self.whole.pop_front()
    }

    fn begin(&mut self, buffer: u32, data: Buffer) {
        let at = buffer as usize;
        if at >= self.open.len() {
            self.open.resize_with(at + 1, || Incoming::NONE);
        }
        self.used += 1;
        if let Some(incoming) = self.open.get_mut(at) {
            *incoming = Incoming { data, ..Incoming::NONE };
        }
    }

    #[inline]
    fn add(&mut self, piece: &Piece<'_>, place: PayloadSlot, write: impl FnOnce(&mut Buffer) -> bool) -> bool {
        let Some(incoming) = self.open.get_mut(place.buffer as usize) else { return false };
        let is_written = write(&mut incoming.data);
        if is_written {
            incoming.written += piece.payload.len() as u64;
            incoming.started_at = incoming.started_at.min(piece.timestamp);
        }
        is_written
    }

    /// Completes a message, unless one of its bytes was not written.
    //= docs/specs/endpoint.md#END-12 passed to the user when the message is complete
    fn end(&mut self, piece: &Piece<'_>, buffer: u32) -> bool {
        let Some(incoming) = self.open.get_mut(buffer as usize) else { return false };
        let Incoming { data, written, started_at } = std::mem::replace(incoming, Incoming::NONE);
        self.used -= 1;
        written == piece.message_bytes && self.complete(piece, data.into(), started_at)
    }

    fn complete(&mut self, piece: &Piece<'_>, data: Bytes, started_at: Time) -> bool {
        self.whole.push_back(CompleteMessage { message: piece.message, data, started_at });
        true
    }

    /// Returns the heap memory of incomplete messages in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.open.iter().map(|incoming| incoming.data.heap_bytes()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0 && self.whole.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SendBuffers {
        /// Starts as if `first` messages had been delivered.
        pub(crate) fn start_at(&mut self, first: u32) {
            self.first = first;
        }

        /// Returns the number of places for messages.
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
    fn message_numbers_wrap() {
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

    fn piece(message_bytes: u64, offset: u64, payload: &[u8], ns: u64) -> Piece<'_> {
        Piece { message: 7, message_bytes, offset, timestamp: Time::from_ns(ns), payload }
    }

    fn at(buffer: u32, part: Part) -> PayloadSlot {
        PayloadSlot { buffer, part }
    }

    #[test]
    fn receive_buffers_places_interleaved_messages() {
        let (mut buffers, pool) = (ReceiveBuffers::default(), Pool::default());
        let mut place =
            |(bytes, offset, payload, ns), place| buffers.place(&piece(bytes, offset, payload, ns), place, &pool);
        assert!(place((6, 3, &b"def"[..], 20), at(1, Part::First)));
        assert!(place((4, 0, b"wx", 40), at(0, Part::First)));
        assert!(place((2, 0, b"!!", 30), at(0, Part::Whole)));
        assert!(!place((6, 4, b"beyond", 10), at(1, Part::Next)));
        assert!(!place((6, u64::MAX, b"beyond", 10), at(1, Part::Next)));
        assert!(!place((6, 0, b"x", 10), at(2, Part::Next)));
        assert!(place((6, 0, b"abc", 10), at(1, Part::Last)));
        assert!(place((4, 2, b"yz", 50), at(0, Part::Last)));
        let taken: Vec<_> = std::iter::from_fn(|| buffers.take(7)).map(|it| (it.data, it.started_at)).collect();
        let expected = [(&b"!!"[..], 30), (b"abcdef", 10), (b"wxyz", 40)];
        assert_eq!(taken, expected.map(|(data, ns)| (Bytes::from_static(data), Time::from_ns(ns))));
        assert!(buffers.is_empty());
    }

    /// Even if the receiver state wrongly considers the message complete.
    //= docs/specs/endpoint.md#END-12 only bytes that its own packets wrote
    #[test]
    fn a_message_that_lacks_bytes_is_not_delivered() {
        let (mut buffers, pool) = (ReceiveBuffers::default(), Pool::default());
        assert!(buffers.place(&piece(200_000, 0, &[1; 1000], 0), at(0, Part::First), &pool));
        assert!(!buffers.place(&piece(200_000, 5000, &[1; 1000], 0), at(0, Part::Last), &pool));
        assert!(buffers.take(7).is_none() && buffers.is_empty());
    }

    #[test]
    fn lent_pieces_may_lie_beyond_4_gib() {
        let mut buffers = ReceiveBuffers::default();
        let (bytes, half) = (5 << 30, vec![0; 5 << 29]);
        assert!(buffers.lend(&piece(bytes, 5 << 29, &half, 0), at(0, Part::First)));
        assert!(buffers.lend(&piece(bytes, 0, &half, 0), at(0, Part::Last)));
        assert!(buffers.take(8).is_none() && buffers.take(7).is_some_and(|whole| whole.data.is_empty()));
    }
}
