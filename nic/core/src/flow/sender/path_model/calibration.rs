//! Learns base round-trip time and capacity of the path while sending: `docs/specs/calibration.md`.

use super::competing_traffic::{CrossTraffic, RoundStats};
use super::delay_marking::{DelayMarking, smoothed};
use super::short_queues::{RoundPackets, ShortQueues};
use crate::Time;
use crate::feedback::AckInfo;
use crate::flow::{FIRST_PACKETS, FlowConfig};
use crate::link::rate_bps;
use crate::loss::{RtoConfig, RttHistogram};
use crate::now::Path;

/// What acknowledgements show of the path. The results are in the sender's [`Path`].
#[derive(Clone, Debug)]
pub(in crate::flow::sender) struct Calibration {
    pub rto: RtoConfig,
    reuses: bool,
    /// Least round-trip times of the present and the previous epoch; `u64::MAX` without a sample.
    least_ps: [u64; 2],
    epoch_start: Time,
    /// Smoothed round-trip time of all acknowledgements; 0 before the first.
    average_ps: u64,
    /// Smoothed round-trip time of unmarked acknowledgements; 0 before the first.
    unmarked_ps: u64,
    pub rtts: RttHistogram,
    /// Whether a packet was marked, or late where the network does not mark.
    marks: bool,
    delay_marking: DelayMarking,
    pub cross_traffic: CrossTraffic,
    round: Round,
    /// Wire bytes that the best recent round delivered in one base round-trip time.
    best_bytes: u64,
    phase: Phase,
    /// Whether many packets of the last round were marked.
    was_congested: bool,
    queues: ShortQueues,
    /// Sum of the shares of marks shown to the balancer, in 2^-16. Each overflow shows one.
    shown: u16,
    /// Whether the path has changed since the sender was notified.
    is_due: bool,
}

/// Counts of one round, which lasts one smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Time,
    bytes: u64,
    packets: u32,
    marked_packets: u32,
    lost_packets: u32,
    is_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// With every round. Counts consecutive rounds that delivered little more than the best.
    Starting(u8),
    Steady,
}

impl Calibration {
    /// `reuses`: whether the balancer [reuses](crate::path::Features::reuses) paths.
    pub fn new(config: &FlowConfig, reuses: bool) -> Self {
        Self {
            rto: config.rto,
            reuses,
            least_ps: [u64::MAX; 2],
            epoch_start: Time::ZERO,
            average_ps: 0,
            unmarked_ps: 0,
            rtts: RttHistogram::default(),
            marks: false,
            delay_marking: DelayMarking::new(),
            cross_traffic: CrossTraffic::default(),
            round: Round::default(),
            best_bytes: 0,
            phase: Phase::Starting(0),
            was_congested: false,
            queues: ShortQueues::default(),
            shown: 0,
            is_due: false,
        }
    }

    /// Takes an ACK, which a data packet triggered if `reports`, and marks it where the network
    /// should have. Returns whether the path has changed.
    #[inline]
    pub fn learn(&mut self, now: Time, path: &mut Path, ack: &mut AckInfo, smoothed_ps: u64, reports: bool) -> bool {
        self.round.bytes += ack.bytes;
        if reports {
            if ack.marked || ack.marked_packets > 0 {
                self.delay_marking.end();
            }
            let least_ps = self.least_ps().min(ack.rtt_ps);
            self.average_ps = smoothed(self.average_ps, ack.rtt_ps);
            path.slow_rtt_ps = self.slow_rtt_ps(least_ps);
            if !self.cross_traffic.is_loss_based() {
                self.delay_marking.on_ack(now, ack.packets, self.average_ps, least_ps);
            }
            if self.delay_marking.is_late(ack.rtt_ps, least_ps) {
                (ack.marked, ack.marked_packets) = (true, ack.packets);
            }
            self.on_ack(now, path, ack, smoothed_ps);
        }
        reports && core::mem::take(&mut self.is_due)
    }

    /// Round-trip time of a slow path: marks show full queues only, and not on every network.
    //= docs/specs/calibration.md#CAL-12 slow paths
    #[inline]
    fn slow_rtt_ps(&self, least_ps: u64) -> u64 {
        let average_ps = self.average_ps.saturating_sub(least_ps);
        least_ps.saturating_add(average_ps + average_ps / 4)
    }

    /// Whether a frame with this round-trip time counts as marked.
    pub fn is_late(&self, rtt_ps: u64) -> bool {
        self.delay_marking.is_late(rtt_ps, self.least_ps())
    }

