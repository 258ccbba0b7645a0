//! `spray perf`: asks a `spray serve` to measure with it, and says what comes out.

use std::collections::HashMap;

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, EndpointEvent, Peer, Time};

use super::adjust;
use super::board::Board;
use super::format::{Message, Request, What, data, ping};
use super::interval::{HEAD, Interval, Look};
use super::pump::Pump;
use crate::args;
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};
use crate::say;
use crate::session::{End, PS_PER_S, PathOptions, Session, Step, Taken};
use crate::stop::Stop;

/// How much longer than asked for the server may send: its clock begins later.
const SPARE_S: u32 = 5;

/// Measures, prints intervals while it does, and a sum at the end.
///
/// # Errors
/// 2 when it could not start, 1 when a connection failed, 130 after Ctrl-C.
pub fn perf(arguments: &args::Perf) -> Outcome {
    let path = PathOptions { next_hop: arguments.peer_mac, ..PathOptions::new(&arguments.overrides)? };
    path.check()?;
    let (server, most) = (Some(arguments.server), arguments.parallel as usize);
    let mut session = Session::open_shards(&arguments.interface, server, &path, most, adjust)?;
    let peer = session.peer(arguments.server)?;
    let stop = Stop::on_signals()?;
    session.confine(&Reach::Read { named: Vec::new(), files: Vec::new() })?;
    let board = Board::new(session.shards());
    let mut clients = Client::all(Plan::new(arguments), peer, &board);
    let steps = clients.iter_mut().map(|client| |endpoint: &mut _, now| client.step(endpoint, now));
    let outcome = session.run_all(&stop, steps.collect());
    session.end();
    outcome?;
    Client::together(clients).report(&arguments.server.to_string(), &session.taken())
}

/// Longest round trip that is told from longer ones: an hour, beyond which the connection has failed.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What is to be measured.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub request: Request,
    /// Connections.
    pub parallel: u32,
    pub time_ps: u64,
    pub interval_ps: u64,
}

impl Plan {
    fn new(arguments: &args::Perf) -> Self {
        let what = match arguments {
            args::Perf { latency: true, .. } => What::Latency,
            args::Perf { bidirectional: true, .. } => What::Both,
            args::Perf { reverse: true, .. } => What::Down,
            _ => What::Up,
        };
        let bytes = arguments.bytes.unwrap_or(if what == What::Latency { 64 } else { 1 << 20 });
        Self {
            request: Request { what, bytes, seconds: arguments.time + SPARE_S },
            parallel: arguments.parallel,
            time_ps: u64::from(arguments.time) * PS_PER_S,
            interval_ps: (arguments.interval * PS_PER_S as f64) as u64,
        }
    }
}

/// One thread's part of the connections. The first one says what comes of all.
pub(super) struct Client<'a> {
    plan: Plan,
    peer: Peer,
    board: &'a Board,
    thread: usize,
    /// How many connections it opens.
    share: usize,
    /// When it has looked last what its connections have counted.
    counted_at: Time,
    connections: HashMap<ConnectionId, Lane>,
    /// When the last connection was open, with what was counted then.
    begun: Option<Look>,
    last: Look,
    intervals: Vec<Interval>,
    total: Vec<Interval>,
    /// Round trips of messages, in ns.
    round_trips: Histogram<u64>,
}

/// One connection.
#[derive(Default)]
struct Lane {
    is_open: bool,
    pump: Option<Pump>,
    /// When the ping that is under way went.
    pinged_at: Time,
}

/// How often a thread puts up what it has counted.
const COUNT_PS: u64 = 2_000_000_000;

impl<'a> Client<'a> {
    /// One for each thread of the board.
    pub(super) fn all(plan: Plan, peer: Peer, board: &'a Board) -> Vec<Self> {
        (0..board.threads()).map(|thread| Self::new(plan, peer, board, thread)).collect()
    }

    /// The first one, with the round trips that all have measured.
    fn together(all: Vec<Self>) -> Self {
        all.into_iter()
            .reduce(|mut first, other| {
                // They have the same bounds.
                let _ = first.round_trips.add(&other.round_trips);
                first
            })
            .expect("a board has a thread at least")
    }

    fn new(plan: Plan, peer: Peer, board: &'a Board, thread: usize) -> Self {
        let (parallel, threads) = (plan.parallel as usize, board.threads());
        Self {
            plan,
            peer,
            board,
            thread,
            share: parallel / threads + usize::from(thread < parallel % threads),
            counted_at: Time::ZERO,
            connections: HashMap::new(),
            begun: None,
            last: Look::default(),
            intervals: Vec::new(),
            total: Vec::new(),
            round_trips: Histogram::new_with_max(LONGEST_NS, 3).expect("the range holds values of three digits"),
        }
    }

    /// Does what the last poll of the endpoint has made possible.
    pub(super) fn step<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Step {
        while self.connections.len() < self.share {
            let connection = endpoint.connect(now, self.peer, None).map_err(Failure::failed)?;
            self.connections.insert(connection, Lane::default());
        }
        while let Some(event) = endpoint.poll_event() {
            self.on_event(event, endpoint, now)?;
        }
        if self.begun.is_none() && self.are_open() && self.board.are_ready() {
            self.begin(endpoint, now)?;
        }
        let Some(begun) = self.begun else { return Ok(()) };
        for (connection, lane) in &mut self.connections {
            if let Some(pump) = &mut lane.pump {
                pump.fill(endpoint, *connection, now);
            }
        }
        if self.thread > 0 {
            self.count(endpoint, now);
            return Ok(());
        }
        let is_over = now >= begun.at().after(self.plan.time_ps);
        if is_over || now >= self.last.at().after(self.plan.interval_ps) {
            self.look(endpoint, &begun, is_over, now);
        }
        if is_over { Err(End(Ok(()))) } else { Ok(()) }
    }

