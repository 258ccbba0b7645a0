//! The data path of an endpoint, independent of libfabric's objects.
//!
//! | file | content |
//! |---|---|
//! | `header` | header of each message |
//! | `reorder` | reordering of the messages of a peer |
//! | `matching` | matching of messages and receives |
//! | `buffers` | memory of the application |
//! | `sending`, `receiving` | outgoing and incoming connections |
//! | `bindings` | objects bound to the endpoint |
//! | `rma`, `requests`, `memory` | RMA: messages, pending operations, execution |
//! | `next_hop` | next hops of peers |
//!
//! Each side sends on connections that it opened: no agreement is needed before the first message,
//! and the message numbers of a connection are the order of one side.

mod bindings;
pub mod buffers;
pub mod header;
pub mod matching;
mod memory;
pub mod next_hop;
mod receiving;
mod reorder;
mod requests;
pub mod rma;
pub mod sending;
#[cfg(test)]
mod tests;

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
use self::next_hop::NextHops;
use self::receiving::{Receiving, entry};
use self::requests::Requests;
pub use self::requests::RmaOperation;
use self::sending::{Borrowed, Message, Operation, Sending};
use crate::abi::{
    FI_ETRUNC, FI_INJECT, FI_INJECT_COMPLETE, FI_MSG, FI_MULTI_RECV, FI_RECV, FI_SEND, FI_TAGGED, fi_addr_t,
    fi_cq_tagged_entry,
};
use crate::error::Errno;
use crate::queue::Completion;

/// Maximum number of posted receives.
pub const MAX_RECEIVES: usize = 4096;
/// Time that `close` waits for sent messages to be delivered.
const LINGER: Duration = Duration::from_secs(2);
/// Time that `close` still acknowledges messages of peers: three of the transport's shortest
/// timeouts.
const CLOSE_LINGER: Duration = Duration::from_millis(15);

#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub to: fi_addr_t,
    pub buffers: Buffers,
    pub header: Header,
    pub flags: u64,
    /// The context of the operation; `None` if its success is not reported.
    pub context: Option<usize>,
}

/// What happens to a message after a peek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPeek {
    Keep,
    /// Reserve it for a receive with the same context.
    Claim,
    Discard,
}

/// The engine of an enabled endpoint.
#[derive(Debug)]
pub struct Engine<D> {
    host: Host<D>,
    next_hops: NextHops,
    bindings: Bindings,
    sending: Sending,
    receiving: Receiving,
    max_message: usize,
    attended_ns: u64,
    /// Unreceived messages of the endpoint to itself.
    own_waiting: usize,
    /// Claimed messages by context. They count against the receive window of their senders.
    claimed: HashMap<usize, Arrival<Option<ConnectionId>>>,
    requests: Requests,
}