    /// Takes a loss. Returns whether congestion control takes it. `trimmed`: by a switch's report.
    //= docs/specs/calibration.md#CAL-3 slow start
    #[inline]
    pub fn on_loss(&mut self, now: Time, smoothed_ps: u64, trimmed: bool) -> bool {
        //= docs/specs/calibration.md#CAL-16 timeouts before the first acknowledgement
        if smoothed_ps == 0 && !trimmed {
            return true;
        }
        self.round.lost_packets = self.round.lost_packets.saturating_add(1);
        //= docs/specs/calibration.md#CAL-14 random losses
        let is_random = !trimmed && self.queues.is_random(self.round.lost_packets, self.is_starting());
        if !is_random {
            self.phase = Phase::Steady;
            self.cross_traffic.on_loss(now, smoothed_ps);
        }
        if !trimmed && !self.cross_traffic.is_loss_based() {
            self.delay_marking.on_loss();
        }
        !is_random
    }

    /// Returns the least window, in wire bytes, after an ACK moved it from `before` to `after`.
    #[inline]
    pub fn least_window(&self, before: u64, after: u64, ack: &AckInfo) -> u64 {
        if self.is_starting() || self.cross_traffic.is_loss_based() {
            return 0;
        }
        let is_used = ack.in_flight_bytes.saturating_add(ack.bytes) > before / 2;
        self.queues.least_window([before, after], ack.bytes, is_used)
    }

    /// Whether the balancer sees the mark of a packet with this round-trip time.
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    #[inline]
    pub fn shows_mark(&mut self, rtt_ps: u64) -> bool {
        if !self.reuses {
            return true;
        }
        let delay_ps = rtt_ps.saturating_sub(self.least_ps());
        // Half of the delay's share of the round-trip time.
        let share = (delay_ps / (rtt_ps >> 15).max(1)).clamp(LEAST_SHOWN, 1 << 15) as u16;
        let (shown, is_full) = self.shown.overflowing_add(share);
        self.shown = shown;
        is_full
    }

    /// Returns for the congestion control whether an ACK is marked, and how many of its packets.
    #[inline]
    pub fn signs(&self, now: Time, ack: &AckInfo) -> (bool, u16) {
        match self.cross_traffic.is_loss_based() {
            false => (ack.marked, ack.marked_packets),
            true if self.cross_traffic.marks(now) => (true, ack.packets),
            true => (false, 0),
        }
    }

    pub fn is_starting(&self) -> bool {
        self.phase != Phase::Steady
    }

    #[inline]
    fn on_ack(&mut self, now: Time, path: &mut Path, ack: &AckInfo, smoothed_ps: u64) {
        self.take_rtt(now, ack);
        self.round.is_late |= ack.rtt_ps >= self.base_rtt_ps().saturating_mul(LATE_RTTS);
        self.round.packets = self.round.packets.saturating_add(ack.packets.into());
        if ack.marked || ack.marked_packets > 0 {
            self.round.marked_packets = self.round.marked_packets.saturating_add(ack.marked_packets.max(1).into());
            self.marks = true;
            if self.was_congested && self.is_congested(self.round.marked_packets) {
                self.phase = Phase::Steady;
            }
        }
        if now.since(self.round.start) >= smoothed_ps.max(1) {
            self.end_round(now, path);
        }
    }

    /// Whether this number of marked packets in a round means congestion (CAL-3).
    #[inline]
    fn is_congested(&self, marked_packets: u32) -> bool {
        !self.cross_traffic.is_loss_based() && self.queues.are_many(marked_packets)
    }

    //= docs/specs/calibration.md#CAL-1 base round-trip time
    fn take_rtt(&mut self, now: Time, ack: &AckInfo) {
        self.rtts.on_sample(ack.rtt_ps);
        if now.since(self.epoch_start) >= EPOCH_PS {
            self.least_ps = [u64::MAX, self.least_ps[0]];
            self.epoch_start = now;
        }
        self.least_ps[0] = self.least_ps[0].min(ack.rtt_ps);
        if !ack.marked {
            self.unmarked_ps = smoothed(self.unmarked_ps, ack.rtt_ps);
        }
    }

    /// The least round-trip time; [`u64::MAX`] before the first.
    fn least_ps(&self) -> u64 {
        self.least_ps[0].min(self.least_ps[1])
    }

    fn base_rtt_ps(&self) -> u64 {
        let least_ps = self.least_ps();
        if self.marks && self.unmarked_ps > 0 { self.unmarked_ps.max(least_ps) } else { least_ps }
    }

