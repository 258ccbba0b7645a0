//! Matching of messages and receives: each takes the oldest that fits.

use std::collections::VecDeque;
use std::net::IpAddr;

use bytes::Bytes;

use super::buffers::Buffers;
use super::header::{self, Header};

/// A posted receive.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    pub buffers: Buffers,
    /// The sender; `None` accepts any.
    pub from: Option<IpAddr>,
    /// The tag of tagged messages, and a mask of its ignored bits.
    pub tag: Option<(u64, u64)>,
    pub context: usize,
    /// Whether success is reported.
    pub is_reported: bool,
    /// For a multi-receive buffer: it accepts messages while it has this many bytes free.
    pub least: Option<usize>,
    /// Whether this part of a multi-receive buffer is the last.
    pub is_last: bool,
}

/// A message without a receive.
#[derive(Clone, Debug)]
pub struct Arrival<C> {
    pub from: IpAddr,
    pub connection: C,
    pub header: Header,
    /// The whole message, with the header.
    pub message: Bytes,
}

impl<C> Arrival<C> {
    pub fn bytes(&self) -> usize {
        self.message.len().saturating_sub(header::BYTES)
    }
}

impl Receive {
    /// Splits off the part for a message of `bytes`; returns it and the rest that remains posted.
    fn split(self, bytes: usize) -> (Self, Option<Self>) {
        let Some(least) = self.least else { return (self, None) };
        let rest = Self { buffers: self.buffers.skip(bytes), ..self };
        let is_last = rest.buffers.bytes() < least.max(1);
        // The release of the buffer is reported in any case.
        let part = Self { is_last, is_reported: self.is_reported || is_last, ..self };
        (part, (!is_last).then_some(rest))
    }

    fn fits<C>(&self, arrival: &Arrival<C>) -> bool {
        self.from.is_none_or(|from| from == arrival.from) && self.fits_tag(arrival.header.tag)
    }

    fn fits_tag(&self, tag: Option<u64>) -> bool {
        match (self.tag, tag) {
            (Some((wanted, ignored)), Some(tag)) => (wanted ^ tag) & !ignored == 0,
            (None, None) => true,
            _ => false,
        }
    }
}

/// Posted receives and unexpected messages. Tagged and untagged ones do not match each other.
#[derive(Debug)]
pub struct Matching<C> {
    receives: [VecDeque<Receive>; 2],
    arrivals: [VecDeque<Arrival<C>>; 2],
}

fn kind<T>(tag: Option<T>) -> usize {
    usize::from(tag.is_some())
}

impl<C> Default for Matching<C> {
    fn default() -> Self {
        Self { receives: Default::default(), arrivals: Default::default() }
    }
}

impl<C: Copy + PartialEq> Matching<C> {
    /// Matches a message: returns it with its receive, or queues it.
    pub fn arrive(&mut self, arrival: Arrival<C>) -> Option<(Receive, Arrival<C>)> {
        let kind = kind(arrival.header.tag);
        let receives = &mut self.receives[kind];
        let Some(at) = receives.iter().position(|receive| receive.fits(&arrival)) else {
            self.arrivals[kind].push_back(arrival);
            return None;
        };
        let (receive, rest) = receives[at].split(arrival.bytes());
        match rest {
            Some(rest) => receives[at] = rest,
            None => drop(receives.remove(at)),
        }
        Some((receive, arrival))
    }

    /// Passes the messages that match to `out`, and queues the receive unless it is used up.
    pub fn receive(&mut self, receive: Receive, mut out: impl FnMut(Receive, Arrival<C>)) {
        let mut waiting = receive;
        while let Some(arrival) = self.take(&waiting) {
            let (receive, rest) = waiting.split(arrival.bytes());
            out(receive, arrival);
            match rest {
                Some(rest) => waiting = rest,
                None => return,
            }
        }
        self.receives[kind(waiting.tag)].push_back(waiting);
    }

    /// Returns the oldest message that the receive would get, without removing it.
    pub fn peek(&self, receive: &Receive) -> Option<&Arrival<C>> {
        self.arrivals[kind(receive.tag)].iter().find(|arrival| receive.fits(arrival))
    }

    /// Removes the oldest message that the receive would get.
    pub fn take(&mut self, receive: &Receive) -> Option<Arrival<C>> {
        let arrivals = &mut self.arrivals[kind(receive.tag)];
        let at = arrivals.iter().position(|arrival| receive.fits(arrival))?;
        arrivals.remove(at)
    }

    pub fn cancel(&mut self, context: usize) -> Option<Receive> {
        self.receives.iter_mut().find_map(|receives| {
            let at = receives.iter().position(|receive| receive.context == context)?;
            receives.remove(at)
        })
    }

    pub fn waiting(&self) -> usize {
        self.receives.iter().map(VecDeque::len).sum()
    }

    /// Returns the number and the bytes of messages from connections that satisfy `is_of`.
    pub fn count(&self, is_of: impl Fn(C) -> bool) -> (usize, usize) {
        let those = self.arrivals.iter().flatten().filter(|arrival| is_of(arrival.connection));
        those.fold((0, 0), |(count, bytes), arrival| (count + 1, bytes + arrival.message.len()))
    }

    pub fn forget(&mut self, connection: C) {
        self.arrivals.iter_mut().for_each(|arrivals| arrivals.retain(|arrival| arrival.connection != connection));
    }
}

#[cfg(test)]
mod tests;
