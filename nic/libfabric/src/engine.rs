//! An endpoint: what is sent and received through one interface. It knows nothing of libfabric's objects.
//!
//! | file | content |
//! |---|---|
//! | `header` | what stands before each message |
//! | `order` | messages of one peer, in order |
//! | `matching` | which message goes into which receive |
//! | `buffers` | the application's memory |
//! | `sending`, `receiving` | connections of this side, and of others |
//! | `bindings` | what the endpoint was bound to |
//! | `remote`, `requests`, `memory` | reads and writes of peers' memory: as messages, those under way, what the engine does |
//! | `ways` | where frames go |
//!
//! Each side sends by connections of its own, and receives by those of others: who sends something first needs no agreement then, and a
//! connection's numbers are the order of one side's messages.

mod bindings;
pub mod buffers;
pub mod header;
pub mod matching;
mod memory;
mod order;
mod receiving;
pub mod remote;
mod requests;
pub mod sending;
#[cfg(test)]
mod tests;
pub mod ways;

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use spray_nic::device::Device;
use spray_nic::endpoint::ConnectionError;
use spray_nic::sys::monotonic_ns;
use spray_nic::{ConnectionId, EndpointEvent, Host};

pub use self::bindings::{Bindings, source};
use self::buffers::Buffers;
use self::header::Header;
use self::matching::{Arrival, Receive};
use self::receiving::{Receiving, entry};
pub use self::requests::Remote;
use self::requests::Requests;
use self::sending::{Borrowed, Message, Operation, Sending};
use self::ways::Ways;
use crate::abi::{
    FI_ETRUNC, FI_INJECT, FI_INJECT_COMPLETE, FI_MSG, FI_MULTI_RECV, FI_RECV, FI_SEND, FI_TAGGED, fi_addr_t,
    fi_cq_tagged_entry,
};
use crate::error::Errno;
use crate::queue::Completion;

/// Most receives that wait for messages.
pub const RECEIVES: usize = 4096;
/// How long `close` waits for what is sent to be delivered.
const LINGER: Duration = Duration::from_secs(2);
/// How long `close` still answers a peer that has not heard that its last message arrived: three of the transport's shortest timeouts.
const LAST_WORDS: Duration = Duration::from_millis(15);

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    /// To whom.
    pub to: fi_addr_t,
    /// Its bytes.
    pub buffers: Buffers,
    /// What stands before them.
    pub header: Header,
    /// Flags of the operation.
    pub flags: u64,
    /// What the application calls the operation; `None` for one that is not told of if all goes well.
    pub context: Option<usize>,
}

/// What becomes of a message that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It waits for a receive.
    Waits,
    /// It waits for the receive of the same context.
    IsClaimed,
    /// It is dropped.
    IsDiscarded,
}

/// An endpoint that is enabled.
#[derive(Debug)]
pub struct Engine<D> {
    host: Host<D>,
    ways: Ways,
    bindings: Bindings,
    sending: Sending,
    receiving: Receiving,
    max_message: usize,
    attended_ns: u64,
    /// Messages to itself that no receive has got.
    own_waiting: usize,
    /// Messages that wait for the receive of one context. As long as they do, their senders have the less room.
    claimed: HashMap<usize, Arrival<Option<ConnectionId>>>,
    requests: Requests,
}

impl<D: Device> Engine<D> {
    /// An endpoint for messages of up to `max_message` bytes; it is to take [`header::BYTES`] and [`remote::BYTES`] more.
    pub fn new(host: Host<D>, ways: Ways, bindings: Bindings, max_message: usize) -> Self {
        Self {
            host,
            ways,
            bindings,
            sending: Sending::default(),
            receiving: Receiving::default(),
            max_message,
            attended_ns: monotonic_ns(),
            own_waiting: 0,
            claimed: HashMap::new(),
            requests: Requests::default(),
        }
    }

    /// Begins to send a message.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when too many are on their way; others for what can never be sent.
    pub fn send(&mut self, send: &Send) -> Result<(), Errno> {
        let side = &self.bindings.sends;
        let (to, own) = self.peer_of(send.to)?;
        if send.buffers.bytes() > self.max_message {
            return Err(Errno(libc::EMSGSIZE));
        }
        if side.is_full() {
            return Err(Errno::AGAIN);
        }
        let operation = self.operation(send);
        if to == own {
            return self.send_to_self(send, own, operation);
        }
        let was_idle = self.sending.send(&mut self.host.endpoint, &self.ways, to, message(send), operation)?;
        if operation.is_done && operation.is_told {
            self.bindings.sends.done(operation.entry, true);
        }
        // What goes alone goes at once; what goes with others goes with the next poll, so that the kernel is told of them together.
        if was_idle {
            self.progress(true);
        }
        Ok(())
    }