    //= docs/specs/calibration.md#CAL-2 rounds
    #[inline(never)]
    fn end_round(&mut self, now: Time, path: &mut Path) {
        let next = Round { start: now, ..Round::default() };
        let Round { start, bytes, packets, marked_packets, lost_packets, is_late } =
            core::mem::replace(&mut self.round, next);
        let base_rtt_ps = self.base_rtt_ps();
        self.was_congested = self.is_congested(marked_packets);
        if start == Time::ZERO {
            // The first measurement replaces the initial guess: the path holds the first window.
            return self.settle(path, base_rtt_ps, FIRST_PACKETS as u32);
        }
        let elapsed_ps = u128::from(now.since(start).max(1));
        let bytes_per_rtt = (u128::from(bytes) * u128::from(base_rtt_ps) / elapsed_ps).min(u128::from(u64::MAX)) as u64;
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let (delay_ps, late) = (self.average_ps.saturating_sub(self.least_ps()), self.delay_marking.marks());
        let counts = RoundPackets { acked: packets, marked: marked_packets, lost: lost_packets };
        self.queues.on_round(counts, [delay_ps, self.least_ps()], bytes_per_rtt);
        let outcome = RoundStats { packets, marked: marked_packets, bytes, delay_ps, late };
        if let Some(begins) = self.cross_traffic.on_round(&outcome) {
            self.delay_marking.give_up(now);
            path.initial_window_bytes = begins.window_bytes.min(path.max_window_bytes);
            self.phase = Phase::Starting(if begins.is_first { 0 } else { IDLE_ROUNDS });
            self.is_due = true;
            return;
        }
        if let Phase::Starting(idle) = self.phase {
            let careful = self.was_congested || is_late && self.reuses;
            self.grow(path, idle, bytes, bytes_per_rtt, careful);
        }
        // Forgets an eighth per round, to detect a path that has become slower.
        self.best_bytes = bytes_per_rtt.max(self.best_bytes - self.best_bytes / 8);
        let packet = u64::from(path.packet_bytes);
        self.judge(path, base_rtt_ps, (self.best_bytes / packet).clamp(1, u64::from(u16::MAX)) as u32);
    }

    /// Continues the start if this round delivered more than the best. `careful`: grows little.
    //= docs/specs/calibration.md#CAL-3 slow start
    //= docs/specs/calibration.md#CAL-6 conservative slow start
    fn grow(&mut self, path: &mut Path, idle: u8, bytes: u64, bytes_per_rtt: u64, careful: bool) {
        let best_bytes = self.best_bytes;
        let (more_bytes, least_gain) = if careful { (bytes / 4, best_bytes / 8) } else { (bytes, best_bytes / 4) };
        self.phase = match idle {
            _ if bytes_per_rtt >= best_bytes + least_gain => Phase::Starting(0),
            IDLE_ROUNDS.. => Phase::Steady,
            idle => Phase::Starting(idle + 1),
        };
        let window_bytes = bytes.saturating_add(more_bytes).min(path.max_window_bytes);
        path.initial_window_bytes = path.initial_window_bytes.max(window_bytes);
        self.is_due = true;
    }

    /// Changes the path if the measurement differs by an eighth.
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    fn judge(&mut self, path: &mut Path, base_rtt_ps: u64, bdp_packets: u32) {
        let differs = |known: u64, new: u64| known.abs_diff(new) > known / 8;
        if differs(path.base_rtt_ps, base_rtt_ps) || differs(path.bdp_packets.into(), bdp_packets.into()) {
            self.settle(path, base_rtt_ps, bdp_packets);
        }
    }

    fn settle(&mut self, path: &mut Path, base_rtt_ps: u64, bdp_packets: u32) {
        // Twice what arrived: a rate equal to what arrived could never rise.
        let bytes = 2 * u64::from(bdp_packets).max(FIRST_PACKETS) * u64::from(path.packet_bytes);
        let (link_bps, version) = (rate_bps(bytes, base_rtt_ps), path.version.wrapping_add(1));
        *path = Path { base_rtt_ps, bdp_packets, link_bps, learned: true, version, ..*path }.clamped();
        self.is_due = true;
    }
}

/// The least round-trip time is valid for one to two epochs.
const EPOCH_PS: u64 = 5_000_000_000_000;
/// A packet late by this factor took a far slower path, or one on which all queues are full.
const LATE_RTTS: u64 = 3;
/// The balancer sees at least one mark in eight; in 2^-16.
const LEAST_SHOWN: u64 = 1 << 13;
/// Rounds with little gain that end the start.
const IDLE_ROUNDS: u8 = 3;

#[cfg(test)]
mod tests;
