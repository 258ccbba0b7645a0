//! The receiving half of a connection: what to place, to acknowledge and to grant. Packet path: R5.

mod acks;
#[cfg(any(test, feature = "lab"))]
mod erasure;
mod go_back_n;
mod order;
mod pending;
mod pull;
mod stats;

use alloc::collections::VecDeque;

use spray_wire::{Ack, Data, EvPort, Nack, Section};

use self::order::Order;
pub use self::order::{OrderStats, ReorderDegrees};
use self::pending::Pending;
pub use self::stats::ReceiverStats;
use super::config::FlowConfig;
use super::messages::{CompletedNumbers, HashKey, PayloadSlot, Placed, Reassembly};
use crate::Time;
use crate::loss::{Bits, Evidence, GapDetector, GoBackN, Received, ReceiverConfig, Repair};

/// A data frame as received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The header.
    pub data: Data,
    /// UDP source port: the entropy value to echo.
    pub port: EvPort,
    /// Whether it carried an ECN mark.
    pub marked: bool,
    /// Switches that it passed.
    pub hops: u8,
    /// Whether a switch removed its payload.
    pub trimmed: bool,
    /// Whether the last port of the path trimmed it, by its DSCP.
    pub last_port: bool,
    /// Whether it arrived on another shard's queue and was handed over.
    pub misrouted: bool,
}

/// What the receiver did with a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// First arrival. Copy the payload, if there is a `place`, to `offset` of its buffer.
    New {
        /// Where the payload goes.
        place: Option<PayloadSlot>,
    },
    /// It arrived before. An ACK is due.
    Duplicate,
    /// It lost its payload. A NACK is due.
    Trimmed,
    /// An earlier packet is missing in go-back-N. Drop it; a NACK may be due.
    OutOfOrder,
    /// Beyond the window, completed messages were not taken, or no memory. Drop it; an ACK is due.
    OutOfWindow,
    /// It contradicts itself, its message so far, or a limit. Drop it.
    Invalid,
    /// A trailer: no packet, but evidence of losses. NACKs may be due.
    Trailer,
}

/// The receiving half of one connection.
///
/// Call order: after *every* [`Receiver::on_data`], [`Receiver::poll_ack`], [`Receiver::poll_nack`]
/// and [`Receiver::message_completed`] until each returns `None`: several arrivals before a poll
/// would share one echo. [`Receiver::on_timeout`] when [`Receiver::poll_timeout`] is due. Tables
/// double when more messages are open than before, within a bound regardless of the peer. No input
/// panics.
///
/// Methods by file: here, data frames, NACKs and completed messages; in `receiver/`: `acks`,
/// `go_back` (`go-back-n`), `pull` (credit), `coded` (the ideal erasure code).
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Bits of numbers in `cumulative..highest`.
    received: Bits,
    cumulative: u64,
    /// One more than the highest number that has arrived.
    highest: u64,
    window_packets: u64,
    ack_every: u8,
    /// Packets that an ACK echoes in addition to the one that triggered it.
    ack_echoes: u8,
    ack_marked: bool,
    ack_delay_ps: u64,
    /// Whether a packet out of order is acknowledged at once.
    ack_gaps: bool,
    repair: Repair,
    go_back: GoBackN,
    reassembly: Reassembly,
    completed: VecDeque<(u32, u64)>,
    nacks: VecDeque<Nack>,
    /// NACKs of missing packets that may be queued now.
    nacks_left: u16,
    watch: GapDetector,
    pending: Pending,
    grant: Grant,
    pull: PullTarget,
    order: Order,
    stats: ReceiverStats,
}

/// Flow control, in payload bytes over the connection's life.
#[derive(Clone, Copy, Debug)]
struct Grant {
    window_bytes: u64,
    payload_bytes: u64,
    consumed: u64,
    advertised: u64,
}

/// Totals of credit in wire bytes since the connection began.
#[derive(Clone, Copy, Debug)]
struct PullTarget {
    demand: u64,
    /// Bytes of trimmed frames for which a NACK was queued.
    trimmed: u64,
    header_bytes: u64,
}

