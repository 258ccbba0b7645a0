//! The sending half of a connection: what goes next over which path, and effects of feedback.
//! Packet path: T3 of `docs/architecture.md`.

mod credit;
mod drains;
#[cfg(any(test, feature = "lab"))]
mod erasure;
mod feedback;
mod go_back_n;
mod learning;
mod output;
mod path_model;
mod prefetch;
mod probing;
mod recovery;
mod sections;
mod state;
mod timers;

use alloc::boxed::Box;

use self::output::data;
pub use self::output::{QueueFull, SenderEvent, Transmit};
use self::path_model::calibration::Calibration;
use self::path_model::rss_queue::RssQueue;
use self::recovery::Recovery;
use self::state::grant::Grant;
pub use self::state::limits::{Limit, Limits};
use self::state::liveness::Liveness;
use self::state::probes::Probes;
use self::state::retry::{Awaited, Retry};
pub use self::state::stats::SenderStats;
use super::config::FlowConfig;
use super::messages::{Segment, Segmenter};
use crate::Time;
use crate::cc::{AnyCc, CongestionControl};
use crate::event::{Choice, Event, Publisher};
use crate::feedback::Ev;
use crate::loss::{Backoff, ReceiverConfig, RttEstimator};
use crate::now::Path;
use crate::path::{self, Admission, AnyBalancer, Balancer, Features, PathHistory, SendInfo};
use crate::rng::Rng;

/// The sending half of one connection.
///
/// Call order: `on_*` with what arrived, [`Sender::on_timeout`] when [`Sender::poll_timeout`] is
/// due, [`Sender::poll_transmit`] and [`Sender::poll_event`] until they return `None`, and
/// [`Sender::poll_timeout`] last. Time must not go back. Tables double up to the window when more
/// is in flight than before. No input panics.
///
/// Methods by file: here, what it sends, when it wakes up and what it reports; in `sender/`:
/// `feedback` and `go_back` (ACKs, NACKs), `timers` (timeouts, gap rule), `credit` (the peer's
/// grant, credit), `probing`, `sections` (trailers), `drains`, `learning` (the path model),
/// `prefetch`, `coded`.
#[derive(Debug)]
pub struct Sender {
    balancer: AnyBalancer,
    features: Features,
    /// Present after misrouted packets.
    rss_queue: Option<Box<RssQueue>>,
    cc: AnyCc,
    uses_credit: bool,
    path: Path,
    segmenter: Segmenter,
    recovery: Recovery,
    grant: Grant,
    retry: Retry,
    liveness: Liveness,
    frames: Frames,
    /// When pacing permits the packet it delays; [`Time::NEVER`] if it delays none.
    paced_until: Time,
    /// When nothing could be sent last. Earlier wake-ups of the balancer are done.
    blocked_at: Option<Time>,
    paused: bool,
    /// Timestamp of the last frame with a section. Timestamps strictly increase.
    stamp: Time,
    draining_since: Option<Time>,
    probes: Probes,
    calibration: Option<Box<Calibration>>,
    stats: SenderStats,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Frames {
    header_bytes: u32,
    window_packets: u64,
    ack_every: u32,
}

/// Consecutive timeouts after which reused paths count as outdated: the second try may reuse one.
const OUTDATED: Backoff = 2;

impl Sender {
    /// Creates a sender. `peer_window_packets` and `peer_max_data` come from the handshake.
    pub fn new(config: &FlowConfig, peer_window_packets: u32, peer_max_data: u64, rng: &mut Rng) -> Self {
        let config = config.clamped();
        let window_packets = config.window_packets.min(peer_window_packets.max(1)).min(config.cap_packets());
        let mut balancer = AnyBalancer::new(&config.balancer, &config.path, rng);
        balancer.on_control(&config.cc, &config.path);
        let cc = AnyCc::new(&config.cc, &config.path);
        let features = balancer.features();
        let mut recovery = Recovery::new(&config, window_packets);
        if features.gap_rule && config.receiver == ReceiverConfig::Selective {
            recovery.set_quick_gap_rule();
        }
        Self {
            features,
            rss_queue: None,
            balancer,
            uses_credit: cc.uses_credit(),
            cc,
            path: config.path,
            segmenter: Segmenter::new(config.payload_bytes as u16),
            recovery,
            grant: Grant { sent: 0, max: peer_max_data },
            retry: Retry::IDLE,
            liveness: Liveness::new(config.give_up_ps),
            frames: Frames {
                header_bytes: config.header_bytes,
                window_packets: window_packets.into(),
                ack_every: config.ack_every,
            },
            paced_until: Time::NEVER,
            blocked_at: None,
            paused: false,
            stamp: Time::ZERO,
            draining_since: None,
            probes: Probes::default(),
            calibration: config.learns_path.then(|| Box::new(Calibration::new(&config, features.reuses))),
            stats: SenderStats::default(),
            limits: Limits::default(),
        }
    }

