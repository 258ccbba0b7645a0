//! Messages on their way out, read from where the user put them, and in, written to where the user will find them.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

/// A message that is not delivered yet.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) data: Bytes,
    pub(crate) started_ps: u64,
}

/// The undelivered messages of one connection, by number.
///
/// Numbers are given in sequence, so that a deque offset by the oldest undelivered one finds them without hashing.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    first: u32,
    messages: VecDeque<Option<Outgoing>>,
    undelivered: usize,
}

impl Outbox {
    /// Takes a message and returns its number.
    pub(crate) fn push(&mut self, data: Bytes, started_ps: u64) -> u32 {
        let message = self.first.wrapping_add(self.messages.len() as u32);
        self.messages.push_back(Some(Outgoing { data, started_ps }));
        self.undelivered += 1;
        message
    }

    pub(crate) fn get(&self, message: u32) -> Option<&Outgoing> {
        self.messages.get(message.wrapping_sub(self.first) as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, message: u32) -> Option<&mut Outgoing> {
        self.messages.get_mut(message.wrapping_sub(self.first) as usize)?.as_mut()
    }

    /// Takes out a delivered message.
    pub(crate) fn remove(&mut self, message: u32) -> Option<Outgoing> {
        let removed = self.messages.get_mut(message.wrapping_sub(self.first) as usize)?.take()?;
        self.undelivered -= 1;
        while let Some(None) = self.messages.front() {
            self.messages.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(removed)
    }

    pub(crate) fn len(&self) -> usize {
        self.undelivered
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.undelivered == 0
    }
}

/// A message that is being received.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) data: Vec<u8>,
    pub(crate) started_ps: u64,
}

/// The unfinished messages of one connection; how many there can be, and of what length, the receiver's limits decide.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    messages: HashMap<u32, Incoming>,
    /// The message that the last packet belonged to, out of the map: most packets belong to it too.
    current: Option<(u32, Incoming)>,
}

impl Inbox {
    /// Puts a packet's payload in its place, making room for the message when this is its first packet.
    ///
    /// `false` when it does not fit the message as first announced; the receiver has checked everything else.
    pub(crate) fn place(&mut self, message: u32, bytes: u64, offset: u64, payload: &[u8], timestamp_ps: u64) -> bool {
        let incoming = self.find(message, bytes);
        let Ok(offset) = usize::try_from(offset) else { return false };
        let Some(end) = offset.checked_add(payload.len()) else { return false };
        let Some(place) = incoming.data.get_mut(offset..end) else { return false };
        place.copy_from_slice(payload);
        incoming.started_ps = incoming.started_ps.min(timestamp_ps);
        true
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

    fn find(&mut self, message: u32, bytes: u64) -> &mut Incoming {
        if self.current.as_ref().is_none_or(|(current, _)| *current != message) {
            let found = self.messages.remove(&message);
            let fresh = || Incoming { data: vec![0; bytes as usize], started_ps: u64::MAX };
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

    #[test]
    fn outbox_numbers_in_sequence_and_removes_in_any_order() {
        let mut outbox = Outbox::default();
        let numbers: Vec<u32> = (0..4u8).map(|n| outbox.push(Bytes::copy_from_slice(&[n]), u64::from(n))).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(outbox.remove(1).unwrap().data[..], [1]);
        assert!(outbox.remove(1).is_none());
        assert_eq!(outbox.remove(0).unwrap().started_ps, 0);
        assert!(outbox.get(0).is_none() && outbox.get(4).is_none());
        assert_eq!(outbox.get(3).unwrap().data[..], [3]);
        assert_eq!(outbox.push(Bytes::new(), 9), 4);
        assert_eq!(outbox.len(), 3);
    }

    #[test]
    fn inbox_places_interleaved_messages() {
        let mut inbox = Inbox::default();
        assert!(inbox.place(7, 6, 3, b"def", 20));
        assert!(inbox.place(8, 2, 0, b"xy", 30));
        assert!(inbox.place(7, 6, 0, b"abc", 10));
        assert!(!inbox.place(7, 6, 4, b"beyond", 10));
        assert!(!inbox.place(7, 6, u64::MAX, b"beyond", 10));
        let seven = inbox.finish(7).unwrap();
        assert_eq!((&seven.data[..], seven.started_ps), (&b"abcdef"[..], 10));
        assert_eq!(inbox.finish(8).unwrap().data, b"xy");
        assert!(inbox.is_empty() && inbox.finish(8).is_none());
    }
}