impl Receiver {
    /// Creates a receiver.
    pub fn new(config: &FlowConfig) -> Self {
        let config = config.clamped();
        let window_packets = config.window_packets;
        let go_back = match &config.receiver {
            ReceiverConfig::GoBackN(own) => Some(GoBackN::new(own)),
            ReceiverConfig::Selective | ReceiverConfig::Irn(_) => None,
        };
        Self {
            received: Bits::new(window_packets),
            cumulative: 0,
            highest: 0,
            window_packets: u64::from(window_packets),
            ack_every: config.ack_every as u8,
            ack_echoes: config.ack_evs.saturating_sub(1) as u8,
            ack_marked: config.ack_marked,
            ack_delay_ps: config.ack_delay_ps,
            ack_gaps: matches!(config.receiver, ReceiverConfig::Irn(_)),
            repair: if go_back.is_some() { Repair::GoBackN } else { Repair::Selective },
            go_back: go_back.unwrap_or_default(),
            reassembly: Reassembly::new(window_packets, config.payload_bytes, config.max_message_bytes),
            completed: VecDeque::new(),
            nacks: VecDeque::new(),
            nacks_left: NACKS_AT_ONCE,
            watch: GapDetector::new(window_packets),
            pending: Pending::default(),
            grant: Grant {
                window_bytes: config.max_data_bytes,
                payload_bytes: u64::from(config.payload_bytes),
                consumed: 0,
                advertised: config.max_data_bytes,
            },
            pull: PullTarget { demand: 0, trimmed: 0, header_bytes: config.header_bytes.into() },
            order: Order::default(),
            stats: ReceiverStats::default(),
        }
    }

    /// Sets the secret hash key of message numbers. Call it before the first frame.
    //= docs/specs/transport.md#TRN-62 numbers that collide
    pub fn set_hash_key(&mut self, key: HashKey) {
        self.reassembly.table.key = key;
    }

    /// Treats messages before `first` as complete. Call it before the first frame.
    pub fn expect_message(&mut self, first: u32) {
        self.reassembly.numbers = CompletedNumbers::starting_at(first);
    }

    /// Takes a data frame with valid checksums and cookie.
    #[inline]
    pub fn on_data(&mut self, now: Time, arrival: &Arrival) -> DataOutcome {
        //= docs/specs/ordered-chaos.md#ORC-23 three for each frame
        self.nacks_left = (self.nacks_left + NACKS_PER_FRAME).min(NACKS_AT_ONCE);
        if arrival.data.trailer {
            self.on_trailer(arrival);
            return DataOutcome::Trailer;
        }
        self.stats.frames += 1;
        let accept = match self.repair {
            Repair::Selective => self.on_packet(now, arrival),
            #[cfg(any(test, feature = "lab"))]
            Repair::ErasureCode => self.on_coded(now, arrival),
            Repair::GoBackN => self.on_in_order(now, arrival),
        };
        match accept {
            DataOutcome::New { .. } | DataOutcome::Trailer => {}
            DataOutcome::Duplicate => {
                self.stats.duplicates += 1;
                self.on_duplicate(now, arrival);
            }
            DataOutcome::Trimmed => self.on_trimmed(arrival),
            DataOutcome::OutOfOrder => self.on_out_of_order(now, arrival),
            DataOutcome::OutOfWindow => {
                self.stats.out_of_window += 1;
                self.on_arrival(now, arrival, true);
            }
            DataOutcome::Invalid => self.stats.invalid += 1,
        }
        accept
    }

    /// Returns an ACK if one is due.
    #[inline]
    pub fn poll_ack(&mut self) -> Option<Ack> {
        if !self.pending.due {
            return None;
        }
        //= docs/specs/transport.md#TRN-55 content of an ACK
        let base = self.sack_base();
        let pending = self.pending;
        self.grant.advertised = self.grant.limit();
        let ack = Ack {
            cumulative: self.cumulative,
            timestamp_echo: pending.timestamp,
            sack_base: base,
            bitmap: self.bitmap(base),
            port: pending.port,
            hops: pending.hops,
            packets: pending.packets,
            marked_packets: pending.marked_packets,
            marked: pending.marked,
            trimmed: pending.trimmed,
            misrouted: pending.misrouted,
            max_data: self.grant.advertised,
            echoes: pending.echoes,
        };
        self.after_ack(base);
        self.stats.acks += 1;
        Some(ack)
    }

    /// Returns the next NACK.
    #[inline]
    pub fn poll_nack(&mut self) -> Option<Nack> {
        self.nacks.pop_front().inspect(|_| self.stats.nacks += 1)
    }

    /// Returns the number and length of a complete message, once for each.
    #[inline]
    pub fn message_completed(&mut self) -> Option<(u32, u64)> {
        self.completed.pop_front()
    }