    /// Returns the balancer's knowledge of the peer's paths. Call it when the connection ends.
    pub fn path_history(&self) -> Option<PathHistory> {
        self.balancer.path_history()
    }

    /// Passes the balancer the result of [`Sender::path_history`]. Call it before any packet.
    pub fn restore_history(&mut self, now: Time, learned: &PathHistory) {
        self.balancer.restore_history(self.path.at(now), learned);
    }

    /// Queues a message of `bytes` under the caller's number, which the receiver sees. Numbers of
    /// undelivered messages must differ. A message of zero bytes is sent as one empty packet.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] when [`MESSAGE_SLOTS`](super::MESSAGE_SLOTS) messages have no polled delivery
    /// event.
    pub fn send_message(&mut self, message: u32, bytes: u64) -> Result<(), QueueFull> {
        let idle = self.is_idle();
        if !self.segmenter.push(message, bytes) {
            return Err(QueueFull);
        }
        if self.uses_credit {
            self.cc.on_queued(&self.path, self.segmenter.wire_bytes(bytes, self.frames.header_bytes), idle);
        }
        Ok(())
    }

    /// Returns the next frame to send, or `None` if nothing may go now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, rng: &mut Rng, publisher: &mut impl Publisher) -> Option<Transmit> {
        if self.liveness.has_failed() {
            return None;
        }
        if let Some(blocked_at) = self.blocked_at {
            self.limits.on_waited(blocked_at, now);
        }
        if self.may_have_control() {
            let control = self.poll_control(now, rng);
            if control.is_some() {
                self.blocked_at = None;
                return control;
            }
        }
        let transmit = self.poll_data(now, rng, publisher);
        self.blocked_at = if transmit.is_none() { Some(now) } else { None };
        transmit
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        if let Some((message, at)) = self.segmenter.poll_delivered() {
            return Some(SenderEvent::MessageDelivered { message, at });
        }
        self.liveness.take_failure().then_some(SenderEvent::Failed)
    }

