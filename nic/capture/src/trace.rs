//! The life of chosen flows' packets, from what is seen of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use spray_core::event::Event;
use spray_core::feedback::LossCause;
use spray_wire::{Ack, BITMAP_BITS, Body, Common, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Data, Envelope, Nack, Time};

use super::Sighting;

/// Follows the packets of chosen flows.
#[derive(Debug)]
pub struct Tracer {
    /// By interface where it is.
    places: Vec<Place>,
    /// By the first flow of a connection.
    connections: HashMap<usize, Connection>,
    /// By address of a host and number there the first flow of a connection.
    numbers: HashMap<(IpAddr, u32), usize>,
    rows: Vec<Row>,
    /// Rows beyond [`MOST_ROWS`].
    left_out: u64,
}

/// Most rows: of some gigabyte.
const MOST_ROWS: usize = 5_000_000;

/// What a tracer has found: its rows, and how many it has left out.
pub type Rows = (Vec<Row>, u64);

/// Something in the life of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When, in ps of scenario time.
    pub at_ps: i64,
    /// Its flow.
    pub flow: usize,
    /// Its sequence number.
    pub packet: u64,
    /// Which transmission of it, from 1; of what concerns no single one how many there were by then.
    pub attempt: u32,
    /// The entropy value of that transmission.
    pub ev: Option<u16>,
    /// What happened.
    pub event: Life,
    /// At which host or port.
    pub place: String,
    /// Bytes that waited at the port when the packet came there.
    pub queue_bytes: Option<u64>,
    /// Why, or how it was.
    pub detail: String,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Its sender learns that it did not arrive whole.
    Nacked,
    /// Its timer runs out.
    Timeout,
    /// It was lost, and is about to be sent again.
    Retransmit,
    /// Its sender sends it.
    Sent,
    /// It joins the queue of a port.
    Queued,
    /// A port marks it.
    Marked,
    /// A port cuts it to its header.
    Trimmed,
    /// It is lost.
    Dropped,
    /// It is at its receiver.
    Received,
    /// It came there after one with a higher sequence number; retransmissions do not count.
    Reordered,
    /// It had come there before.
    Duplicate,
    /// Its sender learns that it arrived.
    Acked,
}

impl Life {
    /// All of them, in the order in which those of one moment stand.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::Nacked, "nacked"),
        (Self::Timeout, "timeout"),
        (Self::Retransmit, "retransmit"),
        (Self::Sent, "sent"),
        (Self::Queued, "queued"),
        (Self::Marked, "marked"),
        (Self::Trimmed, "trimmed"),
        (Self::Dropped, "dropped"),
        (Self::Received, "received"),
        (Self::Reordered, "reordered"),
        (Self::Duplicate, "duplicate"),
        (Self::Acked, "acked"),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// An interface.
#[derive(Clone, Debug)]
pub struct Place {
    /// The host or switch that has it.
    pub node: String,
    /// The port: the link that leaves there.
    pub port: String,
    /// It is a host's.
    pub of_host: bool,
}

/// A connection with chosen flows.
#[derive(Clone, Debug, Default)]
struct Connection {
    /// Its flows by the numbers of its messages, and whether each was chosen.
    flows: Vec<(usize, bool)>,
    evs: u32,
    packets: BTreeMap<u64, Packet>,
    /// One more than the highest packet that has come the first time.
    next: u64,
    /// Packets below it are acknowledged.
    cumulative: u64,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
struct Packet {
    flow: usize,
    chosen: bool,
    /// When each transmission was sent.
    sent_at: Vec<Time>,
    arrived: bool,
    acked: bool,
}

impl Tracer {
    /// A tracer where the interfaces are at these places.
    pub fn new(places: Vec<Place>) -> Self {
        Self { places, connections: HashMap::new(), numbers: HashMap::new(), rows: Vec::new(), left_out: 0 }
    }

    /// Follows a connection with `evs` entropy values. Its flows come by the numbers of its messages, with whether they are chosen; it
    /// goes by the first one.
    pub fn follow(&mut self, flows: Vec<(usize, bool)>, evs: u32) {
        if let Some((first, _)) = flows.first() {
            self.connections.insert(*first, Connection { flows, evs, ..Connection::default() });
        }
    }