    /// Records consumed bytes, at most what has arrived, which raises the grant.
    pub fn consumed(&mut self, bytes: u64) {
        //= docs/specs/transport.md#TRN-57 granting
        self.grant.consumed = self.grant.consumed.saturating_add(bytes).min(self.stats.bytes);
        let increase = self.grant.limit() - self.grant.advertised;
        let blocked = self.grant.advertised.saturating_sub(self.stats.bytes) < self.grant.payload_bytes;
        self.pending.due |= increase >= self.grant.window_bytes.div_ceil(2).max(1) || (blocked && increase > 0);
    }

    /// Returns when a delayed ACK is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.pending.deadline
    }

    /// Makes a delayed ACK due when its time has come. Calling early does no harm.
    #[inline]
    pub fn on_timeout(&mut self, now: Time) {
        if self.pending.deadline.is_some_and(|at| at <= now) {
            self.pending.due = true;
            self.pending.deadline = None;
        }
    }

    /// The number below which every packet has arrived.
    pub fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// Whether a packet, inside or before the window, has arrived.
    #[inline]
    pub fn has_received(&self, psn: u64) -> bool {
        psn < self.cumulative || (psn - self.cumulative < self.window_packets && self.received.contains(psn))
    }

    /// The grant: payload bytes that the sender may send over the connection's life.
    #[inline]
    pub fn max_data(&self) -> u64 {
        self.grant.limit()
    }

    /// Reads the state that packet `psn` needs, to prefetch it, and returns a mix of it.
    #[inline]
    pub fn prefetch(&self, psn: u64) -> u64 {
        let Self { received, cumulative, pending, grant, nacks, stats, repair, .. } = self;
        u64::from(received.contains(psn))
            ^ cumulative
            ^ pending.lowest
            ^ grant.consumed
            ^ nacks.len() as u64
            ^ *repair as u64
            ^ stats.packets
    }

    /// Counts since construction.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Takes a data frame; the first one of each packet counts for its message.
    #[inline]
    fn on_packet(&mut self, now: Time, arrival: &Arrival) -> DataOutcome {
        let data = &arrival.data;
        //= docs/specs/transport.md#TRN-51 duplicates
        if data.psn < self.cumulative {
            return DataOutcome::Duplicate;
        }
        //= docs/specs/transport.md#TRN-50 beyond the window
        if data.psn - self.cumulative >= self.window_packets {
            return DataOutcome::OutOfWindow;
        }
        if self.received.contains(data.psn) {
            return DataOutcome::Duplicate;
        }
        if arrival.trimmed {
            return DataOutcome::Trimmed;
        }
        if self.completed.len() >= COMPLETED_SLOTS {
            return DataOutcome::OutOfWindow;
        }
        //= docs/specs/transport.md#TRN-57 granting
        let bytes = u64::from(data.payload_bytes);
        if bytes > self.grant.limit().saturating_sub(self.stats.bytes) {
            return DataOutcome::Invalid;
        }
        let place = match self.reassembly.place(data) {
            Placed::Rejected => return DataOutcome::Invalid,
            Placed::NoRoom => return DataOutcome::OutOfWindow,
            Placed::Part(place) => place,
            Placed::Complete(place) => {
                self.on_complete(data);
                place
            }
        };
        self.on_new(now, arrival);
        DataOutcome::New { place: (bytes > 0).then_some(place) }
    }

    //= docs/specs/transport.md#TRN-52 placing payload
    #[inline]
    fn on_complete(&mut self, data: &Data) {
        // The caller has checked that there is room.
        self.completed.push_back((data.message, data.message_bytes));
        self.stats.messages += 1;
        self.pending.due = true;
    }

    #[inline]
    fn on_new(&mut self, now: Time, arrival: &Arrival) {
        let psn = arrival.data.psn;
        self.stats.packets += 1;
        self.stats.bytes += u64::from(arrival.data.payload_bytes);
        self.order.on_arrival(psn, arrival.data.retransmit, &mut self.stats.order);
        self.highest = self.highest.max(psn + 1);
        self.received.insert(psn);
        self.watch.on_arrival(psn);
        self.cumulative = self.received.remove_run(self.cumulative, self.highest);
        self.pending.cover(psn);
        //= docs/specs/irn.md#IRN-1 the receiver
        self.on_arrival(now, arrival, self.ack_gaps && psn >= self.cumulative);
        //= docs/specs/ordered-chaos.md#ORC-21 evidence
        if arrival.data.section != Section::NONE && !arrival.data.retransmit {
            self.check_section(arrival, false);
        }
    }

    //= docs/specs/ordered-chaos.md#ORC-23 repeated reports
    fn on_trailer(&mut self, arrival: &Arrival) {
        self.stats.trailers += 1;
        let ahead = arrival.data.psn.saturating_sub(self.cumulative);
        // A trimmed trailer may have overtaken its packets. Go-back-n has its own NACKs.
        if ahead < self.window_packets && !arrival.trimmed && self.repair != Repair::GoBackN {
            self.check_section(arrival, true);
        }
        //= docs/specs/ordered-chaos.md#ORC-26 ACKs of trailers
        if arrival.data.ack_now {
            if self.pending.packets == 0 {
                self.pending.port = arrival.port;
            }
            self.pending.due = true;
        }
    }

    /// Queues a NACK for each packet that a frame proves lost, if there is room.
    fn check_section(&mut self, arrival: &Arrival, again: bool) {
        let Self { watch, received, nacks, nacks_left, cumulative, highest, stats, .. } = self;
        let arrived = Received { received, cumulative: *cumulative, highest: *highest };
        let evidence = Evidence { psn: arrival.data.psn, section: arrival.data.section, again };
        watch.check(&arrived, &evidence, |psn| {
            let queued = *nacks_left > 0 && queue(nacks, nack(arrival, psn, 0, true));
            *nacks_left -= u16::from(queued);
            stats.missing += u64::from(queued);
            stats.nacks_dropped += u64::from(!queued);
            queued
        });
    }

    //= docs/specs/transport.md#TRN-51 duplicates
    fn on_duplicate(&mut self, now: Time, arrival: &Arrival) {
        if arrival.data.psn >= self.cumulative {
            // The ACK that covered it was lost, so this ACK covers it too.
            self.pending.cover(arrival.data.psn);
        }
        self.on_arrival(now, arrival, true);
    }

    //= docs/specs/transport.md#TRN-56 NACKs
    fn on_trimmed(&mut self, arrival: &Arrival) {
        self.stats.trimmed += 1;
        self.stats.trimmed_last += u64::from(arrival.last_port);
        //= docs/specs/go-back-n.md#GBN-1 accepted packets
        if self.repair == Repair::GoBackN {
            return;
        }
        let data = &arrival.data;
        if queue(&mut self.nacks, nack(arrival, data.psn, data.payload_bytes, false)) {
            self.watch.on_reported(data.psn);
            self.pull.on_trimmed(data.payload_bytes);
        } else {
            self.stats.nacks_dropped += 1;
        }
    }
}