    /// Whether every queued message is acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.segmenter.is_cut() && self.recovery.scoreboard.span() == 0
    }

    /// Whether the sender gave up; see [`SenderEvent::Failed`].
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.liveness.has_failed()
    }

    /// The congestion window, in wire bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.cc.window_bytes(&self.path)
    }

    /// Wire bytes sent and neither acknowledged nor declared lost.
    pub fn in_flight_bytes(&self) -> u64 {
        self.recovery.in_flight_bytes
    }

    /// Returns the number of packets that are sent, not acknowledged and not declared lost.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.recovery.scoreboard.outstanding()
    }

    /// Returns whether a packet is sent, not acknowledged and not declared lost.
    #[inline]
    pub fn is_outstanding(&self, psn: u64) -> bool {
        self.recovery.scoreboard.is_outstanding(psn)
    }

    /// The number of the next new packet; final when sent in a `Close`.
    #[inline]
    pub fn next_psn(&self) -> u64 {
        self.recovery.scoreboard.next_psn()
    }

    /// The measured round-trip times.
    pub fn rtt(&self) -> &RttEstimator {
        &self.recovery.rtt
    }

    #[cfg(any(test, feature = "lab"))]
    /// Passes the balancer entropy values for each distinct path; see [`Balancer::on_reachable`].
    pub fn on_reachable(&mut self, now: Time, paths: &[crate::path::PathEvs]) {
        self.balancer.on_reachable(self.path.at(now), paths);
    }

    /// The path as configured or learned.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The balancer, for its statistics.
    pub fn balancer(&self) -> &AnyBalancer {
        &self.balancer
    }

    /// Counts since construction.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// The times for which each limit kept it from sending.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    #[inline]
    fn may_have_control(&self) -> bool {
        let Features { probing, sections, .. } = self.features;
        probing | sections | self.uses_credit | self.retry.is_due(Awaited::Grant)
    }

    #[inline(never)]
    fn poll_control(&mut self, now: Time, rng: &mut Rng) -> Option<Transmit> {
        //= docs/specs/transport.md#TRN-7 order of sending
        if self.features.probing
            && let Some(probe) = self.poll_probe(now)
        {
            return Some(probe);
        }
        if self.features.sections
            && let Some(trailer) = self.poll_trailer(now)
        {
            return Some(trailer);
        }
        if self.retry.is_due(Awaited::Grant) {
            return Some(self.request_grant(now, rng));
        }
        if self.uses_credit { self.poll_pull_request(now, rng) } else { None }
    }

    #[inline]
    fn poll_data(&mut self, now: Time, rng: &mut Rng, publisher: &mut impl Publisher) -> Option<Transmit> {
        let (segment, lost) = self.next_segment(now)?;
        //= docs/specs/eqds.md#EQDS-4 credit in place of the window
        if self.uses_credit && !self.credit_admits(now) {
            return self.wait_for(Limit::Receiver);
        }
        let bytes = self.wire_bytes(segment.payload_bytes);
        let psn = lost.unwrap_or(self.next_psn());
        let packet = self.send_info(psn, bytes, lost.is_some());
        if let Some(limit) = self.holds_back(now, &packet) {
            return self.wait_for(limit);
        }
        //= docs/specs/transport.md#TRN-2 retransmissions
        let ev = self.choose_ev(now, &packet, rng, publisher);
        self.cc.on_send(self.path.at(now), bytes);
        self.recovery.in_flight_bytes += u64::from(bytes);
        let now = if self.features.sections { self.stamp(now) } else { now };
        if lost.is_some() {
            self.send_again(now, ev, publisher);
        } else {
            self.send_new(now, ev, &segment);
        }
        let ack_now = lost.is_some() || segment.is_last() || self.stalls_after(bytes);
        let mut data = data(now, psn, &segment, ack_now, lost.is_some());
        if self.features.sections {
            data.section = self.balancer.section();
        }
        Some(Transmit::Data { data, ev })
    }

    //= docs/specs/transport.md#TRN-41 repeated timeouts
    #[inline]
    fn choose_ev(&mut self, now: Time, packet: &SendInfo, rng: &mut Rng, publisher: &mut impl Publisher) -> Ev {
        let is_outdated = self.recovery.backoff >= OUTDATED && self.features.reuses && !self.features.scouts;
        let wants_choice = publisher.wants_choices();
        let choice = if wants_choice && !is_outdated { self.balancer.next_choice() } else { Choice::Explored };
        let ev = match is_outdated {
            true => path::draw(self.path.evs, rng),
            false => self.balancer.next_ev(self.path.at(now), packet, rng),
        };
        //= docs/specs/transport.md#TRN-65 the value that it corresponds to
        let ev = self.rss_queue.as_mut().map_or(ev, |right| right.choose(ev, self.path.evs.into(), rng));
        if wants_choice {
            publisher.on_choice(now, ev, self.path.evs.into(), choice);
        }
        ev
    }

    /// Returns the segment that goes next if the windows permit, with its number if it is lost. New
    /// ones follow lost ones, and need a sequence number and room in the peer's grant.
    #[inline]
    fn next_segment(&mut self, now: Time) -> Option<(Segment, Option<u64>)> {
        if self.features.lowest_first {
            self.recovery.scoreboard.lowest_lost_first();
        }
        if let Some((psn, record)) = self.recovery.scoreboard.first_lost() {
            //= docs/specs/transport.md#TRN-66 trimmed again
            if now < self.recovery.held_until {
                self.paced_until = self.recovery.held_until;
                return self.wait_for(Limit::Pacing);
            }
            return Some((self.segmenter.resegment(record.message, psn, record.payload_bytes), Some(psn)));
        }
        //= docs/specs/irn.md#IRN-4 new packets
        let Some(segment) = self.segmenter.next() else { return self.wait_for(Limit::Application) };
        //= docs/specs/flowcut-switch.md#FCS-5 draining
        self.watch_drain(now);
        if self.is_paused() {
            return self.wait_for(Limit::Balancer);
        }
        //= docs/specs/transport.md#TRN-4 the packet window
        if self.recovery.scoreboard.span() >= self.frames.window_packets {
            return self.wait_for(Limit::Window);
        }
        //= docs/specs/transport.md#TRN-5 the receiver's grant
        if !self.grant.admits(segment.payload_bytes) {
            self.wait_for_grant(now);
            return self.wait_for(Limit::Receiver);
        }
        Some((segment, None))
    }

    #[inline]
    fn send_info(&self, psn: u64, bytes: u32, retransmit: bool) -> SendInfo {
        SendInfo {
            psn,
            bytes,
            retransmit,
            in_flight_bytes: self.recovery.in_flight_bytes,
            unacked_packets: self.recovery.scoreboard.span(),
            unsent_bytes: self.segmenter.unsent_bytes,
        }
    }

    /// Returns what delays a packet: the balancer, the congestion window if it counts, or pacing.
    #[inline]
    fn holds_back(&mut self, now: Time, packet: &SendInfo) -> Option<Limit> {
        let mut admission = Admission::Window;
        if self.features.delays_packets {
            admission = self.balancer.admit(self.path.at(now), packet);
            self.watch_drain(now);
        }
        match admission {
            Admission::Wait => Some(Limit::Balancer),
            Admission::Window if !self.window_admits(packet.bytes) => Some(Limit::Window),
            Admission::Window | Admission::Go => (!self.pace_admits(now)).then_some(Limit::Pacing),
        }
    }

    //= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
    #[inline]
    fn window_admits(&self, bytes: u32) -> bool {
        let in_flight_bytes = self.recovery.in_flight_bytes;
        in_flight_bytes == 0 || in_flight_bytes + u64::from(bytes) <= self.cc.window_bytes(&self.path)
    }

    #[inline]
    fn pace_admits(&mut self, now: Time) -> bool {
        let at = self.cc.poll_send(self.path.at(now));
        self.paced_until = if at > now { at } else { Time::NEVER };
        at <= now
    }

    #[inline]
    fn send_new(&mut self, now: Time, ev: Ev, segment: &Segment) {
        let Recovery { scoreboard, backoff, .. } = &mut self.recovery;
        if scoreboard.span() == 0 {
            self.liveness.progress_at = now;
            self.liveness.on_first_sent(now);
        }
        let psn = scoreboard.send_new(now, ev, *backoff, segment.slot, segment.payload_bytes);
        self.segmenter.on_sent(segment, psn);
        self.grant.sent += u64::from(segment.payload_bytes);
        self.retry.stop(Awaited::Grant);
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += u64::from(segment.payload_bytes);
    }

    #[inline(never)]
    fn send_again(&mut self, now: Time, ev: Ev, publisher: &mut impl Publisher) {
        let Recovery { scoreboard, backoff, .. } = &mut self.recovery;
        let Some((psn, cause)) = scoreboard.send_lost(now, ev, *backoff) else { return };
        self.stats.packets_sent += 1;
        self.stats.retransmits += 1;
        publisher.on_event(now, Event::Retransmit { psn, cause });
    }

    /// Whether this packet closes a window while too few packets are in flight to trigger an ACK.
    //= docs/specs/transport.md#TRN-8 requesting an ACK
    #[inline]
    fn stalls_after(&self, bytes: u32) -> bool {
        let scoreboard = &self.recovery.scoreboard;
        scoreboard.outstanding() < self.frames.ack_every
            && (!self.window_admits(bytes)
                || scoreboard.span() >= self.frames.window_packets
                || self.grant.is_used_up())
    }

    #[inline]
    fn wait_for<T>(&mut self, limit: Limit) -> Option<T> {
        self.limits.present = limit;
        None
    }

    #[inline]
    fn wire_bytes(&self, payload_bytes: u16) -> u32 {
        u32::from(payload_bytes) + self.frames.header_bytes
    }
}

#[cfg(test)]
impl Sender {
    pub(super) fn start_after(&mut self, before: &super::tests::Before) {
        let super::tests::Before { packets, messages, bytes } = *before;
        self.recovery.scoreboard.start_at(packets);
        self.segmenter.start_at(messages);
        (self.grant.sent, self.grant.max) = (bytes, self.grant.max + bytes);
        (self.stats.packets_sent, self.stats.packets_acked) = (packets, packets);
        (self.stats.bytes_sent, self.stats.bytes_acked) = (bytes, bytes);
    }
}
