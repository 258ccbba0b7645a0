//! The sending half of a connection: what goes next, on which path, and what the feedback means.

mod coded;
mod credit;
mod feedback;
mod stats;
mod timers;
mod trail;

use rand_core::RngCore;
use spray_wire::{Data, Probe, PullRequest};

pub use self::stats::SenderStats;
use super::config::FlowConfig;
use super::messages::{Outbox, Segment};
use crate::cc::{AnyCc, CongestionControl};
use crate::event::{Event, Publisher};
use crate::loss::{Backoff, Patience, RtoConfig, RttEstimator, SackGap, Scoreboard};
use crate::path::{Admission, AnyBalancer, Balancer, Ev, LossCause, Offers, SendInfo};

/// The message queue is full: poll the events, which frees the slots of delivered messages, and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the connection's message queue is full")
    }
}

impl core::error::Error for Full {}

/// A frame to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A data frame with `data.payload_bytes` of message `data.message` from `data.offset` on.
    ///
    /// With `payload_bytes == 0` there is nothing to look up: it is an empty message, or asks for the peer's grant.
    Data {
        /// The header.
        data: Data,
        /// The path, to become the UDP source port.
        ev: Ev,
    },
    /// A probe of one path.
    Probe {
        /// The header.
        probe: Probe,
        /// The path, to become the UDP source port.
        ev: Ev,
    },
    /// A request for credit.
    PullRequest {
        /// What it says.
        request: PullRequest,
        /// Any path.
        ev: Ev,
    },
}

/// What a sender tells its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The peer acknowledged every packet of a message; comes once for each.
    MessageDelivered {
        /// The message.
        message: u32,
        /// When the last acknowledgement came, in picoseconds.
        at_ps: u64,
    },
    /// Nothing came back for `give_up_ps`. The sender is dead: it sends nothing and takes nothing more.
    Failed,
}

/// The sending half of one connection.
///
/// Call order: `on_*` with whatever arrived, [`Sender::on_timeout`] when [`Sender::poll_timeout`] is due, then
/// [`Sender::poll_transmit`] until it returns `None`, [`Sender::poll_event`] likewise, and read
/// [`Sender::poll_timeout`] last. Time must not go back. Nothing allocates after [`Sender::new`], and no input panics.
#[derive(Clone, Debug)]
pub struct Sender {
    balancer: AnyBalancer,
    /// What the balancer offers.
    offers: Offers,
    /// When the last frame of a section was sent; each later than the one before.
    stamp_ps: u64,
    /// When the balancer began to drain, if it does.
    draining_since_ps: Option<u64>,
    cc: AnyCc,
    /// See [`CongestionControl::uses_credit`].
    uses_credit: bool,
    scoreboard: Scoreboard,
    outbox: Outbox,
    rtt: RttEstimator,
    rto: RtoConfig,
    header_bytes: u32,
    /// Wire bytes of a full packet.
    full_packet_bytes: u32,
    evs: u32,
    window_packets: u64,
    ack_every: u32,
    sack_gap: SackGap,
    erasure: bool,
    patience: Patience,
    give_up_ps: u64,
    /// Wire bytes of outstanding packets; lost ones have left the network.
    in_flight_bytes: u64,
    /// Payload bytes sent at least once, against the peer's grant `max_data`.
    data_sent: u64,
    max_data: u64,
    /// Timeouts in a row without progress.
    backoff: Backoff,
    /// When the first packet was sent: no echo is older.
    started_ps: Option<u64>,
    /// When something was last newly acknowledged, or waiting began.
    progress_ps: u64,
    persist: Persist,
    /// The timer of a sender that has something to send and no credit: the pull or the request may have been lost.
    credit_wait: Persist,
    /// When the congestion control lets the next packet go, if it held one back.
    paced_until_ps: Option<u64>,
    /// When there was last nothing to send: what the balancer wanted to be woken for until then is done.
    asked_ps: Option<u64>,
    probe_token: u64,
    failure: Failure,
    stats: SenderStats,
}

/// The timer of a sender that has data, nothing in flight and no grant: the peer's new grant may have been lost.
#[derive(Clone, Copy, Debug, Default)]
struct Persist {
    deadline_ps: Option<u64>,
    due: bool,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    Unreported,
    Reported,
}

/// The packet that goes next, if the windows let it.
enum Next {
    Lost(Segment),
    New(Segment),
}