#[cfg(test)]
impl Receiver {
    pub(super) fn start_after(&mut self, before: &super::tests::Before) {
        let super::tests::Before { packets, bytes, messages } = *before;
        (self.cumulative, self.highest, self.order) = (packets, packets, Order::starting_at(packets));
        (self.grant.consumed, self.grant.advertised) = (bytes, self.grant.advertised + bytes);
        self.expect_message(messages);
        (self.stats.packets, self.stats.bytes) = (packets, bytes);
    }
}

impl Grant {
    #[inline]
    fn limit(&self) -> u64 {
        self.consumed.saturating_add(self.window_bytes)
    }
}

impl PullTarget {
    //= docs/specs/eqds.md#EQDS-10 the target
    fn on_trimmed(&mut self, payload_bytes: u16) {
        self.trimmed = self.trimmed.saturating_add(u64::from(payload_bytes) + self.header_bytes);
    }
}

/// The NACK for a frame that was trimmed or that shows that packet `psn` is missing.
fn nack(arrival: &Arrival, psn: u64, payload_bytes: u16, missing: bool) -> Nack {
    Nack {
        psn,
        timestamp_echo: arrival.data.timestamp,
        port: arrival.port,
        hops: arrival.hops,
        marked: arrival.marked,
        payload_bytes,
        missing,
        last_port: arrival.last_port && !missing,
        go_back: false,
    }
}

/// Queues a NACK; returns `false` if there is no room.
fn queue(nacks: &mut VecDeque<Nack>, nack: Nack) -> bool {
    let has_room = nacks.len() < NACK_SLOTS;
    if has_room {
        nacks.push_back(nack);
    }
    has_room
}

/// Completed messages not taken yet; the owner takes them after every frame.
const COMPLETED_SLOTS: usize = 64;

/// Limits of NACKs for missing packets, at once and per frame: forged frames trigger few.
const NACKS_AT_ONCE: u16 = 256;
const NACKS_PER_FRAME: u16 = 3;

/// NACKs not taken yet; the owner takes them after every frame.
const NACK_SLOTS: usize = 64;
