//! Sections: packets in order on one path, their trailers, and NACKs for missing ones.

use spray_wire::{Data, Nack};

use super::{CongestionControl, Publisher, Sender, Time, Transmit};
use crate::feedback::LossCause;
use crate::path::{Balancer, Flight, Trailer, Transmission};

impl Sender {
    /// Returns a due trailer. While the path is learned, none precedes the first round-trip time.
    pub(super) fn poll_trailer(&mut self, now: Time) -> Option<Transmit> {
        if self.calibration.is_some() && self.rtt().smoothed_ps() == 0 {
            return None;
        }
        let oldest = self.recovery.scoreboard.oldest();
        let oldest = oldest.map(|(psn, record)| Transmission { psn, ev: record.ev, sent_at: record.sent_at });
        let flight = Flight {
            oldest,
            newest_psn: self.next_psn().saturating_sub(1),
            rtt_ps: self.rtt().smoothed_ps(),
            window_bytes: self.cc.window_bytes(&self.path),
        };
        let trailer = self.balancer.poll_trailer(self.path.at(now), &flight)?;
        Some(self.follow(now, &trailer))
    }

    //= docs/specs/ordered-chaos.md#ORC-20 trailers on the wire
    fn follow(&mut self, now: Time, trailer: &Trailer) -> Transmit {
        self.stats.trailers_sent += 1;
        let Trailer { psn, ev, section, ack_now } = *trailer;
        let timestamp = self.stamp(now);
        Transmit::Data { data: Data { psn, timestamp, trailer: true, section, ack_now, ..Data::default() }, ev }
    }

    /// Returns the time, or slightly more: timestamps strictly increase, so they order the frames.
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    #[inline]
    pub(super) fn stamp(&mut self, now: Time) -> Time {
        self.stamp = now.max(self.stamp.next());
        self.stamp
    }

    /// Takes a NACK for a missing packet: lost if its last transmission preceded the frame that the
    /// NACK echoes, or, with another entropy value, long preceded it.
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    pub(super) fn on_missing(&mut self, now: Time, nack: &Nack, publisher: &mut impl Publisher) {
        let known = self.features.sections && nack.timestamp_echo <= self.stamp;
        let record = self.recovery.scoreboard.record(nack.psn);
        let cause = record.filter(|record| known && record.is_outstanding()).and_then(|record| {
            let is_followed = nack.port.ev(self.path.evs.into()) == Some(record.ev);
            let rtt_ps = self.rtt().smoothed_ps();
            let overdue_at = record.sent_at.after(rtt_ps.saturating_add(rtt_ps / 4));
            match nack.timestamp_echo {
                echo if is_followed && record.sent_at < echo => Some(LossCause::Missing),
                echo if !is_followed && overdue_at < echo => Some(LossCause::SackGap),
                _ => None,
            }
        });
        match cause {
            Some(cause) => self.declare_lost(now, nack.psn, cause, publisher),
            None => self.stats.stale_nacks += 1,
        }
    }
}