impl Sender {
    /// Makes a sender. `peer_window_packets` and `peer_max_data` come from the handshake.
    pub fn new(config: &FlowConfig, peer_window_packets: u32, peer_max_data: u64, rng: &mut impl RngCore) -> Self {
        let config = config.sanitised();
        let window_packets = config.window_packets.min(peer_window_packets.max(1));
        let mut balancer = AnyBalancer::new(&config.path, rng);
        balancer.on_control(&config.cc);
        let cc = AnyCc::new(&config.cc);
        Self {
            offers: balancer.offers(),
            stamp_ps: 0,
            draining_since_ps: None,
            balancer,
            uses_credit: cc.uses_credit(),
            cc,
            scoreboard: Scoreboard::new(window_packets),
            outbox: Outbox::new(config.payload_bytes as u16),
            rtt: RttEstimator::default(),
            rto: config.rto,
            header_bytes: config.header_bytes,
            full_packet_bytes: config.packet_bytes(),
            evs: config.path.evs.clamp(1, spray_wire::MAX_EVS),
            window_packets: u64::from(window_packets),
            ack_every: config.ack_every,
            sack_gap: SackGap { packets: config.sack_gap_packets, rule: config.sack_rule },
            erasure: config.erasure,
            patience: if config.erasure { Patience::eager() } else { Patience::default() },
            give_up_ps: config.give_up_ps,
            in_flight_bytes: 0,
            data_sent: 0,
            max_data: peer_max_data,
            backoff: 0,
            started_ps: None,
            progress_ps: 0,
            persist: Persist::default(),
            credit_wait: Persist::default(),
            paced_until_ps: None,
            asked_ps: None,
            probe_token: 0,
            failure: Failure::None,
            stats: SenderStats::default(),
        }
    }

    /// Queues a message of `bytes` under the caller's number, which the receiver sees.
    ///
    /// Numbers of undelivered messages must differ. Zero bytes are allowed and go as one empty packet.
    ///
    /// # Errors
    /// [`Full`] when [`MESSAGE_SLOTS`](super::MESSAGE_SLOTS) messages wait, are in flight, or are delivered without
    /// their event having been polled.
    pub fn send_message(&mut self, message: u32, bytes: u64) -> Result<(), Full> {
        let idle = self.is_idle();
        if !self.outbox.push(message, bytes) {
            return Err(Full);
        }
        if self.uses_credit {
            self.cc.on_queued(self.outbox.wire_bytes(bytes, self.header_bytes), idle);
        }
        Ok(())
    }

