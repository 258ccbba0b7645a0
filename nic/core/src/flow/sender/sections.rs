//! Sections: packets that keep their order on one path, the trailers that follow them, and which of them are missing.

use spray_wire::{Data, Nack};

use super::{Sender, Transmit};
use crate::event::Publisher;
use crate::feedback::LossCause;
use crate::path::{Balancer, Trailer, Transmission};

impl Sender {
    /// Returns a trailer that is due. Before the first round-trip time a sender that learns its path knows of no time at which
    /// one would be.
    pub(super) fn poll_trailer(&mut self, now_ps: u64) -> Option<Transmit> {
        if self.calibration.is_some() && self.rtt().smoothed_ps() == 0 {
            return None;
        }
        let oldest = self.recovery.scoreboard.oldest();
        let oldest = oldest.map(|(psn, record)| Transmission { psn, ev: record.ev, sent_ps: record.sent_ps });
        let trailer = self.balancer.poll_trailer(self.path.at(now_ps), oldest.as_ref())?;
        Some(self.follow(now_ps, &trailer))
    }

    /// Makes a trailer: it follows the packets of a section.
    //= docs/specs/ordered-chaos.md#ORC-20 trailers on the wire
    fn follow(&mut self, now_ps: u64, trailer: &Trailer) -> Transmit {
        self.stats.trailers_sent += 1;
        let Trailer { psn, ev, section, ack_now } = *trailer;
        let timestamp_ps = self.stamp(now_ps);
        Transmit::Data { data: Data { psn, timestamp_ps, trailer: true, section, ack_now, ..Data::default() }, ev }
    }

    /// A timestamp: the time, or a little later, so that no two frames have the same. It then tells which frame was
    /// sent first.
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    #[inline]
    pub(super) fn stamp(&mut self, now_ps: u64) -> u64 {
        self.stamp_ps = now_ps.max(self.stamp_ps.saturating_add(1));
        self.stamp_ps
    }

    /// Takes a NACK for a missing packet. The packet is lost if its last transmission came before the frame that the
    /// NACK echoes.
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    pub(super) fn on_missing(&mut self, now_ps: u64, nack: &Nack, publisher: &mut impl Publisher) {
        let sent_ps = self.recovery.scoreboard.record(nack.psn).map(|record| record.sent_ps);
        let known = self.offers.sections && nack.timestamp_echo_ps <= self.stamp_ps;
        let before = sent_ps.is_some_and(|sent_ps| sent_ps < nack.timestamp_echo_ps);
        if known && before && self.recovery.scoreboard.is_outstanding(nack.psn) {
            self.lose(now_ps, nack.psn, LossCause::Missing, publisher);
        } else {
            self.stats.stale_nacks += 1;
        }
    }
}
