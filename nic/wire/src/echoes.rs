//! Entropy values of the acknowledged packets, without that of the triggering packet (WIRE-8a).

use crate::{Error, EvPort};

/// The maximum number of echoes in an ACK; with the triggering packet's EV, sixteen.
pub const MAX_ECHOES: usize = 15;

/// EV echoes, oldest first, each with the packet's mark, which is also set if it was misrouted.
//= docs/specs/wire.md#WIRE-8a echoes
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echoes {
    /// UDP source ports; zero from `len` on.
    ports: [EvPort; MAX_ECHOES],
    /// Bit `i`: the packet of `ports[i]` was marked; zero from `len` on.
    marks: u16,
    len: u8,
}

impl Echoes {
    /// Appends a packet's port and mark, and keeps the latest `limit`.
    #[inline]
    pub fn push(&mut self, port: EvPort, marked: bool, limit: usize) {
        let limit = limit.min(MAX_ECHOES);
        if limit == 0 {
            return;
        }
        let mut len = self.len();
        if len >= limit {
            self.ports.copy_within(1..len, 0);
            self.marks >>= 1;
            len -= 1;
        }
        if let Some(place) = self.ports.get_mut(len) {
            *place = port;
        }
        self.marks |= u16::from(marked) << len;
        self.len = len as u8 + 1;
    }

    /// Removes all echoes.
    #[inline]
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of echoes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no echoes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns port and mark of each packet, oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (EvPort, bool)> + '_ {
        self.ports.iter().take(self.len()).enumerate().map(|(i, port)| (*port, self.marks >> i & 1 == 1))
    }

    /// Returns the bytes added to an Ack: 0 if empty, else 2 for the marks and 2 for each echo.
    #[inline]
    pub const fn bytes(&self) -> usize {
        bytes_of(self.len())
    }

    /// Reads `count` echoes from the bytes after the fixed part of an Ack.
    pub(crate) fn parse(count: u8, bytes: &[u8]) -> Result<Self, Error> {
        let len = usize::from(count);
        if len > MAX_ECHOES {
            return Err(Error::Value);
        }
        let mut words = bytes.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair));
        let mut echoes = Self { len: count, ..Self::default() };
        if len > 0 {
            echoes.marks = words.next().ok_or(Error::Truncated)? & ((1 << len) - 1);
        }
        for port in echoes.ports.iter_mut().take(len) {
            *port = EvPort::new(words.next().ok_or(Error::Truncated)?);
        }
        Ok(echoes)
    }

    /// Writes the echoes into the [`Echoes::bytes`] after the fixed part of an Ack.
    pub(crate) fn emit(&self, bytes: &mut [u8]) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let words = core::iter::once(self.marks).chain(self.ports.iter().map(|port| port.number()).take(self.len()));
        let mut pairs = bytes.chunks_exact_mut(2);
        for word in words {
            pairs.next().ok_or(Error::BufferTooSmall)?.copy_from_slice(&word.to_be_bytes());
        }
        Ok(())
    }
}

pub(crate) const fn bytes_of(count: usize) -> usize {
    if count == 0 { 0 } else { 2 + 2 * count }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_latest_echoes_are_kept() {
        let mut echoes = Echoes::default();
        (1..=5).for_each(|port| echoes.push(EvPort::new(port), port % 2 == 0, 3));
        assert_eq!(
            echoes.iter().map(|(port, marked)| (port.number(), marked)).collect::<Vec<_>>(),
            [(3, false), (4, true), (5, false)]
        );
        assert_eq!((echoes.len(), echoes.bytes()), (3, 8));
        (0..100).for_each(|port| echoes.push(EvPort::new(port), true, 200));
        assert_eq!((echoes.len(), echoes.bytes()), (MAX_ECHOES, 32));
        assert!(echoes.iter().map(|(port, _)| port.number()).eq(85..100));
        echoes.clear();
        echoes.push(EvPort::new(7), true, 0);
        assert_eq!((echoes, echoes.bytes()), (Echoes::default(), 0));
    }
}