    fn on_event<D: Device>(&mut self, event: EndpointEvent, endpoint: &mut Endpoint<D>, now: Time) -> Outcome {
        match event {
            EndpointEvent::Connected { connection, .. } => {
                endpoint.send(connection, self.plan.request.encode()).map_err(Failure::failed)?;
                self.connections.entry(connection).or_default().is_open = true;
                if self.are_open() {
                    self.board.say_ready();
                }
            }
            EndpointEvent::Received { connection, data, .. }
                if Message::decode(&data) == Some(Message::Ping) && self.plan.request.what == What::Latency =>
            {
                self.on_answer(endpoint, connection, now)?;
            }
            EndpointEvent::Delivered { connection, .. } => {
                let pump = self.connections.get_mut(&connection).and_then(|lane| lane.pump.as_mut());
                pump.into_iter().for_each(Pump::on_delivered);
            }
            EndpointEvent::Failed { error, .. } => {
                let server = self.peer.address;
                let hint = if self.begun.is_none() { ": does `spray serve` run there?" } else { "" };
                return Err(Failure::failed(format!("{server}: {error}{hint}")));
            }
            EndpointEvent::Closed { .. } => {
                return Err(Failure::failed(format!("{} has closed the connection", self.peer.address)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether all connections of this thread are open.
    fn are_open(&self) -> bool {
        self.connections.values().all(|lane| lane.is_open)
    }

    /// Puts up what a thread has counted, if it is time.
    fn count<D: Device>(&mut self, endpoint: &Endpoint<D>, now: Time) {
        if now >= self.counted_at.after(COUNT_PS) {
            self.counted_at = now;
            self.board.put(self.thread, self.sight(endpoint, now));
        }
    }

    /// What this thread's connections have counted.
    fn sight<D: Device>(&self, endpoint: &Endpoint<D>, now: Time) -> Look {
        let connections: Vec<ConnectionId> = self.connections.keys().copied().collect();
        Look::new(endpoint, &connections, now)
    }

    /// All connections are open: the time begins.
    fn begin<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) -> Outcome {
        let Request { what, bytes, .. } = self.plan.request;
        self.last = self.board.sum(self.sight(endpoint, now));
        self.begun = Some(self.last);
        for (connection, lane) in &mut self.connections {
            match what {
                What::Up | What::Both => lane.pump = Some(Pump::new(data(bytes), now.after(self.plan.time_ps))),
                What::Latency => {
                    lane.pinged_at = now;
                    endpoint.send(*connection, ping(bytes)).map_err(Failure::failed)?;
                }
                What::Down => {}
            }
        }
        if what != What::Latency && self.thread == 0 {
            say!("{HEAD}");
        }
        Ok(())
    }

    /// A ping is back: the next one goes.
    fn on_answer<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, now: Time) -> Outcome {
        let Some(lane) = self.connections.get_mut(&connection) else { return Ok(()) };
        self.round_trips.saturating_record(now.since(lane.pinged_at) / 1000);
        lane.pinged_at = now;
        endpoint.send(connection, ping(self.plan.request.bytes)).map(drop).map_err(Failure::failed)
    }

    fn look<D: Device>(&mut self, endpoint: &Endpoint<D>, begun: &Look, is_over: bool, now: Time) {
        let look = self.board.sum(self.sight(endpoint, now));
        let intervals = Interval::between(self.plan.request.what, begun.at(), &self.last, &look);
        intervals.iter().for_each(|interval| say!("{}", interval.line()));
        self.intervals.extend(intervals);
        if is_over {
            self.total = Interval::between(self.plan.request.what, begun.at(), begun, &look);
        }
        self.last = look;
    }

    fn report(&self, server: &str, taken: &Taken) -> Outcome {
        if self.plan.request.what == What::Latency {
            let us = self.latency();
            say!(
                "{} round trips of {} bytes: p50 {:.1} us, p90 {:.1}, p99 {:.1}, largest {:.1}",
                us["count"],
                self.plan.request.bytes,
                us["p50"],
                us["p90"],
                us["p99"],
                us["max"]
            );
        } else {
            say!("in all");
            self.total.iter().for_each(|total| say!("{}", total.line()));
        }
        let mut object = self.json(server);
        object["interface"] = json!(taken);
        say::object(&object)
    }

    pub(super) fn json(&self, server: &str) -> Value {
        json!({
            "server": server,
            "connections": self.plan.parallel,
            "message_bytes": self.plan.request.bytes,
            "seconds": self.plan.time_ps as f64 / PS_PER_S as f64,
            "intervals": self.intervals,
            "total": self.total,
            "latency_us": if self.plan.request.what == What::Latency { self.latency() } else { Value::Null },
        })
    }

    fn latency(&self) -> Value {
        let us = |quantile: f64| self.round_trips.value_at_quantile(quantile) as f64 / 1e3;
        let (least, most) = (self.round_trips.min() as f64 / 1e3, self.round_trips.max() as f64 / 1e3);
        json!({ "count": self.round_trips.len(), "min": least, "p50": us(0.5), "p90": us(0.9), "p99": us(0.99), "max": most })
    }
}