    /// Begins to receive a message.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when too many receives wait, or completions.
    pub fn receive(&mut self, receive: Receive) -> Result<(), Errno> {
        if self.receiving.matching.waiting() >= RECEIVES || self.bindings.receives.is_full() {
            return Err(Errno::AGAIN);
        }
        let (bindings, mut taken) = (&self.bindings, Vec::new());
        self.receiving.matching.receive(receive, |receive, arrival| {
            complete(bindings, &receive, &arrival);
            taken.push(arrival);
        });
        taken.into_iter().for_each(|arrival| self.consume(&arrival));
        Ok(())
    }

    /// The address of a peer, and this side's.
    fn peer_of(&self, number: fi_addr_t) -> Result<(IpAddr, IpAddr), Errno> {
        let peer = self.bindings.peers.get(number).ok_or(Errno::INVALID)?.ip();
        let own = self.host.endpoint.config().address;
        if peer.is_ipv4() == own.is_ipv4() { Ok((peer, own)) } else { Err(Errno(libc::EADDRNOTAVAIL)) }
    }

    /// A message of the endpoint's own takes no network: it is copied, and waits for its receive as others do.
    fn send_to_self(&mut self, send: &Send, own: IpAddr, operation: Operation) -> Result<(), Errno> {
        if self.own_waiting == sending::MOST {
            return Err(Errno::AGAIN);
        }
        self.own_waiting += 1;
        let arrival = Arrival { from: own, connection: None, header: send.header, message: copy(send) };
        if let Some((receive, arrival)) = self.receiving.matching.arrive(arrival) {
            complete(&self.bindings, &receive, &arrival);
            self.consume(&arrival);
        }
        self.bindings.sends.done(operation.entry, operation.is_told);
        Ok(())
    }

    /// Tells of the message that a receive would get, or that there is none.
    pub fn peek(&mut self, receive: &Receive, then: Then) {
        self.progress(true);
        let bindings = &self.bindings;
        let Some(arrival) = self.receiving.matching.peek(receive) else {
            return bindings.receives.failed(unmatched(receive), Errno(libc::ENOMSG));
        };
        bindings.receives.done(told(bindings, receive, arrival), true);
        if then == Then::Waits {
            return;
        }
        let taken = self.receiving.matching.take(receive);
        let dropped = match taken {
            Some(arrival) if then == Then::IsClaimed => self.claimed.insert(receive.context, arrival),
            other => other,
        };
        dropped.into_iter().for_each(|arrival| self.consume(&arrival));
    }

    /// Receives the message that was claimed by this context.
    ///
    /// # Errors
    /// When there is none.
    pub fn receive_claimed(&mut self, receive: &Receive) -> Result<(), Errno> {
        let arrival = self.claimed.remove(&receive.context).ok_or(Errno(libc::ENOMSG))?;
        complete(&self.bindings, receive, &arrival);
        self.consume(&arrival);
        Ok(())
    }

    /// Drops the message that was claimed by this context.
    ///
    /// # Errors
    /// When there is none.
    pub fn discard_claimed(&mut self, receive: &Receive) -> Result<(), Errno> {
        let arrival = self.claimed.remove(&receive.context).ok_or(Errno(libc::ENOMSG))?;
        self.bindings.receives.done(told(&self.bindings, receive, &arrival), receive.is_told);
        self.consume(&arrival);
        Ok(())
    }

    /// Ends the oldest receive of that context. Returns whether there was one.
    pub fn cancel(&mut self, context: usize) -> bool {
        let Some(receive) = self.receiving.matching.cancel(context) else { return false };
        self.bindings.receives.failed(unmatched(&receive), Errno(libc::ECANCELED));
        true
    }

    /// Handles what has arrived, and sends what may go. `attended`: the application itself has called. Returns after how many nanoseconds
    /// at most it wants to be called again.
    pub fn progress(&mut self, attended: bool) -> u64 {
        if attended {
            self.attended_ns = monotonic_ns();
        }
        let (now, due_ns) = self.host.poll();
        self.sending.connect(&mut self.host.endpoint, now, &self.bindings.sends);
        while let Some(event) = self.host.endpoint.next_event() {
            self.on_event(event);
        }
        self.attend_requests();
        // The answer to a question for the next hop ends no sleep.
        if self.sending.is_asking() { due_ns.min(100_000) } else { due_ns }
    }

    /// When the application last called.
    pub fn attended_ns(&self) -> u64 {
        self.attended_ns
    }

    /// What is readable when frames have arrived.
    pub fn wake_fd(&self) -> Option<RawFd> {
        self.host.endpoint.device().info().wake_fd
    }

    /// Where receives find who they are for.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Ends the endpoint: waits until what was sent is delivered, and for peers to hear that what they sent is.
    pub fn close(mut self) {
        self.sending.connections().for_each(|connection| self.host.endpoint.close(connection));
        let begun_ns = monotonic_ns();
        let elapsed = || Duration::from_nanos(monotonic_ns() - begun_ns);
        let is_open = |engine: &Self| engine.sending.connections().next().is_some() || engine.sending.is_asking();
        while is_open(&self) && elapsed() < LINGER || !self.receiving.is_empty() && elapsed() < LAST_WORDS {
            let due_ns = self.progress(true).min(1_000_000);
            let mut fds: Vec<_> = self.wake_fd().map(spray_nic::sys::readable).into_iter().collect();
            spray_nic::sys::wait_readable(&mut fds, Duration::from_nanos(due_ns));
        }
        self.host.abort();
    }