    /// Whether the connection that begins with flow `first` is followed.
    pub fn follows(&self, first: usize) -> bool {
        self.connections.contains_key(&first)
    }

    /// Frames to `host` with this number of a connection are of the one that begins with flow `first`.
    pub fn know(&mut self, host: IpAddr, number: u32, first: usize) {
        if self.follows(first) {
            self.numbers.insert((host, number), first);
        }
    }

    /// Takes a sighting.
    pub(crate) fn see(&mut self, sighting: &Sighting) {
        if let Some((envelope, common, body)) = sighting.content.said() {
            self.frame(sighting, envelope, common, body);
        }
    }

    fn frame(&mut self, sighting: &Sighting, envelope: &Envelope, common: &Common, body: &Body) {
        if self.rows.len() > MOST_ROWS {
            self.left_out += (self.rows.len() - MOST_ROWS) as u64;
            self.rows.truncate(MOST_ROWS);
        }
        let Some(first) = self.numbers.get(&(envelope.dst, common.connection)).copied() else { return };
        let arrives = !sighting.outbound && self.places[sighting.interface as usize].of_host;
        match body {
            // The server says here which number it has given the connection.
            Body::Accept(terms) => self.know(envelope.src, terms.connection, first),
            Body::Data(data) if !data.trailer => self.data(sighting, envelope, data, first),
            Body::Ack(ack) if arrives => self.ack(sighting, ack, first),
            Body::Nack(nack) if arrives => self.nack(sighting, nack, first),
            _ => {}
        }
    }

    fn data(&mut self, sighting: &Sighting, envelope: &Envelope, data: &Data, first: usize) {
        let place = &self.places[sighting.interface as usize];
        let sends = sighting.outbound && place.of_host;
        let Some(connection) = self.connections.get_mut(&first) else { return };
        let evs = connection.evs;
        if sends {
            connection.send(data);
        }
        let Some(packet) = connection.packets.get_mut(&data.psn).filter(|packet| packet.chosen) else { return };
        let (arrives, port) = match sighting.outbound {
            true => (false, &place.port),
            // It has come by the link the other way.
            false => (place.of_host, &self.places[sighting.interface as usize ^ 1].port),
        };
        let row = Row {
            at_ps: sighting.at_ps,
            flow: packet.flow,
            packet: data.psn,
            attempt: packet.attempt(data.timestamp),
            ev: envelope.src_port.ev(evs).map(spray_wire::Ev::index),
            event: Life::Sent,
            place: port.clone(),
            queue_bytes: sighting.waiting_bytes,
            detail: String::new(),
        };
        let fate = sighting.fate;
        let at = |event: Life, detail: &str| Row { event, detail: detail.into(), ..row.clone() };
        if sends {
            self.rows.push(Row { place: place.node.clone(), queue_bytes: None, ..row.clone() });
        } else if sighting.outbound && fate.dropped.is_none() {
            self.rows.push(at(Life::Queued, ""));
        }
        self.rows.extend(fate.marked.then(|| at(Life::Marked, "")));
        self.rows.extend(fate.trimmed.then(|| at(Life::Trimmed, "queue full")));
        self.rows.extend(fate.dropped.map(|cause| at(Life::Dropped, cause)));
        if !arrives {
            return;
        }
        let is_cut = matches!(envelope.dscp, DSCP_TRIMMED | DSCP_TRIMMED_LAST);
        let how = [(envelope.marked(), "marked"), (is_cut, "trimmed")];
        let how: Vec<&str> = how.into_iter().filter_map(|(is, what)| is.then_some(what)).collect();
        let at = |event: Life, detail: &str| Row { place: place.node.clone(), queue_bytes: None, ..at(event, detail) };
        self.rows.push(at(Life::Received, &how.join(" ")));
        if is_cut {
            return;
        }
        if std::mem::replace(&mut packet.arrived, true) {
            self.rows.push(at(Life::Duplicate, ""));
        } else if data.psn < connection.next && !data.retransmit {
            self.rows.push(at(Life::Reordered, ""));
        }
        if !data.retransmit {
            connection.next = connection.next.max(data.psn + 1);
        }
    }

