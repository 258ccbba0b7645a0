//! Loss recovery: packets in flight, their timeouts, and when they count as lost.

use crate::Time;
use crate::flow::{DEFAULT_SACK_GAP_PACKETS, FlowConfig};
use crate::loss::{
    Backoff, Irn, MAX_BACKOFF, ReceiverConfig, Record, ReorderWindow, Repair, RtoConfig, RttEstimator, SackGap,
    Scoreboard,
};

#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub scoreboard: Scoreboard,
    reorder_window: ReorderWindow,
    pub rtt: RttEstimator,
    rto: RtoConfig,
    timeout_ps: u64,
    /// Consecutive timeouts without progress.
    pub backoff: Backoff,
    /// Retransmissions trimmed since the last new acknowledgement.
    trims: Backoff,
    /// No lost packet is sent before this time.
    pub held_until: Time,
    sack_gap: SackGap,
    /// IRN's recovery, in place of the gap rule.
    pub irn: Option<Irn>,
    pub repair: Repair,
    /// Wire bytes of outstanding packets, lost ones excluded.
    pub in_flight_bytes: u64,
}

impl Recovery {
    pub(super) fn new(config: &FlowConfig, window_packets: u32) -> Self {
        let rtt = RttEstimator::default();
        let (repair, irn, gap_packets) = match &config.receiver {
            ReceiverConfig::Selective => (Repair::Selective, None, config.sack_gap_packets),
            ReceiverConfig::GoBackN(_) => (Repair::GoBackN, None, None),
            ReceiverConfig::Irn(own) => (Repair::Selective, Some(Irn::new(own, &config.rto)), None),
        };
        Self {
            scoreboard: Scoreboard::new(window_packets),
            reorder_window: repair.reorder_window(),
            rtt,
            rto: config.rto,
            timeout_ps: config.rto.timeout_ps(&rtt),
            backoff: 0,
            trims: 0,
            held_until: Time::ZERO,
            sack_gap: SackGap { packets: gap_packets, rule: config.sack_rule },
            irn,
            repair,
            in_flight_bytes: 0,
        }
    }

    //= docs/specs/transport.md#TRN-40 quick gap rule
    pub(super) fn set_quick_gap_rule(&mut self) {
        self.sack_gap.packets = self.sack_gap.packets.or(Some(DEFAULT_SACK_GAP_PACKETS));
        self.reorder_window = ReorderWindow::quick();
    }

    #[cfg(any(test, feature = "lab"))]
    pub(super) fn set_repair(&mut self, repair: Repair) {
        (self.repair, self.reorder_window) = (repair, repair.reorder_window());
    }

    #[inline]
    pub(super) fn on_rtt_sample(&mut self, now: Time, rtt_ps: u64) {
        self.rtt.on_sample(now, rtt_ps, self.timeout_ps);
        self.timeout_ps = self.rto.timeout_ps(&self.rtt);
    }

    //= docs/specs/transport.md#TRN-32 any new acknowledgement
    //= docs/specs/transport.md#TRN-66 trimmed again
    #[inline]
    pub(super) fn on_progress(&mut self) {
        (self.backoff, self.trims, self.held_until) = (0, 0, Time::ZERO);
    }

    /// Delays retransmissions after a trimmed one, since the next would be trimmed too.
    //= docs/specs/transport.md#TRN-66 trimmed again
    #[cold]
    pub(super) fn on_trimmed_again(&mut self, sent_at: Time, base_rtt_ps: u64) {
        let rtt_ps = self.rtt.smoothed_ps().max(base_rtt_ps);
        let wait_ps = rtt_ps.saturating_mul(1 << self.trims.min(MAX_BACKOFF)).min(self.rto.max_ps.max(self.timeout_ps));
        self.trims = self.trims.saturating_add(1);
        self.held_until = self.held_until.max(sent_at.after(wait_ps));
    }

