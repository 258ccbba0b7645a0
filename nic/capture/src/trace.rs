//! The life of chosen flows' packets, reconstructed from records.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use spray_core::event::Event;
use spray_core::feedback::LossCause;
use spray_wire::{Ack, BITMAP_BITS, Body, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Data, Envelope, Nack, Time};

use super::FrameRecord;

/// Follows the packets of chosen flows.
#[derive(Debug)]
pub struct Tracer {
    /// By index of the interface.
    places: Vec<TapPoint>,
    /// By first flow of the connection.
    connections: HashMap<usize, Connection>,
    /// First flow of the connection by host address and the connection number there.
    numbers: HashMap<(IpAddr, u32), usize>,
    rows: Vec<Row>,
    /// Rows beyond [`MAX_ROWS`].
    left_out: u64,
}

/// Limit of rows: some gigabyte.
const MAX_ROWS: usize = 5_000_000;

/// The rows of a tracer, and the number of rows left out.
pub type Rows = (Vec<Row>, u64);

/// An event in the life of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Time, in ps of scenario time.
    pub at_ps: i64,
    /// Flow.
    pub flow: usize,
    /// Packet sequence number.
    pub packet: u64,
    /// Transmission, from 1; of events of no single one the number of transmissions until then.
    pub attempt: u32,
    /// Entropy value of that transmission.
    pub ev: Option<u16>,
    /// What happened.
    pub event: PacketEvent,
    /// Host or port.
    pub place: String,
    /// Bytes queued at the port when the packet arrived there.
    pub queue_bytes: Option<u64>,
    /// Cause or circumstances.
    pub detail: String,
}

/// An event in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// The sender receives a Nack.
    Nacked,
    /// The retransmission timer expires.
    Timeout,
    /// The packet was declared lost and is scheduled for retransmission.
    Retransmit,
    /// The sender sends it.
    Sent,
    /// It is queued at a port.
    Queued,
    /// A port marks it.
    Marked,
    /// A port trims it.
    Trimmed,
    /// It is dropped.
    Dropped,
    /// It arrives at the receiver.
    Received,
    /// It arrives after a higher sequence number; retransmissions do not count.
    Reordered,
    /// It arrives again.
    Duplicate,
    /// The sender receives its acknowledgement.
    Acked,
}

impl PacketEvent {
    /// Every event with its name, in the order within one moment.
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

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// An interface.
#[derive(Clone, Debug)]
pub struct TapPoint {
    /// Host or switch.
    pub node: String,
    /// Port: the outgoing link.
    pub port: String,
    /// Whether the node is a host.
    pub of_host: bool,
}

#[derive(Clone, Debug, Default)]
struct Connection {
    /// Flows by message number, and whether each was chosen.
    flows: Vec<(usize, bool)>,
    evs: u32,
    packets: BTreeMap<u64, Packet>,
    /// One more than the highest packet received, retransmissions excluded.
    next: u64,
    cumulative: u64,
}

#[derive(Clone, Debug)]
struct Packet {
    flow: usize,
    chosen: bool,
    sent_at: Vec<Time>,
    arrived: bool,
    acked: bool,
}

impl Tracer {
    /// Creates a tracer for interfaces at these places.
    pub fn new(places: Vec<TapPoint>) -> Self {
        Self { places, connections: HashMap::new(), numbers: HashMap::new(), rows: Vec::new(), left_out: 0 }
    }

    /// Follows a connection with `evs` entropy values and flows, by message number, and whether
    /// each is chosen. The first flow identifies the connection.
    pub fn follow(&mut self, flows: Vec<(usize, bool)>, evs: u32) {
        if let Some((first, _)) = flows.first() {
            self.connections.insert(*first, Connection { flows, evs, ..Connection::default() });
        }
    }

    /// Returns whether the connection of flow `first` is followed.
    pub fn follows(&self, first: usize) -> bool {
        self.connections.contains_key(&first)
    }

    /// Maps a connection number at `host` to the connection of flow `first`.
    pub fn map_number(&mut self, host: IpAddr, number: u32, first: usize) {
        if self.follows(first) {
            self.numbers.insert((host, number), first);
        }
    }

    pub(crate) fn on_record(&mut self, record: &FrameRecord) {
        let Some((envelope, common, body)) = record.content.headers() else { return };
        if self.rows.len() > MAX_ROWS {
            self.left_out += (self.rows.len() - MAX_ROWS) as u64;
            self.rows.truncate(MAX_ROWS);
        }
        let Some(first) = self.numbers.get(&(envelope.dst, common.connection)).copied() else { return };
        let arrives = !record.outbound && self.places[record.interface as usize].of_host;
        match body {
            // Announces the server's connection number.
            Body::Accept(terms) => self.map_number(envelope.src, terms.connection, first),
            Body::Data(data) if !data.trailer => self.data(record, envelope, data, first),
            Body::Ack(ack) if arrives => self.ack(record, ack, first),
            Body::Nack(nack) if arrives => self.nack(record, nack, first),
            _ => {}
        }
    }

