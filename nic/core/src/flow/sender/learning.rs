//! A sender that learns its path works by what it has learned.

use super::Sender;
use crate::cc::AnyCc;
use crate::feedback::AckInfo;
use crate::loss::RttHistogram;
use crate::path::{AnyBalancer, Balancer};
use crate::rng;

impl Sender {
    /// The round-trip times of all acknowledgements that a data packet triggered, where it learns its path.
    pub fn rtts(&self) -> Option<&RttHistogram> {
        self.calibration.as_deref().map(|calibration| &calibration.rtts)
    }

    /// Learns from an acknowledgement. `reports` says that a data packet triggered it. Balancer and congestion control take it
    /// afterwards, by the settings that follow from it.
    pub(super) fn learn(&mut self, now_ps: u64, ack: &AckInfo, reports: bool) {
        let smoothed_ps = self.recovery.rtt.smoothed_ps();
        let Some(calibration) = self.calibration.as_deref_mut() else { return };
        if calibration.learn(now_ps, ack, smoothed_ps, reports) {
            self.calibrate();
        }
    }

    /// A packet was lost: the path takes no more than this.
    #[inline]
    pub(super) fn end_start(&mut self) {
        if let Some(calibration) = self.calibration.as_deref_mut() {
            calibration.end_start();
        }
    }

    /// Gives balancer, congestion control and retransmission timer the settings that follow from what was learned.
    #[inline(never)]
    fn calibrate(&mut self) {
        let Some(calibration) = self.calibration.as_deref() else { return };
        let (path, cc, starting) = (&calibration.path, &calibration.cc, calibration.is_starting());
        // What it draws is not adopted. So it draws nothing from the connection's generator: how often the path's figures changed must not
        // change the paths that are drawn.
        self.balancer.adopt(AnyBalancer::new(path, &mut rng::stream(0, 0)));
        self.balancer.on_control(cc, starting);
        self.cc.adopt(AnyCc::new(cc), starting);
        self.recovery.set_rto(calibration.rto.on_path(cc.base_rtt_ps));
    }
}