    /// Returns the next frame to send, or `None` when nothing may go now.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        now_ps: u64,
        rng: &mut impl RngCore,
        publisher: &mut impl Publisher,
    ) -> Option<Transmit> {
        let transmit = self.next_transmit(now_ps, rng, publisher);
        self.asked_ps = transmit.is_none().then_some(now_ps);
        transmit
    }

    #[inline]
    fn next_transmit(
        &mut self,
        now_ps: u64,
        rng: &mut impl RngCore,
        publisher: &mut impl Publisher,
    ) -> Option<Transmit> {
        if self.failure != Failure::None {
            return None;
        }
        //= docs/specs/transport.md#TRN-7
        if self.offers.probing
            && let Some(ev) = self.balancer.poll_probe(now_ps)
        {
            return Some(self.probe(now_ps, ev));
        }
        if self.offers.sections
            && let Some(trail) = self.poll_trail(now_ps)
        {
            return Some(self.follow(now_ps, &trail));
        }
        if self.persist.due {
            return Some(self.ask_for_grant(now_ps, rng));
        }
        if self.uses_credit
            && let Some(request) = self.poll_pull_request(now_ps, rng)
        {
            return Some(request);
        }
        let next = self.next_packet(now_ps)?;
        if self.uses_credit && !self.credit_admits(now_ps) {
            return None;
        }
        let (segment, lost) = match &next {
            Next::Lost(segment) => (segment, true),
            Next::New(segment) => (segment, false),
        };
        let bytes = self.wire_bytes(segment.payload_bytes);
        let psn = if lost { self.scoreboard.first_lost()?.0 } else { self.scoreboard.next_psn() };
        let packet = self.send_info(psn, bytes, lost);
        if !self.admits(now_ps, &packet) || !self.pace_admits(now_ps) {
            return None;
        }
        //= docs/specs/transport.md#TRN-2
        let ev = self.balancer.next_ev(now_ps, &packet, rng);
        self.cc.on_send(now_ps, bytes);
        self.in_flight_bytes += u64::from(bytes);
        let now_ps = if self.offers.sections { self.stamp(now_ps) } else { now_ps };
        if lost {
            self.send_again(now_ps, ev, publisher);
        } else {
            self.send_new(now_ps, ev, segment);
        }
        let ack_now = lost || segment.is_last() || self.stalls_after(bytes);
        let mut data = data(now_ps, psn, segment, ack_now, lost);
        if self.offers.sections {
            data.section = self.balancer.section();
        }
        Some(Transmit::Data { data, ev })
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        if let Some((message, at_ps)) = self.outbox.poll_delivered() {
            return Some(SenderEvent::MessageDelivered { message, at_ps });
        }
        if self.failure == Failure::Unreported {
            self.failure = Failure::Reported;
            return Some(SenderEvent::Failed);
        }
        None
    }

    /// Whether every message handed over is acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.outbox.is_cut() && self.scoreboard.span() == 0
    }

    /// Whether the sender gave up; see [`SenderEvent::Failed`].
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure != Failure::None
    }

    /// The congestion window, in wire bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.cc.window_bytes()
    }

    /// Wire bytes sent and neither acknowledged nor declared lost.
    #[inline]
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Whether a packet is sent, not acknowledged and not declared lost.
    #[inline]
    pub fn is_outstanding(&self, psn: u64) -> bool {
        self.scoreboard.is_outstanding(psn)
    }

    /// The number that the next new packet gets; what a `Close` names as final.
    #[inline]
    pub fn next_psn(&self) -> u64 {
        self.scoreboard.next_psn()
    }

    /// The round-trip times measured.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Tells the balancer which entropy values lead to distinct paths; see [`Reachability`](crate::path::Reachability).
    pub fn on_reachable(&mut self, now_ps: u64, paths: &[Ev]) {
        self.balancer.on_reachable(now_ps, paths);
    }

    /// The balancer, for its own figures.
    #[inline]
    pub fn balancer(&self) -> &AnyBalancer {
        &self.balancer
    }

    /// Counts since construction.
    #[inline]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Lost packets come before new ones, which need room among the sequence numbers and in the peer's grant.
    #[inline]
    fn next_packet(&mut self, now_ps: u64) -> Option<Next> {
        if self.offers.lowest_first {
            self.scoreboard.lowest_lost_first();
        }
        if let Some((psn, record)) = self.scoreboard.first_lost() {
            return Some(Next::Lost(self.outbox.again(record.message, psn, record.payload_bytes)));
        }
        let segment = self.outbox.next()?;
        //= docs/specs/transport.md#TRN-4
        if self.scoreboard.span() >= self.window_packets {
            return None;
        }
        //= docs/specs/transport.md#TRN-5
        if u64::from(segment.payload_bytes) > self.max_data.saturating_sub(self.data_sent) {
            self.wait_for_grant(now_ps);
            return None;
        }
        Some(Next::New(segment))
    }

    #[inline]
    fn send_info(&self, psn: u64, bytes: u32, retransmit: bool) -> SendInfo {
        SendInfo {
            psn,
            bytes,
            retransmit,
            in_flight_bytes: self.in_flight_bytes,
            open_packets: self.scoreboard.span(),
            unsent_bytes: self.outbox.unsent_bytes(),
        }
    }

    /// Whether the balancer, and the window unless the balancer has its own, let a packet go.
    #[inline]
    fn admits(&mut self, now_ps: u64, packet: &SendInfo) -> bool {
        if !self.offers.hold_back {
            return self.window_admits(packet.bytes);
        }
        let admission = self.balancer.admit(now_ps, packet);
        self.watch_drain(now_ps);
        match admission {
            Admission::Window => self.window_admits(packet.bytes),
            Admission::Go => true,
            Admission::Wait => false,
        }
    }

    /// Takes note of the beginnings and ends of drains.
    #[inline]
    fn watch_drain(&mut self, now_ps: u64) {
        if !self.offers.hold_back {
            return;
        }
        match (self.draining_since_ps, self.balancer.is_draining()) {
            (None, true) => {
                self.draining_since_ps = Some(now_ps);
                self.stats.drains += 1;
            }
            (Some(since_ps), false) => {
                self.draining_since_ps = None;
                self.stats.drained_ps += now_ps.saturating_sub(since_ps);
            }
            _ => {}
        }
    }

    //= docs/specs/transport.md#TRN-3
    #[inline]
    fn window_admits(&self, bytes: u32) -> bool {
        let after = self.in_flight_bytes + u64::from(bytes);
        self.in_flight_bytes == 0 || after <= self.cc.window_bytes()
    }

    #[inline]
    fn pace_admits(&mut self, now_ps: u64) -> bool {
        let at_ps = self.cc.poll_send(now_ps);
        self.paced_until_ps = (at_ps > now_ps).then_some(at_ps);
        at_ps <= now_ps
    }

    #[inline]
    fn send_new(&mut self, now_ps: u64, ev: Ev, segment: &Segment) {
        if self.scoreboard.span() == 0 {
            self.progress_ps = now_ps;
            self.started_ps.get_or_insert(now_ps);
        }
        let psn = self.scoreboard.send_new(now_ps, ev, self.backoff, segment.slot, segment.payload_bytes);
        self.outbox.cut(segment, psn);
        self.data_sent += u64::from(segment.payload_bytes);
        self.persist = Persist::default();
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += u64::from(segment.payload_bytes);
    }

    fn send_again(&mut self, now_ps: u64, ev: Ev, publisher: &mut impl Publisher) {
        let Some((psn, cause)) = self.scoreboard.send_lost(now_ps, ev, self.backoff) else { return };
        self.stats.packets_sent += 1;
        self.stats.retransmits += 1;
        publisher.on_event(now_ps, Event::Retransmit { psn, cause });
    }

    /// Whether no other packet can follow, and those in flight may be too few to make the receiver acknowledge.
    //= docs/specs/transport.md#TRN-8
    #[inline]
    fn stalls_after(&self, bytes: u32) -> bool {
        self.scoreboard.outstanding() < self.ack_every
            && (!self.window_admits(bytes)
                || self.scoreboard.span() >= self.window_packets
                || self.data_sent >= self.max_data)
    }

    fn probe(&mut self, now_ps: u64, ev: Ev) -> Transmit {
        self.probe_token += 1;
        self.stats.probes_sent += 1;
        Transmit::Probe { probe: Probe { token: self.probe_token, timestamp_ps: now_ps }, ev }
    }

    /// Makes an empty data frame with the last settled number: the receiver must answer it, and nothing else happens.
    //= docs/specs/transport.md#TRN-6
    fn ask_for_grant(&mut self, now_ps: u64, rng: &mut impl RngCore) -> Transmit {
        let psn = self.scoreboard.cumulative().wrapping_sub(1);
        let bytes = self.header_bytes;
        let packet = self.send_info(psn, bytes, true);
        let ev = self.balancer.next_ev(now_ps, &packet, rng);
        self.persist.due = false;
        self.persist.deadline_ps = Some(self.after_rto(now_ps, self.persist.backoff));
        self.started_ps.get_or_insert(now_ps);
        self.stats.grant_requests += 1;
        let data = Data { psn, timestamp_ps: now_ps, ack_now: true, retransmit: true, ..Data::default() };
        Transmit::Data { data, ev }
    }

    #[inline]
    fn wire_bytes(&self, payload_bytes: u16) -> u32 {
        u32::from(payload_bytes) + self.header_bytes
    }

    /// Reports a loss to whoever needs to know and queues the packet to be sent again.
    //= docs/specs/transport.md#TRN-37
    fn lose(&mut self, now_ps: u64, psn: u64, cause: LossCause, publisher: &mut impl Publisher) {
        let Some(&record) = self.scoreboard.record(psn) else { return };
        //= docs/specs/transport.md#TRN-36
        let place = if cause == LossCause::Trimmed { crate::loss::Lost::First } else { crate::loss::Lost::Last };
        if !self.scoreboard.on_lost(psn, cause, place) {
            return;
        }
        let bytes = self.wire_bytes(record.payload_bytes);
        self.in_flight_bytes -= u64::from(bytes);
        self.stats.on_loss(cause);
        self.cc.on_loss(now_ps, bytes, cause);
        let max_rtt_ps = self.rtt.recent_max_ps();
        let loss = crate::path::LossInfo {
            psn,
            ev: record.ev,
            bytes,
            cause,
            max_rtt_ps,
            in_flight_bytes: self.in_flight_bytes,
            sent_ps: record.sent_ps,
        };
        self.balancer.on_loss(now_ps, &loss, publisher);
        self.watch_drain(now_ps);
    }
}

#[inline]
fn data(now_ps: u64, psn: u64, segment: &Segment, ack_now: bool, retransmit: bool) -> Data {
    Data {
        psn,
        timestamp_ps: now_ps,
        message: segment.message,
        offset: segment.offset,
        message_bytes: segment.message_bytes,
        payload_bytes: segment.payload_bytes,
        ack_now,
        retransmit,
        ..Data::default()
    }
}