impl<D: Device> Engine<D> {
    /// Creates an engine for messages of up to `max_message` bytes. `host` must accept
    /// [`header::BYTES`] and [`rma::BYTES`] more.
    pub fn new(host: Host<D>, next_hops: NextHops, bindings: Bindings, max_message: usize) -> Self {
        Self {
            host,
            next_hops,
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

    /// Starts to send a message. Fails with [`Errno::AGAIN`] when too many are in flight.
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
        let was_idle = self.sending.send(&mut self.host.endpoint, &self.next_hops, to, message(send), operation)?;
        if operation.is_done && operation.is_reported {
            self.bindings.sends.done(operation.entry, true);
        }
        // A single message is sent immediately. Further ones wait for the next poll, to share a
        // system call.
        if was_idle {
            self.progress(true);
        }
        Ok(())
    }

    /// Posts a receive. Fails with [`Errno::AGAIN`] when too many receives or completions are
    /// outstanding.
    pub fn receive(&mut self, receive: Receive) -> Result<(), Errno> {
        if self.receiving.matching.waiting() >= MAX_RECEIVES || self.bindings.receives.is_full() {
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

    /// Returns the address of a peer, and the local one.
    fn peer_of(&self, number: fi_addr_t) -> Result<(IpAddr, IpAddr), Errno> {
        let peer = self.bindings.peers.get(number).ok_or(Errno::INVALID)?.ip();
        let own = self.host.endpoint.config().address;
        if peer.is_ipv4() == own.is_ipv4() { Ok((peer, own)) } else { Err(Errno(libc::EADDRNOTAVAIL)) }
    }

    /// Delivers a message to this endpoint without the network. It is copied, and waits for a
    /// receive like others.
    fn send_to_self(&mut self, send: &Send, own: IpAddr, operation: Operation) -> Result<(), Errno> {
        if self.own_waiting == sending::MAX_UNDELIVERED {
            return Err(Errno::AGAIN);
        }
        self.own_waiting += 1;
        let arrival = Arrival { from: own, connection: None, header: send.header, message: copy(send) };
        if let Some((receive, arrival)) = self.receiving.matching.arrive(arrival) {
            complete(&self.bindings, &receive, &arrival);
            self.consume(&arrival);
        }
        self.bindings.sends.done(operation.entry, operation.is_reported);
        Ok(())
    }

    /// Reports the message that a receive would get, or its absence.
    pub fn peek(&mut self, receive: &Receive, then: AfterPeek) {
        self.progress(true);
        let bindings = &self.bindings;
        let Some(arrival) = self.receiving.matching.peek(receive) else {
            return bindings.receives.failed(unmatched(receive), Errno(libc::ENOMSG));
        };
        bindings.receives.done(completion(bindings, receive, arrival), true);
        if then == AfterPeek::Keep {
            return;
        }
        let taken = self.receiving.matching.take(receive);
        let dropped = match taken {
            Some(arrival) if then == AfterPeek::Claim => self.claimed.insert(receive.context, arrival),
            other => other,
        };
        dropped.into_iter().for_each(|arrival| self.consume(&arrival));
    }

    /// Receives the message that was claimed with this context.
    pub fn receive_claimed(&mut self, receive: &Receive) -> Result<(), Errno> {
        let arrival = self.claimed.remove(&receive.context).ok_or(Errno(libc::ENOMSG))?;
        complete(&self.bindings, receive, &arrival);
        self.consume(&arrival);
        Ok(())
    }

    /// Drops the message that was claimed with this context.
    pub fn discard_claimed(&mut self, receive: &Receive) -> Result<(), Errno> {
        let arrival = self.claimed.remove(&receive.context).ok_or(Errno(libc::ENOMSG))?;
        self.bindings.receives.done(completion(&self.bindings, receive, &arrival), receive.is_reported);
        self.consume(&arrival);
        Ok(())
    }

    /// Cancels the oldest receive with this context. Returns whether there was one.
    pub fn cancel(&mut self, context: usize) -> bool {
        let Some(receive) = self.receiving.matching.cancel(context) else { return false };
        self.bindings.receives.failed(unmatched(&receive), Errno(libc::ECANCELED));
        true
    }

    /// Handles received frames, and sends what is allowed. `attended` marks a call of the
    /// application. Returns the time in nanoseconds after which to call again at the latest.
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
        // A resolved next hop does not wake a sleep, so the sleep is short.
        if self.sending.is_resolving() { due_ns.min(100_000) } else { due_ns }
    }

    /// Returns the time of the application's last call.
    pub fn attended_ns(&self) -> u64 {
        self.attended_ns
    }

    /// Returns a descriptor that is readable when frames have arrived.
    pub fn wake_fd(&self) -> Option<RawFd> {
        self.host.endpoint.device().info().wake_fd
    }

    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Closes the endpoint: waits until sent messages are delivered, and until peers have received
    /// their acknowledgements.
    pub fn close(mut self) {
        self.sending.connections().for_each(|connection| self.host.endpoint.close(connection));
        let begun_ns = monotonic_ns();
        let elapsed = || Duration::from_nanos(monotonic_ns() - begun_ns);
        let is_open = |engine: &Self| engine.sending.connections().next().is_some() || engine.sending.is_resolving();
        while is_open(&self) && elapsed() < LINGER || !self.receiving.is_empty() && elapsed() < CLOSE_LINGER {
            let due_ns = self.progress(true).min(1_000_000);
            let mut fds: Vec<_> = self.wake_fd().map(spray_nic::sys::poll_fd).into_iter().collect();
            spray_nic::sys::wait_readable(&mut fds, Duration::from_nanos(due_ns));
        }
        self.host.abort();
    }

    fn operation(&self, send: &Send) -> Operation {
        let kind = send.header.tag.map_or(FI_MSG, |_| FI_TAGGED);
        let op_context = send.context.unwrap_or(self.bindings.context);
        Operation {
            entry: fi_cq_tagged_entry { op_context, flags: FI_SEND | kind, ..Default::default() },
            is_reported: send.context.is_some() && self.bindings.sends.reports(send.flags),
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

/// Copies the message if the application may reuse its memory at once.
fn message(send: &Send) -> Message {
    if send.context.is_some() && send.flags & (FI_INJECT | FI_INJECT_COMPLETE) == 0 {
        return Message::Borrowed(Box::new(Borrowed { header: send.header.write(), buffers: send.buffers }));
    }
    Message::Copied(copy(send))
}

/// Copies a message with its header.
fn copy(send: &Send) -> Bytes {
    let header = send.header.write();
    let mut bytes = BytesMut::with_capacity(header.len() + send.buffers.bytes());
    bytes.put_slice(&header);
    bytes.put_bytes(0, send.buffers.bytes());
    send.buffers.read(0, &mut bytes[header.len()..]);
    bytes.freeze()
}

/// Copies a message into a receive buffer, and reports the completion.
fn complete(bindings: &Bindings, receive: &Receive, arrival: &Arrival<Option<ConnectionId>>) {
    let mut completion = completion(bindings, receive, arrival);
    let written = receive.buffers.write(&arrival.message[header::BYTES..]);
    completion.lost = completion.entry.len - written;
    completion.entry.len = written;
    match completion.lost {
        0 => bindings.receives.done(completion, receive.is_reported),
        _ => bindings.receives.failed(completion, Errno(FI_ETRUNC)),
    }
}

fn completion(bindings: &Bindings, receive: &Receive, arrival: &Arrival<Option<ConnectionId>>) -> Completion {
    let mut completion = Completion::from(entry(receive, arrival));
    if bindings.reports_source {
        completion.source = bindings.peers.number(arrival.from);
    }
    completion
}

/// Returns the entry of a receive that got no message.
fn unmatched(receive: &Receive) -> fi_cq_tagged_entry {
    let kind = receive.tag.map_or(FI_MSG, |_| FI_TAGGED);
    let tag = receive.tag.map_or(0, |(tag, _)| tag);
    let freed = receive.least.map_or(0, |_| FI_MULTI_RECV);
    fi_cq_tagged_entry { op_context: receive.context, flags: FI_RECV | kind | freed, tag, ..Default::default() }
}
