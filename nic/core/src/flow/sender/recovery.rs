//! Loss recovery: which packets are in flight, how long their feedback may take, and when they count as lost.

use crate::Time;
use crate::flow::{DEFAULT_SACK_GAP_PACKETS, FlowConfig};
use crate::loss::{
    Backoff, Irn, MAX_BACKOFF, Patience, ReceiverConfig, Record, Repair, RtoConfig, RttEstimator, SackGap, Scoreboard,
};

/// The packets of a connection that are sent and not acknowledged, and their timers.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub scoreboard: Scoreboard,
    patience: Patience,
    pub rtt: RttEstimator,
    rto: RtoConfig,
    /// The retransmission timeout without backoff, as of the last round-trip time.
    timeout_ps: u64,
    /// Timeouts in a row without progress.
    pub backoff: Backoff,
    /// The number of retransmissions trimmed since the last new acknowledgement.
    trims: Backoff,
    /// No lost packet is sent before this time.
    pub held_until: Time,
    sack_gap: SackGap,
    /// With IRN: what it knows in place of the gap rule.
    pub irn: Option<Irn>,
    pub repair: Repair,
    /// Wire bytes of outstanding packets. Lost ones do not count.
    pub in_flight_bytes: u64,
}

impl Recovery {
    pub(super) fn new(config: &FlowConfig, window_packets: u32) -> Self {
        let rtt = RttEstimator::default();
        let (repair, irn, gap_packets) = match &config.receiver {
            ReceiverConfig::Selective => (Repair::Resend, None, config.sack_gap_packets),
            ReceiverConfig::GoBackN(_) => (Repair::GoBack, None, None),
            ReceiverConfig::Irn(own) => (Repair::Resend, Some(Irn::new(own, &config.rto)), None),
        };
        Self {
            scoreboard: Scoreboard::new(window_packets),
            patience: repair.patience(),
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

    /// Declares losses by the gap rule, with little patience.
    //= docs/specs/transport.md#TRN-40 quick gap rule
    pub(super) fn quicken(&mut self) {
        self.sack_gap.packets = self.sack_gap.packets.or(Some(DEFAULT_SACK_GAP_PACKETS));
        self.patience = Patience::quick();
    }

    #[cfg(any(test, feature = "lab"))]
    /// Repairs in another way. Nothing was sent yet.
    pub(super) fn set_repair(&mut self, repair: Repair) {
        (self.repair, self.patience) = (repair, repair.patience());
    }

    #[inline]
    pub(super) fn on_rtt_sample(&mut self, now: Time, rtt_ps: u64) {
        self.rtt.on_sample(now, rtt_ps, self.timeout_ps);
        self.timeout_ps = self.rto.timeout_ps(&self.rtt);
    }

    /// Takes a new acknowledgement.
    //= docs/specs/transport.md#TRN-32 any new acknowledgement
    //= docs/specs/transport.md#TRN-66 trimmed again
    #[inline]
    pub(super) fn on_progress(&mut self) {
        (self.backoff, self.trims, self.held_until) = (0, 0, Time::ZERO);
    }

    /// Handles the trim of a retransmission that was sent at `sent_at`: another one at once would be trimmed too, regardless of the window.
    //= docs/specs/transport.md#TRN-66 trimmed again
    #[cold]
    pub(super) fn on_trimmed_again(&mut self, sent_at: Time, base_rtt_ps: u64) {
        let rtt_ps = self.rtt.smoothed_ps().max(base_rtt_ps);
        let wait_ps = rtt_ps.saturating_mul(1 << self.trims.min(MAX_BACKOFF)).min(self.rto.max_ps.max(self.timeout_ps));
        self.trims = self.trims.saturating_add(1);
        self.held_until = self.held_until.max(sent_at.after(wait_ps));
    }

    /// Takes new bounds of the retransmission timeout.
    pub(super) fn set_rto(&mut self, rto: RtoConfig) {
        self.rto = rto;
        self.timeout_ps = rto.timeout_ps(&self.rtt);
        if let Some(irn) = &mut self.irn {
            irn.set_rto(&rto);
        }
    }

    /// Adapts the gap rule's patience to its mistakes and confirmations. Mistakes of one ACK count once.
    //= docs/specs/transport.md#TRN-38 reordering window
    #[cold]
    pub(super) fn learn(&mut self, now: Time, was_mistaken: bool, confirmations: u64) {
        if was_mistaken {
            self.patience.on_mistake(now, &self.rtt);
        }
        (0..confirmations).for_each(|_| self.patience.on_confirmation());
    }

    /// The best guess at the round-trip time without a sample; never zero.
    #[cold]
    pub(super) fn expected_rtt_ps(&self) -> u64 {
        match self.rtt.smoothed_ps() {
            0 => self.rto.initial_ps.max(1),
            smoothed_ps => smoothed_ps,
        }
    }

    /// When a timeout that starts at `start` runs out.
    #[inline]
    pub(super) fn after_timeout(&self, start: Time, backoff: Backoff) -> Time {
        //= docs/specs/transport.md#TRN-32 backoff
        let timeout_ps = if backoff == 0 { self.timeout_ps } else { self.rto.backed_off_ps(&self.rtt, backoff) };
        start.after(timeout_ps)
    }

    /// When the oldest transmission counts as lost, by timeout or by the gap rule.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.scoreboard.oldest().map_or(Time::NEVER, |(_, oldest)| self.expiry(oldest).min(self.gap_deadline(oldest)))
    }

    /// The oldest transmission, if the plain gap rule declares it and all others before the latest arrival lost.
    #[inline]
    pub(super) fn widest_gap(&self) -> Option<u64> {
        self.sack_gap.widest_gap(&self.scoreboard)
    }

    /// The oldest transmission, if the gap rule declares it lost.
    //= docs/specs/transport.md#TRN-35 gap rule
    #[inline]
    pub(super) fn overtaken(&self, now: Time) -> Option<u64> {
        let (psn, oldest) = self.scoreboard.oldest()?;
        (self.gap_deadline(oldest) <= now).then_some(psn)
    }

    /// The next packet that IRN's recovery finds lost.
    #[inline]
    pub(super) fn missing_in_recovery(&mut self) -> Option<u64> {
        self.irn.as_mut()?.take_lost(&self.scoreboard)
    }

    /// The oldest transmission, if its timeout ran out. This may raise the backoff.
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

    /// Whether losses are declared before their timeouts.
    pub(super) fn has_gap_rule(&self) -> bool {
        self.sack_gap.packets.is_some()
    }

    /// When a transmission times out.
    #[inline]
    pub(super) fn expiry(&self, record: &Record) -> Time {
        match &self.irn {
            Some(irn) => record.sent_at.after(irn.timeout_ps(self.scoreboard.span())),
            None => self.after_timeout(record.sent_at, record.backoff.min(self.backoff)),
        }
    }

    /// When the oldest transmission counts as lost by the gap rule or, in a code, for its age.
    #[inline]
    fn gap_deadline(&self, oldest: &Record) -> Time {
        let Self { sack_gap, scoreboard, patience, rtt, repair, .. } = self;
        let arrived_after = scoreboard.arrived_after(oldest);
        let gap = sack_gap.deadline(arrived_after, oldest.sent_at, patience, rtt).unwrap_or(Time::NEVER);
        gap.min(repair.overdue(oldest.sent_at, patience, rtt))
    }
}
