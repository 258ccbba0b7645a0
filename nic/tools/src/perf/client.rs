//! `spray perf`: measures with a `spray serve`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::{Value, json};
use spray_core::link::PS_PER_S;
use spray_nic::device::Device;
use spray_nic::endpoint::ConnectionError;
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, MessageId, Peer, Time};

use super::adjust;
use super::board::Board;
use super::cpu::Cpu;
use super::format::{Message, Request, What, ping};
use super::interval::{HEAD, Interval, Overhead, Snapshot};
use super::measured::Measured;
use super::plan::Plan;
use super::pump::Pump;
use crate::args;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::say;
use crate::session::{End, PathOptions, Session, Step};
use crate::stop::Stop;

/// Measures, and prints intervals and a summary.
///
/// # Errors
/// 2 if it could not start, 1 if a connection failed, 130 after Ctrl-C.
pub fn perf(arguments: &args::Perf) -> Outcome {
    let mut document = json!({});
    let outcome = measure(arguments, &mut document);
    if let Err(failure) = &outcome {
        document["error"] = failure.to_string().into();
    }
    say::object(&document)?;
    outcome
}

/// `document` has the results up to a failure.
fn measure(arguments: &args::Perf, document: &mut Value) -> Outcome {
    let path = PathOptions::new(&arguments.overrides)?;
    let plan = Plan::new(arguments);
    let server = Some(arguments.server);
    let mut session = Session::open(&arguments.interface, server, &path, plan.connections(), adjust)?;
    let peer = session.peer(arguments.server)?;
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let name = arguments.server.to_string();
    let board = Board::new(session.shards());
    let mut clients = Client::all(plan, peer, &board);
    let steps = clients.iter_mut().map(|client| |endpoint: &mut _, now| client.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    if outcome.is_err() {
        clients.iter_mut().for_each(Client::break_off);
    }
    session.end();
    *document = Client::together(clients).report(&name, &session.device_info());
    outcome
}

/// The connections of one thread. The first thread reports for all.
pub(super) struct Client<'a> {
    plan: Plan,
    peer: Peer,
    board: &'a Board,
    thread: usize,
    counted_at: Time,
    connections: HashMap<ConnectionId, Lane>,
    begun_at: Option<Time>,
    /// Of all threads at the start.
    base: Snapshot,
    cpu: Cpu,
    last: Snapshot,
    /// The last counters, at the time when payload last moved.
    moved: Snapshot,
    overhead: Overhead,
    over_at: Option<Time>,
    /// The final counters.
    closed: Option<Snapshot>,
    /// Why a connection ended before the server's figures.
    lost: Option<String>,
    pub(super) measured: Measured,
}

struct Lane {
    request: Request,
    asked: Option<MessageId>,
    has_ended: bool,
    is_open: bool,
    pump: Option<Pump>,
    pinged_at: Time,
    pings: u32,
    /// Whether the server's figures have come, or will not come.
    is_done: bool,
}

/// In picoseconds.
const COUNT_PS: u64 = 2_000_000_000;
/// After the last data.
const FIGURES_PS: u64 = 5 * PS_PER_S;

impl<'a> Client<'a> {
    pub(super) fn all(plan: Plan, peer: Peer, board: &'a Board) -> Vec<Self> {
        (0..board.threads()).map(|thread| Self::new(plan, peer, board, thread)).collect()
    }

    pub(super) fn together(all: Vec<Self>) -> Measured {
        all.into_iter()
            .map(|client| client.measured)
            .reduce(|first, other| first.plus(&other))
            .expect("a board has a thread at least")
    }

