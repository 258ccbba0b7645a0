//! The driver thread behind the handles.

use spray_core::Time;
use std::{
    collections::{HashMap, VecDeque},
    io,
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::channel::{Command, Done, Error, Handle, Message, Notice, Opened, Reply, Shared};
use crate::{
    device::Device,
    driver::DriverOptions,
    endpoint::{ConnectionError, ConnectionId, Endpoint, EndpointEvent, MAX_UNREAD, MessageId, Peer, SendError},
    host::Host,
    waker::Waker,
};

/// Time limit of connections to close after the last handle is dropped.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) notices: mpsc::UnboundedReceiver<Notice>,
    pub(super) accepted: mpsc::Sender<Opened>,
}

/// The thread's side of a connection's handle.
#[derive(Debug)]
struct Entry {
    messages: mpsc::Sender<Message>,
    error: Arc<OnceLock<ConnectionError>>,
    deliveries: HashMap<MessageId, Done>,
    /// Messages that wait for room in the endpoint.
    waiting: VecDeque<(Bytes, Done)>,
    closing: Option<Done>,
    /// The handle was dropped or closed, or the endpoint was closed.
    close_wanted: bool,
}

/// The thread's state besides the endpoint. It holds the handles' senders weakly, to detect their
/// drop.
#[derive(Debug)]
struct Server {
    inputs: Inputs,
    commands: mpsc::WeakSender<Command>,
    notices: mpsc::WeakUnboundedSender<Notice>,
    waker: Arc<Waker>,
    connecting: HashMap<ConnectionId, (Peer, Reply<Result<Opened, Error>>)>,
    entries: HashMap<ConnectionId, Entry>,
    is_closed: bool,
}

/// Starts the thread with these options. The returned receiver closes when the thread has ended.
pub(super) fn start<D: Device + Send + 'static>(
    mut host: Host<D>,
    inputs: Inputs,
    handle: &Handle,
    options: DriverOptions,
) -> io::Result<oneshot::Receiver<()>> {
    let (commands, notices) = (handle.commands.downgrade(), handle.notices.downgrade());
    let waker = Arc::clone(&handle.waker);
    let (connecting, entries) = (HashMap::new(), HashMap::new());
    let mut server = Server { inputs, commands, notices, waker, connecting, entries, is_closed: false };
    let (started, result) = std::sync::mpsc::sync_channel(1);
    let (ends, ended) = oneshot::channel();
    std::thread::Builder::new().name("spray-driver".into()).spawn(move || {
        let applied = options.apply();
        let failed = applied.is_err();
        if started.send(applied).is_err() || failed {
            return;
        }
        // The host was started before.
        let _ = host.run(options.idle, &[server.waker.fd()], |endpoint, now| server.serve(endpoint, now));
        host.run_until_closed(LINGER, |endpoint, now| {
            let _ = server.serve(endpoint, now);
        });
        drop((server, host, ends));
    })?;
    result.recv().unwrap_or(Ok(()))?;
    Ok(ended)
}