    pub(super) fn set_rto(&mut self, rto: RtoConfig) {
        self.rto = rto;
        self.timeout_ps = rto.timeout_ps(&self.rtt);
        if let Some(irn) = &mut self.irn {
            irn.set_rto(&rto);
        }
    }

    /// Adapts the gap rule's patience to mistakes, which count once per ACK, and confirmations.
    //= docs/specs/transport.md#TRN-38 reordering window
    #[cold]
    pub(super) fn learn(&mut self, now: Time, was_spurious: bool, confirmations: u64) {
        if was_spurious {
            self.reorder_window.on_spurious_loss(now, &self.rtt);
        }
        (0..confirmations).for_each(|_| self.reorder_window.on_confirmed_loss());
    }

    /// The estimated round-trip time without a sample; never zero.
    #[cold]
    pub(super) fn expected_rtt_ps(&self) -> u64 {
        match self.rtt.smoothed_ps() {
            0 => self.rto.initial_ps.max(1),
            smoothed_ps => smoothed_ps,
        }
    }

    #[inline]
    pub(super) fn after_timeout(&self, start: Time, backoff: Backoff) -> Time {
        //= docs/specs/transport.md#TRN-32 backoff
        let timeout_ps = if backoff == 0 { self.timeout_ps } else { self.rto.backed_off_ps(&self.rtt, backoff) };
        start.after(timeout_ps)
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.scoreboard.oldest().map_or(Time::NEVER, |(_, oldest)| self.expiry(oldest).min(self.gap_deadline(oldest)))
    }

    #[inline]
    pub(super) fn widest_gap(&self) -> Option<u64> {
        self.sack_gap.widest_gap(&self.scoreboard)
    }

    /// Returns the oldest transmission if the gap rule declares it lost.
    //= docs/specs/transport.md#TRN-35 gap rule
    #[inline]
    pub(super) fn overtaken(&self, now: Time) -> Option<u64> {
        let (psn, oldest) = self.scoreboard.oldest()?;
        (self.gap_deadline(oldest) <= now).then_some(psn)
    }

    #[inline]
    pub(super) fn missing_in_recovery(&mut self) -> Option<u64> {
        self.irn.as_mut()?.take_lost(&self.scoreboard)
    }

    /// Returns the oldest transmission if its timeout expired. This may raise the backoff.
    //= docs/specs/transport.md#TRN-34 timeout per transmission
    pub(super) fn take_expired(&mut self, now: Time) -> Option<u64> {
        let (psn, oldest) = self.scoreboard.oldest()?;
        if self.expiry(oldest) > now {
            return None;
        }
        //= docs/specs/transport.md#TRN-32 backoff
        if oldest.backoff >= self.backoff {
            self.backoff = self.backoff.saturating_add(1);
        }
        //= docs/specs/irn.md#IRN-2 recoveries
        if let Some(irn) = &mut self.irn {
            irn.recover(&self.scoreboard);
        }
        Some(psn)
    }

    pub(super) fn has_gap_rule(&self) -> bool {
        self.sack_gap.packets.is_some()
    }

    #[inline]
    pub(super) fn expiry(&self, record: &Record) -> Time {
        match &self.irn {
            Some(irn) => record.sent_at.after(irn.timeout_ps(self.scoreboard.span())),
            None => self.after_timeout(record.sent_at, record.backoff.min(self.backoff)),
        }
    }

    /// When the oldest transmission counts as lost by the gap rule or, in a code, by its age.
    #[inline]
    fn gap_deadline(&self, oldest: &Record) -> Time {
        let Self { sack_gap, scoreboard, reorder_window, rtt, repair, .. } = self;
        let arrived_after = scoreboard.arrived_after(oldest);
        let gap = sack_gap.deadline(arrived_after, oldest.sent_at, reorder_window, rtt).unwrap_or(Time::NEVER);
        gap.min(repair.overdue(oldest.sent_at, reorder_window, rtt))
    }
}