    fn new(plan: Plan, peer: Peer, board: &'a Board, thread: usize) -> Self {
        Self {
            plan,
            peer,
            board,
            thread,
            counted_at: Time::ZERO,
            connections: HashMap::new(),
            begun_at: None,
            base: Snapshot::default(),
            cpu: Cpu::default(),
            last: Snapshot::default(),
            moved: Snapshot::default(),
            overhead: Overhead::default(),
            over_at: None,
            closed: None,
            lost: None,
            measured: Measured::new(plan),
        }
    }

    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        if self.begun_at.is_none() {
            self.connect(endpoint, now)?;
        }
        while let Some(event) = endpoint.poll_event() {
            self.on_event(event, endpoint, now)?;
        }
        if self.begun_at.is_none() && self.are_open() && self.board.are_all(&self.board.ready) {
            self.begin(endpoint, now)?;
        }
        let Some(begun_at) = self.begun_at else { return Ok(()) };
        self.count(endpoint, now);
        if let Some(over_at) = self.over_at {
            return self.await_figures(endpoint, over_at, now);
        }
        for (connection, lane) in &mut self.connections {
            if let Some(pump) = &mut lane.pump {
                pump.fill(endpoint, *connection, now);
            }
        }
        let is_over = now >= begun_at.after(self.plan.time_ps);
        let first = self.thread == 0;
        if first {
            self.record_in_time(endpoint, now);
        }
        if if first { is_over } else { self.board.over.load(Ordering::Relaxed) } {
            self.stop(now);
        }
        Ok(())
    }

    fn connect<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Outcome {
        let threads = self.board.threads();
        while self.connections.len() < self.plan.connections().saturating_sub(self.thread).div_ceil(threads) {
            let request = self.plan.request(self.thread + self.connections.len() * threads);
            let connection = endpoint.connect(now, self.peer, None).map_err(Failure::failed)?;
            let lane = Lane {
                request,
                asked: None,
                has_ended: false,
                is_open: false,
                pump: None,
                pinged_at: now,
                pings: 0,
                is_done: false,
            };
            self.connections.insert(connection, lane);
        }
        Ok(())
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) -> Outcome {
        let (is_over, server) = (self.over_at.is_some(), self.peer.address);
        let hint = match event {
            EndpointEvent::Failed { error: ConnectionError::Aborted, .. } => {
                ": it was stopped, or all its places are taken and this connection had to give way"
            }
            _ if self.begun_at.is_none() => ": does `spray serve` run there?",
            _ => "",
        };
        let (connection, why) = match event {
            EndpointEvent::Connected { connection, .. } => {
                self.connections.get_mut(&connection).into_iter().for_each(|lane| lane.is_open = true);
                if self.are_open() {
                    self.board.put(self.thread, self.snapshot(endpoint, now));
                    self.board.ready.fetch_add(1, Ordering::Release);
                }
                return Ok(());
            }
            EndpointEvent::Received { connection, data, .. } => {
                return self.on_message(&data, endpoint, connection, now);
            }
            EndpointEvent::Delivered { connection, message, .. } => {
                self.on_delivered(connection, message);
                return Ok(());
            }
            EndpointEvent::Failed { connection, error, .. } => (connection, format!("{server}: {error}{hint}")),
            EndpointEvent::Closed { connection, .. } => (connection, format!("{server} has closed the connection")),
            _ => return Ok(()),
        };
        match self.connections.get_mut(&connection) {
            Some(lane) if is_over && lane.is_done => {}
            Some(lane) if is_over => {
                lane.is_done = true;
                self.lost.get_or_insert(why);
            }
            Some(_) => return Err(Failure::failed(why)),
            None => {}
        }
        Ok(())
    }

    fn on_delivered(&mut self, connection: ConnectionId, message: MessageId) {
        let Some(lane) = self.connections.get_mut(&connection) else { return };
        if lane.has_ended {
            self.overhead.acked += Message::End.encode().len() as u64;
        } else if lane.asked == Some(message) {
            self.overhead.acked += Message::Request(lane.request).encode().len() as u64;
        } else {
            lane.pump.iter_mut().for_each(Pump::on_delivered);
            lane.pings = lane.pings.saturating_sub(1);
        }
    }

    fn on_message<D: Device>(
        &mut self,
        message: &Bytes,
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
        now: Time,
    ) -> Outcome {
        let Some(lane) = self.connections.get_mut(&connection) else { return Ok(()) };
        match Message::decode(message) {
            Some(Message::Figures(figures)) if self.over_at.is_some() && !lane.is_done => {
                lane.is_done = true;
                self.overhead.received += message.len() as u64;
                self.measured.add(figures);
            }
            Some(Message::Ping) if self.over_at.is_none() && lane.request.what == What::Latency => {
                self.measured.round_trips.saturating_record(now.since(lane.pinged_at) / 1000);
                (lane.pinged_at, lane.pings) = (now, lane.pings + 1);
                endpoint.send(connection, ping(lane.request.bytes)).map_err(Failure::failed)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn are_open(&self) -> bool {
        self.connections.values().all(|lane| lane.is_open)
    }

    fn count<D: Device>(&mut self, endpoint: &Endpoint<D>, now: Time) {
        if now < self.counted_at.after(COUNT_PS) || self.closed.is_some() {
            return;
        }
        self.counted_at = now;
        let snapshot = self.snapshot(endpoint, now);
        let moved_at = if snapshot.bytes() > self.moved.bytes() { now } else { self.moved.at };
        self.moved = snapshot.seen_at(moved_at);
        if self.thread > 0 {
            self.board.put(self.thread, self.moved);
        }
    }

    fn snapshot<D: Device>(&self, endpoint: &Endpoint<D>, now: Time) -> Snapshot {
        let connections: Vec<ConnectionId> = self.connections.keys().copied().collect();
        Snapshot::new(endpoint, &connections, self.overhead, now)
    }

    fn begin<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Outcome {
        self.moved = self.snapshot(endpoint, now);
        self.base = self.board.sum(self.moved);
        (self.begun_at, self.last, self.cpu) = (Some(now), self.base, Cpu::now());
        for (connection, lane) in &mut self.connections {
            let request = lane.request;
            let message = Message::Request(request).encode();
            lane.asked = Some(endpoint.send(*connection, message).map_err(Failure::failed)?);
            match request.what {
                What::Up | What::Both => {
                    lane.pump = Some(Pump::new(&request, now, self.plan.time_ps));
                }
                What::Latency => {
                    (lane.pinged_at, lane.pings) = (now, 1);
                    endpoint.send(*connection, ping(request.bytes)).map_err(Failure::failed)?;
                }
                What::Down => {}
            }
        }
        if self.plan.ways() != What::Latency && self.thread == 0 {
            say!("{HEAD}");
        }
        Ok(())
    }

    fn record_in_time<D: Device>(&mut self, endpoint: &Endpoint<D>, now: Time) {
        if now >= self.last.at.after(self.plan.interval_ps) {
            self.record(self.board.sum(self.snapshot(endpoint, now)));
        }
    }

    fn record(&mut self, snapshot: Snapshot) {
        self.measured.take(&Interval::between(self.plan.ways(), self.base.at, &self.last, &snapshot));
        self.last = snapshot;
    }

    fn stop(&mut self, now: Time) {
        self.over_at = Some(now);
        self.board.over.store(true, Ordering::Relaxed);
        self.connections.values_mut().filter_map(|lane| lane.pump.as_mut()).for_each(Pump::stop);
    }

    fn ask<D: Device>(&mut self, endpoint: &mut Endpoint<D>) {
        let is_drained = |lane: &Lane| lane.pings == 0 && lane.pump.as_ref().is_none_or(Pump::is_drained);
        for (connection, lane) in self.connections.iter_mut().filter(|(_, lane)| !lane.has_ended && is_drained(lane)) {
            lane.has_ended = true;
            if let Err(error) = endpoint.send(*connection, Message::End.encode()) {
                lane.is_done = true;
                self.lost.get_or_insert(format!("{}: {error}", self.peer.address));
            }
        }
    }

    fn await_figures<D: Device>(&mut self, endpoint: &mut Endpoint<D>, over_at: Time, now: Time) -> Step {
        self.ask(endpoint);
        let is_late = now >= over_at.max(self.moved.at).after(FIGURES_PS);
        let is_done = is_late || self.connections.values().all(|lane| lane.is_done);
        let has_gone = self.plan.ways() == What::Up && self.connections.values().all(|lane| lane.has_ended);
        if self.closed.is_none() && (has_gone || is_done) {
            self.closed = Some(self.snapshot(endpoint, now));
        }
        if let Some(closed) = self.closed {
            self.board.put(self.thread, closed);
        } else if self.thread == 0 {
            self.record_in_time(endpoint, now);
        }
        if let (true, Some(why)) = (is_done, self.missing(is_late)) {
            return Err(Failure::failed(why).into());
        }
        if !self.connections.is_empty() && is_done {
            self.connections.keys().for_each(|connection| endpoint.abort(*connection));
            self.connections.clear();
            self.board.done.fetch_add(1, Ordering::Release);
        }
        match self.closed {
            Some(closed) if self.thread == 0 && self.board.are_all(&self.board.done) => {
                self.total(self.board.sum(closed));
                Err(End(Ok(())))
            }
            _ => Ok(()),
        }
    }

    fn missing(&self, is_late: bool) -> Option<String> {
        let server = self.peer.address;
        let silent = || format!("{server} sent no figures of what arrived within {} s", FIGURES_PS / PS_PER_S);
        let waits = self.connections.values().any(|lane| !lane.is_done);
        self.lost.clone().or_else(|| (is_late && waits).then(silent))
    }

    pub(super) fn break_off(&mut self) {
        if self.begun_at.is_some() && self.thread == 0 {
            self.total(self.board.sum(self.moved));
        }
    }

    fn total(&mut self, snapshot: Snapshot) {
        if snapshot.at > self.last.at {
            self.record(snapshot);
        }
        self.measured.total = Interval::between(self.plan.ways(), self.base.at, &self.base, &snapshot);
        let elapsed_us = snapshot.at.since(self.base.at) / 1_000_000;
        self.measured.cpu = Cpu::now().since(self.cpu).percent(elapsed_us);
    }
}