    fn ack(&mut self, sighting: &Sighting, ack: &Ack, first: usize) {
        let Some(connection) = self.connections.get_mut(&first) else { return };
        let place = &self.places[sighting.interface as usize].node;
        let below = connection.cumulative..ack.cumulative.max(connection.cumulative);
        let selected =
            (ack.sack_base..ack.sack_base.saturating_add(BITMAP_BITS.into())).filter(|psn| ack.selected(*psn));
        let first_open = below.start;
        for psn in below.chain(selected.filter(|psn| *psn >= first_open)) {
            let Some(packet) = connection.packets.get_mut(&psn) else { continue };
            if !std::mem::replace(&mut packet.acked, true) && packet.chosen {
                self.rows.push(packet.row(sighting.at_ps, psn, Life::Acked, place, ""));
            }
        }
        connection.cumulative = connection.cumulative.max(ack.cumulative);
        // Copies of them may still be under way, and say so themselves.
    }

    fn nack(&mut self, sighting: &Sighting, nack: &Nack, first: usize) {
        let Some(connection) = self.connections.get(&first) else { return };
        let why = match nack {
            Nack { missing: true, .. } => "missing",
            Nack { go_back: true, .. } => "go back",
            _ => "trimmed",
        };
        if let Some(packet) = connection.packets.get(&nack.psn).filter(|packet| packet.chosen) {
            let place = &self.places[sighting.interface as usize].node;
            self.rows.push(packet.row(sighting.at_ps, nack.psn, Life::Nacked, place, why));
        }
    }

    /// Takes what a sender's algorithm reported.
    pub(crate) fn report(&mut self, at_ps: i64, first: usize, event: &Event) {
        let (psn, life, why) = match *event {
            Event::Timeout { psn } => (psn, Life::Timeout, ""),
            Event::Retransmit { psn, cause } => (psn, Life::Retransmit, name(cause)),
            _ => return,
        };
        let packet = self.connections.get(&first).and_then(|connection| connection.packets.get(&psn));
        if let Some(packet) = packet.filter(|packet| packet.chosen) {
            self.rows.push(packet.row(at_ps, psn, life, "", why));
        }
    }

    /// All rows, by time, and how many were left out.
    pub(crate) fn finish(mut self) -> Rows {
        self.rows.sort_by_key(|row| (row.at_ps, row.event as u8));
        // What concerns no single transmission is of all that went before it, at their sender.
        let mut sent: HashMap<(usize, u64), (u32, String)> = HashMap::new();
        for row in &mut self.rows {
            let packet = (row.flow, row.packet);
            match row.event {
                Life::Sent => drop(sent.insert(packet, (row.attempt, row.place.clone()))),
                Life::Timeout | Life::Retransmit | Life::Nacked | Life::Acked => {
                    let (attempt, place) = sent.get(&packet).cloned().unwrap_or_default();
                    row.attempt = attempt;
                    if row.place.is_empty() {
                        row.place = place;
                    }
                }
                _ => {}
            }
        }
        (self.rows, self.left_out)
    }
}

impl Connection {
    fn send(&mut self, data: &Data) {
        let last = self.flows.len().saturating_sub(1);
        let (flow, chosen) = self.flows[(data.message as usize).min(last)];
        let new = Packet { flow, chosen, sent_at: Vec::new(), arrived: false, acked: false };
        self.packets.entry(data.psn).or_insert(new).sent_at.push(data.timestamp);
    }
}

impl Packet {
    /// Which transmission had this time.
    fn attempt(&self, sent_at: Time) -> u32 {
        self.sent_at.iter().rposition(|at| *at == sent_at).map_or(0, |place| place as u32 + 1)
    }

    fn row(&self, at_ps: i64, packet: u64, event: Life, place: &str, detail: &str) -> Row {
        Row {
            at_ps,
            flow: self.flow,
            packet,
            attempt: 0,
            ev: None,
            event,
            place: place.into(),
            queue_bytes: None,
            detail: detail.into(),
        }
    }
}

const fn name(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Timeout => "timeout",
        LossCause::SackGap => "gap in acknowledgements",
        LossCause::Trimmed => "trimmed",
        LossCause::TrimmedLast => "trimmed by the last port",
        LossCause::Missing => "missing",
        LossCause::GoneBack => "gone back",
    }
}