    fn operation(&self, send: &Send) -> Operation {
        let kind = send.header.tag.map_or(FI_MSG, |_| FI_TAGGED);
        let op_context = send.context.unwrap_or(self.bindings.context);
        Operation {
            entry: fi_cq_tagged_entry { op_context, flags: FI_SEND | kind, ..Default::default() },
            is_told: send.context.is_some() && self.bindings.sends.tells(send.flags),
            is_done: send.flags & FI_INJECT_COMPLETE != 0 && send.context.is_some(),
            remote: None,
        }
    }

    fn on_event(&mut self, event: EndpointEvent) {
        match event {
            EndpointEvent::Accepted { connection, peer, .. } => self.receiving.on_accepted(connection, peer.address),
            EndpointEvent::Received { connection, message, data, .. } => self.on_message(connection, message.0, data),
            EndpointEvent::Delivered { connection, message, .. } => {
                self.sending.on_delivered(connection, message, &self.bindings.sends);
            }
            EndpointEvent::Closed { connection, .. } => self.on_end(connection, ConnectionError::PeerClosed),
            EndpointEvent::Failed { connection, error, .. } => self.on_end(connection, error),
            _ => {}
        }
    }

    fn on_message(&mut self, connection: ConnectionId, number: u32, message: Bytes) {
        let (bindings, mut taken) = (&self.bindings, Vec::new());
        let (mut remote, requests) = (Ok(()), &mut self.requests);
        let put = self.receiving.on_message(connection, number, message, |receive, arrival| {
            match receive {
                Some(receive) => complete(bindings, &receive, &arrival),
                None => remote = remote.and(requests.on_arrival(bindings, &arrival)),
            }
            taken.push(arrival);
        });
        taken.into_iter().for_each(|arrival| self.consume(&arrival));
        if put.and(remote).is_err() {
            self.host.endpoint.abort(connection);
        }
    }

    fn on_end(&mut self, connection: ConnectionId, error: ConnectionError) {
        let errno = error.into();
        if !self.sending.on_end(connection, errno, &self.bindings.sends)
            && let Some(peer) = self.receiving.on_end(connection)
        {
            self.requests.fail(peer, errno, &self.bindings.remotes);
        }
    }

    fn consume(&mut self, arrival: &Arrival<Option<ConnectionId>>) {
        match arrival.connection {
            Some(connection) => self.host.endpoint.consumed(connection, arrival.message.len() as u64),
            None => self.own_waiting -= 1,
        }
    }
}

/// Copies where the application may have its memory back at once.
fn message(send: &Send) -> Message {
    if send.context.is_some() && send.flags & (FI_INJECT | FI_INJECT_COMPLETE) == 0 {
        return Message::Borrowed(Box::new(Borrowed { header: send.header.write(), buffers: send.buffers }));
    }
    Message::Copied(copy(send))
}

/// A message with its header.
fn copy(send: &Send) -> Bytes {
    let header = send.header.write();
    let mut bytes = BytesMut::with_capacity(header.len() + send.buffers.bytes());
    bytes.put_slice(&header);
    bytes.put_bytes(0, send.buffers.bytes());
    send.buffers.read(0, &mut bytes[header.len()..]);
    bytes.freeze()
}

/// Puts a message where it belongs, and tells of it.
fn complete(bindings: &Bindings, receive: &Receive, arrival: &Arrival<Option<ConnectionId>>) {
    let mut completion = told(bindings, receive, arrival);
    let written = receive.buffers.write(&arrival.message[header::BYTES..]);
    completion.lost = completion.entry.len - written;
    completion.entry.len = written;
    match completion.lost {
        0 => bindings.receives.done(completion, receive.is_told),
        _ => bindings.receives.failed(completion, Errno(FI_ETRUNC)),
    }
}

fn told(bindings: &Bindings, receive: &Receive, arrival: &Arrival<Option<ConnectionId>>) -> Completion {
    let mut completion = Completion::from(entry(receive, arrival));
    if bindings.tells_source {
        completion.source = bindings.peers.number(arrival.from);
    }
    completion
}

/// A receive that got no message.
fn unmatched(receive: &Receive) -> fi_cq_tagged_entry {
    let kind = receive.tag.map_or(FI_MSG, |_| FI_TAGGED);
    let tag = receive.tag.map_or(0, |(tag, _)| tag);
    let freed = receive.least.map_or(0, |_| FI_MULTI_RECV);
    fi_cq_tagged_entry { op_context: receive.context, flags: FI_RECV | kind | freed, tag, ..Default::default() }
}
