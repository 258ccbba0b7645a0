//! Updates a sender from its path model.

use super::{Balancer, CongestionControl, Sender, Time};
use crate::feedback::{AckInfo, LossCause};
use crate::loss::RttHistogram;

impl Sender {
    /// The round-trip times of all ACKs triggered by a data packet, if the path is learned.
    pub fn rtts(&self) -> Option<&RttHistogram> {
        self.calibration.as_deref().map(|calibration| &calibration.rtts)
    }

    /// Learns from an ACK, which a data packet triggered if `reports`, and passes it to the
    /// congestion control. Its marks (CAL-10) may differ from those that the balancer takes
    /// afterwards.
    pub(super) fn learn(&mut self, now: Time, ack: &mut AckInfo, reports: bool) {
        let smoothed_ps = self.recovery.rtt.smoothed_ps();
        let Some(calibration) = self.calibration.as_deref_mut() else { return };
        let was_marked = ack.marked;
        let is_news = calibration.learn(now, &mut self.path, ack, smoothed_ps, reports);
        self.stats.overdue_acks += u64::from(ack.marked && !was_marked);
        self.stats.contended_acks += u64::from(calibration.cross_traffic.is_loss_based());
        let marks = (ack.marked, ack.marked_packets);
        let signs = calibration.signs(now, ack);
        if is_news {
            self.calibrate();
        }
        (ack.marked, ack.marked_packets) = signs;
        let before = self.cc.window_bytes(&self.path);
        self.cc.on_ack(self.path.at(now), ack);
        let after = self.cc.window_bytes(&self.path);
        let least = self.calibration.as_deref().map_or(0, |calibration| calibration.least_window(before, after, ack));
        if least > after && !self.cc.uses_credit() {
            self.raise_window(least);
        }
        let is_marked = marks.0 || marks.1 > 0;
        (ack.marked, ack.marked_packets) = if is_marked && !self.shows_mark(ack.rtt_ps) { (false, 0) } else { marks };
    }

    #[inline]
    pub(super) fn shows_mark(&mut self, rtt_ps: u64) -> bool {
        self.calibration.as_deref_mut().is_none_or(|calibration| calibration.shows_mark(rtt_ps))
    }

    fn raise_window(&mut self, bytes: u64) {
        let first = core::mem::replace(&mut self.path.initial_window_bytes, bytes);
        self.cc.on_start(&self.path);
        self.path.initial_window_bytes = first;
    }

    /// Learns from a loss. Returns whether it counts for the congestion control.
    #[inline]
    pub(super) fn learn_loss(&mut self, now: Time, cause: LossCause) -> bool {
        let smoothed_ps = self.recovery.rtt.smoothed_ps();
        let calibration = self.calibration.as_deref_mut();
        calibration.is_none_or(|calibration| calibration.on_loss(now, smoothed_ps, cause.is_trim()))
    }

    /// Raises the windows during the start, and updates the retransmission timeout.
    #[inline(never)]
    fn calibrate(&mut self) {
        let Some(calibration) = self.calibration.as_deref() else { return };
        if calibration.is_starting() {
            self.balancer.on_start(&self.path);
            self.cc.on_start(&self.path);
        }
        self.recovery.set_rto(calibration.rto.on_path(self.path.base_rtt_ps));
    }
}