    fn data(&mut self, record: &FrameRecord, envelope: &Envelope, data: &Data, first: usize) {
        let place = &self.places[record.interface as usize];
        let sends = record.outbound && place.of_host;
        let Some(connection) = self.connections.get_mut(&first) else { return };
        let evs = connection.evs;
        if sends {
            connection.send(data);
        }
        let Some(packet) = connection.packets.get_mut(&data.psn).filter(|packet| packet.chosen) else { return };
        let (arrives, port) = match record.outbound {
            true => (false, &place.port),
            // The link of the other direction.
            false => (place.of_host, &self.places[record.interface as usize ^ 1].port),
        };
        let row = Row {
            at_ps: record.at_ps,
            flow: packet.flow,
            packet: data.psn,
            attempt: packet.attempt(data.timestamp),
            ev: envelope.src_port.ev(evs).map(spray_wire::Ev::index),
            event: PacketEvent::Sent,
            place: port.clone(),
            queue_bytes: record.waiting_bytes,
            detail: String::new(),
        };
        let action = record.action;
        let at = |event: PacketEvent, detail: &str| Row { event, detail: detail.into(), ..row.clone() };
        if sends {
            self.rows.push(Row { place: place.node.clone(), queue_bytes: None, ..row.clone() });
        } else if record.outbound && action.dropped.is_none() {
            self.rows.push(at(PacketEvent::Queued, ""));
        }
        self.rows.extend(action.marked.then(|| at(PacketEvent::Marked, "")));
        self.rows.extend(action.trimmed.then(|| at(PacketEvent::Trimmed, "queue full")));
        self.rows.extend(action.dropped.map(|cause| at(PacketEvent::Dropped, cause)));
        if !arrives {
            return;
        }
        let is_cut = matches!(envelope.dscp, DSCP_TRIMMED | DSCP_TRIMMED_LAST);
        let how = [(envelope.marked(), "marked"), (is_cut, "trimmed")];
        let how: Vec<&str> = how.into_iter().filter_map(|(is, what)| is.then_some(what)).collect();
        let at = |event, detail: &str| Row { place: place.node.clone(), queue_bytes: None, ..at(event, detail) };
        self.rows.push(at(PacketEvent::Received, &how.join(" ")));
        if is_cut {
            return;
        }
        if std::mem::replace(&mut packet.arrived, true) {
            self.rows.push(at(PacketEvent::Duplicate, ""));
        } else if data.psn < connection.next && !data.retransmit {
            self.rows.push(at(PacketEvent::Reordered, ""));
        }
        if !data.retransmit {
            connection.next = connection.next.max(data.psn + 1);
        }
    }

    fn ack(&mut self, record: &FrameRecord, ack: &Ack, first: usize) {
        let Some(connection) = self.connections.get_mut(&first) else { return };
        let place = &self.places[record.interface as usize].node;
        let below = connection.cumulative..ack.cumulative.max(connection.cumulative);
        let selected =
            (ack.sack_base..ack.sack_base.saturating_add(BITMAP_BITS.into())).filter(|psn| ack.selected(*psn));
        let first_open = below.start;
        for psn in below.chain(selected.filter(|psn| *psn >= first_open)) {
            let Some(packet) = connection.packets.get_mut(&psn) else { continue };
            if !std::mem::replace(&mut packet.acked, true) && packet.chosen {
                self.rows.push(packet.row(record.at_ps, psn, PacketEvent::Acked, place, ""));
            }
        }
        connection.cumulative = connection.cumulative.max(ack.cumulative);
    }

    fn nack(&mut self, record: &FrameRecord, nack: &Nack, first: usize) {
        let Some(connection) = self.connections.get(&first) else { return };
        let why = match nack {
            Nack { missing: true, .. } => "missing",
            Nack { go_back: true, .. } => "go back",
            _ => "trimmed",
        };
        if let Some(packet) = connection.packets.get(&nack.psn).filter(|packet| packet.chosen) {
            let place = &self.places[record.interface as usize].node;
            self.rows.push(packet.row(record.at_ps, nack.psn, PacketEvent::Nacked, place, why));
        }
    }

    pub(crate) fn report(&mut self, at_ps: i64, first: usize, event: &Event) {
        let (psn, life, why) = match *event {
            Event::Timeout { psn } => (psn, PacketEvent::Timeout, ""),
            Event::Retransmit { psn, cause } => (psn, PacketEvent::Retransmit, name(cause)),
            _ => return,
        };
        let packet = self.connections.get(&first).and_then(|connection| connection.packets.get(&psn));
        if let Some(packet) = packet.filter(|packet| packet.chosen) {
            self.rows.push(packet.row(at_ps, psn, life, "", why));
        }
    }

    pub(crate) fn finish(mut self) -> Rows {
        self.rows.sort_by_key(|row| (row.at_ps, row.event as u8));
        // Events of no single transmission belong to all earlier ones, at the sender.
        let mut sent: HashMap<(usize, u64), (u32, String)> = HashMap::new();
        for row in &mut self.rows {
            let packet = (row.flow, row.packet);
            match row.event {
                PacketEvent::Sent => drop(sent.insert(packet, (row.attempt, row.place.clone()))),
                PacketEvent::Timeout | PacketEvent::Retransmit | PacketEvent::Nacked | PacketEvent::Acked => {
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
    /// Returns the number of the transmission at `sent_at`, from 1; 0 if unknown.
    fn attempt(&self, sent_at: Time) -> u32 {
        self.sent_at.iter().rposition(|at| *at == sent_at).map_or(0, |place| place as u32 + 1)
    }

    fn row(&self, at_ps: i64, packet: u64, event: PacketEvent, place: &str, detail: &str) -> Row {
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
        LossCause::GoBackN => "go-back-N",
    }
}
