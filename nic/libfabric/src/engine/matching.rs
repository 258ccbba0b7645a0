//! Which message goes into which receive: the oldest that fits, both ways.

use std::collections::VecDeque;
use std::net::IpAddr;

use bytes::Bytes;

use super::buffers::Buffers;
use super::header::{self, Header};

/// A receive that waits for a message.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// Where the message goes.
    pub buffers: Buffers,
    /// From whom; `None` takes everybody's.
    pub from: Option<IpAddr>,
    /// Of tagged messages: the tag, and its bits that do not count.
    pub tag: Option<(u64, u64)>,
    /// What the application calls the operation.
    pub context: usize,
    /// Whether its end is told even if all goes well.
    pub is_told: bool,
    /// It takes one message behind the other, as long as there is room for so many bytes.
    pub least: Option<usize>,
    /// Of what one of them gets: whether it is the last.
    pub is_last: bool,
}

/// A message that waits for a receive.
#[derive(Clone, Debug)]
pub struct Arrival<C> {
    /// The sender's address.
    pub from: IpAddr,
    /// The connection that it came on.
    pub connection: C,
    /// What its header says.
    pub header: Header,
    /// All of it, with the header.
    pub message: Bytes,
}

impl<C> Arrival<C> {
    /// Bytes that go to the application.
    pub fn bytes(&self) -> usize {
        self.message.len().saturating_sub(header::BYTES)
    }
}

impl Receive {
    /// What a message of so many bytes gets of it, and what goes on waiting.
    fn split(self, bytes: usize) -> (Self, Option<Self>) {
        let Some(least) = self.least else { return (self, None) };
        let rest = Self { buffers: self.buffers.behind(bytes), ..self };
        let is_last = rest.buffers.bytes() < least.max(1);
        // That its memory is free again is told in any case.
        let part = Self { is_last, is_told: self.is_told || is_last, ..self };
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

/// Receives and messages that wait for each other. Tagged ones and others do not meet.
#[derive(Debug)]
pub struct Matching<C> {
    receives: [VecDeque<Receive>; 2],
    arrivals: [VecDeque<Arrival<C>>; 2],
}

/// Whether there is a tag says which of the two queues something is in.
fn kind<T>(tag: Option<T>) -> usize {
    usize::from(tag.is_some())
}

impl<C> Default for Matching<C> {
    fn default() -> Self {
        Self { receives: Default::default(), arrivals: Default::default() }
    }
}

impl<C: Copy + PartialEq> Matching<C> {
    /// Takes a message: returns it with its receive, or keeps it until there is one.
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

    /// Takes a receive: hands `out` the messages that it gets at once, and keeps it while it waits for more.
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

    /// The oldest message that a receive would get, which goes on waiting.
    #[must_use]
    pub fn peek(&self, receive: &Receive) -> Option<&Arrival<C>> {
        self.arrivals[kind(receive.tag)].iter().find(|arrival| receive.fits(arrival))
    }

    /// Takes the oldest message that a receive would get away.
    pub fn take(&mut self, receive: &Receive) -> Option<Arrival<C>> {
        let arrivals = &mut self.arrivals[kind(receive.tag)];
        let at = arrivals.iter().position(|arrival| receive.fits(arrival))?;
        arrivals.remove(at)
    }

    /// Takes the oldest receive of that context away.
    pub fn cancel(&mut self, context: usize) -> Option<Receive> {
        self.receives.iter_mut().find_map(|receives| {
            let at = receives.iter().position(|receive| receive.context == context)?;
            receives.remove(at)
        })
    }

    /// How many receives wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.receives.iter().map(VecDeque::len).sum()
    }

    /// Messages that came on connections for which `is_of` holds, and their bytes.
    #[must_use]
    pub fn count(&self, is_of: impl Fn(C) -> bool) -> (usize, usize) {
        let those = self.arrivals.iter().flatten().filter(|arrival| is_of(arrival.connection));
        those.fold((0, 0), |(count, bytes), arrival| (count + 1, bytes + arrival.message.len()))
    }

    /// Drops the messages that came on a connection.
    pub fn forget(&mut self, connection: C) {
        self.arrivals.iter_mut().for_each(|arrivals| arrivals.retain(|arrival| arrival.connection != connection));
    }
}

#[cfg(test)]
mod tests;