impl Server {
    fn serve<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> ControlFlow<()> {
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event);
        }
        if endpoint.is_device_gone() {
            // Every connection has failed. As the thread ends, so do `accept` and `connect`.
            return ControlFlow::Break(());
        }
        self.waker.rearm();
        while let Ok(notice) = self.inputs.notices.try_recv() {
            self.on_notice(endpoint, notice);
        }
        loop {
            match self.inputs.commands.try_recv() {
                Ok(command) => self.on_command(endpoint, now, command),
                Err(mpsc::error::TryRecvError::Empty) if !self.is_closed => return ControlFlow::Continue(()),
                Err(_) => break,
            }
        }
        // All their handles are gone.
        self.connecting.drain().for_each(|(connection, _)| endpoint.abort(connection));
        ControlFlow::Break(())
    }

    fn on_command<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time, command: Command) {
        match command {
            Command::Connect { peer, reply } => match endpoint.connect(now, peer, None) {
                Ok(connection) => drop(self.connecting.insert(connection, (peer, reply))),
                Err(error) => drop(reply.send(Err(error.into()))),
            },
            Command::Send { connection, data, reply } => self.on_send(endpoint, connection, data, reply),
            Command::Close { connection, reply } => match self.entries.get_mut(&connection) {
                Some(entry) => {
                    entry.closing = Some(reply);
                    entry.close(endpoint, connection);
                }
                None => drop(reply.send(Ok(()))),
            },
            Command::Stats { reply } => drop(reply.send(endpoint.stats())),
            Command::ConnectionStats { connection, reply } => drop(reply.send(endpoint.connection_stats(connection))),
        }
    }

    fn on_send<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, data: Bytes, reply: Done) {
        match self.entries.get_mut(&connection) {
            Some(entry) => {
                entry.waiting.push_back((data, reply));
                entry.submit(endpoint, connection);
            }
            None => drop(reply.send(Err(Error::Closed))),
        }
    }

    fn on_notice<D: Device>(&mut self, endpoint: &mut Endpoint<D>, notice: Notice) {
        match notice {
            Notice::Send { connection, data, reply } => self.on_send(endpoint, connection, data, reply),
            Notice::Consumed { connection, bytes } => endpoint.consumed(connection, bytes),
            Notice::Dropped { connection } => {
                if let Some(entry) = self.entries.get_mut(&connection) {
                    entry.close(endpoint, connection);
                }
            }
            Notice::CloseEndpoint => {
                self.is_closed = true;
                self.entries.iter_mut().for_each(|(connection, entry)| entry.close(endpoint, *connection));
            }
        }
    }

    fn on_event<D: Device>(&mut self, endpoint: &mut Endpoint<D>, event: EndpointEvent) {
        match event {
            EndpointEvent::Connected { connection, .. } => self.on_connected(endpoint, connection),
            EndpointEvent::Accepted { connection, peer, .. } => {
                match self.open(connection, peer) {
                    // Without room or receiver the handle is dropped, which closes the connection.
                    Some(handle) => drop(self.inputs.accepted.try_send(handle)),
                    None => endpoint.abort(connection),
                }
            }
            EndpointEvent::Received { connection, message, data, .. } => {
                let bytes = data.len() as u64;
                let entry = self.entries.get(&connection);
                if entry.is_none_or(|entry| entry.messages.try_send(Message { number: message.0, data }).is_err()) {
                    endpoint.consumed(connection, bytes);
                }
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                if let Some(entry) = self.entries.get_mut(&connection) {
                    if let Some(reply) = entry.deliveries.remove(&message) {
                        let _ = reply.send(Ok(()));
                    }
                    entry.submit(endpoint, connection);
                }
            }
            EndpointEvent::Closed { connection, .. } => self.on_end(connection, None),
            EndpointEvent::Failed { connection, error, .. } => self.on_end(connection, Some(error)),
        }
    }

    fn on_connected<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId) {
        let Some((peer, reply)) = self.connecting.remove(&connection) else { return };
        match self.open(connection, peer) {
            // Dropping the handle, if nothing waits for it, closes the connection.
            Some(handle) => drop(reply.send(Ok(handle))),
            None => endpoint.abort(connection),
        }
    }

    /// Creates the handle of an open connection; `None` if all handles are dropped.
    fn open(&mut self, id: ConnectionId, peer: Peer) -> Option<Opened> {
        let (commands, notices) = (self.commands.upgrade()?, self.notices.upgrade()?);
        let handle = Handle { commands, notices, waker: Arc::clone(&self.waker) };
        let (sender, messages) = mpsc::channel(MAX_UNREAD as usize);
        let error = Arc::new(OnceLock::new());
        let entry = Entry {
            messages: sender,
            error: Arc::clone(&error),
            deliveries: HashMap::new(),
            waiting: VecDeque::new(),
            closing: None,
            close_wanted: false,
        };
        self.entries.insert(id, entry);
        let shared = Arc::new(Shared { id, peer, handle });
        Some(Opened { shared, messages, error })
    }

    fn on_end(&mut self, connection: ConnectionId, error: Option<ConnectionError>) {
        if let Some((_, reply)) = self.connecting.remove(&connection) {
            let _ = reply.send(Err(error.map_or(Error::Closed, Error::from)));
        }
        if let Some(entry) = self.entries.remove(&connection) {
            entry.end(error);
        }
    }
}

impl Entry {
    /// Closes the connection once all waiting messages are delivered.
    fn close<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId) {
        self.close_wanted = true;
        self.submit(endpoint, connection);
    }

    /// Passes waiting messages to the endpoint until it is full, then closes if wanted.
    fn submit<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId) {
        while let Some((data, reply)) = self.waiting.pop_front() {
            match endpoint.send(connection, data.clone()) {
                Ok(message) => drop(self.deliveries.insert(message, reply)),
                Err(SendError::Full) => return self.waiting.push_front((data, reply)),
                Err(error) => drop(reply.send(Err(error.into()))),
            }
        }
        if self.close_wanted {
            endpoint.close(connection);
        }
    }

    fn end(self, error: Option<ConnectionError>) {
        if let Some(error) = error {
            let _ = self.error.set(error);
        }
        let failure = || Err(error.map_or(Error::Closed, Error::from));
        let waiting = self.waiting.into_iter().map(|(_, reply)| reply);
        for reply in self.deliveries.into_values().chain(waiting) {
            let _ = reply.send(failure());
        }
        if let Some(reply) = self.closing {
            let _ = reply.send(error.map_or(Ok(()), |error| Err(error.into())));
        }
    }
}
