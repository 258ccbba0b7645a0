//! A sender that learns its path works by what it has learned.

use super::Sender;
use crate::Time;
use crate::cc::CongestionControl;
use crate::feedback::{AckInfo, LossCause};
use crate::loss::RttHistogram;
use crate::path::Balancer;

impl Sender {
    /// The round-trip times of all acknowledgements that a data packet triggered, where it learns its path.
    pub fn rtts(&self) -> Option<&RttHistogram> {
        self.calibration.as_deref().map(|calibration| &calibration.rtts)
    }

    /// Learns from an acknowledgement. `reports` says that a data packet triggered it. Balancer and congestion control take it
    /// afterwards.
    pub(super) fn learn(&mut self, now: Time, ack: &mut AckInfo, reports: bool) {
        let smoothed_ps = self.recovery.rtt.smoothed_ps();
        let Some(calibration) = self.calibration.as_deref_mut() else { return };
        if calibration.learn(now, &mut self.path, ack, smoothed_ps, reports) {
            self.calibrate();
        }
    }

    /// Learns from the loss of a packet. Returns whether congestion control is told by marks that follow, and not by the loss.
    #[inline]
    pub(super) fn learn_loss(&mut self, now: Time, cause: LossCause) -> bool {
        let Some(calibration) = self.calibration.as_deref_mut() else { return false };
        calibration.on_loss(now, self.recovery.rtt.smoothed_ps(), cause == LossCause::Trimmed);
        calibration.losses_govern()
    }

    /// Tells balancer and congestion control that the window grows, while it does, and gives the retransmission timer what was learned.
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
