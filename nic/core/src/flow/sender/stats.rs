//! What a sender counts.

use super::Sender;
use crate::path::LossCause;

/// Counts of one sender since its construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderStats {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// With the ideal erasure code: packets never sent, because the receiver had their messages before.
    pub packets_spared: u64,
    /// Payload bytes sent, retransmissions left out.
    pub bytes_sent: u64,
    /// Data packets sent again.
    pub retransmits: u64,
    /// Packets acknowledged, each once.
    pub packets_acked: u64,
    /// Payload bytes acknowledged, each once.
    pub bytes_acked: u64,
    /// Messages delivered.
    pub messages_delivered: u64,
    /// Packets declared lost by timeout.
    pub timeouts: u64,
    /// Packets declared lost because later ones arrived.
    pub sack_gaps: u64,
    /// Packets declared lost because a switch trimmed them.
    pub nacks: u64,
    /// Those of them that the last port of the path trimmed, and said so: the receiver's own incast, not the fabric.
    pub nacks_last: u64,
    /// Packets declared lost because the receiver said that a later one had arrived, on the same path or, under `go-back-n`, on any.
    pub missing: u64,
    /// Packets sent again only because the sender went back to an earlier one (`go-back-n`).
    pub gone_back: u64,
    /// NACKs for packets that had arrived, or were declared lost or sent again since.
    pub stale_nacks: u64,
    /// Packets acknowledged after they were declared lost and before they were sent again: they were not lost.
    pub late_acks: u64,
    /// Retransmissions acknowledged sooner than a round trip takes: the earlier transmission had arrived.
    pub spurious_retransmits: u64,
    /// ACKs taken.
    pub acks: u64,
    /// ACKs whose triggering packet was ECN-marked.
    pub marked_acks: u64,
    /// ACKs refused because they claim packets never sent.
    pub invalid_acks: u64,
    /// ACKs whose entropy value is outside the set.
    pub foreign_evs: u64,
    /// Timestamp echoes from the future or from before the first packet.
    pub invalid_echoes: u64,
    /// Probes sent for the balancer.
    pub probes_sent: u64,
    /// Answers to no probe of what the balancer suspected then.
    pub stale_probe_acks: u64,
    /// Trailers sent behind the packets of a section.
    pub trailers_sent: u64,
    /// Empty frames sent to learn the peer's grant.
    pub grant_requests: u64,
    /// Requests for credit sent.
    pub pull_requests: u64,
    /// Pulls that brought credit.
    pub pulls: u64,
    /// Drains: times that the balancer, or a switch by a pause, held new packets back until nothing was in flight, to change the path then.
    pub drains: u64,
    /// Time spent draining, in picoseconds, without a drain under way.
    pub drained_ps: u64,
}

impl SenderStats {
    pub(super) fn on_loss(&mut self, cause: LossCause) {
        match cause {
            LossCause::SackGap => self.sack_gaps += 1,
            LossCause::Timeout => self.timeouts += 1,
            LossCause::Trimmed => self.nacks += 1,
            LossCause::Missing => self.missing += 1,
            LossCause::GoneBack => self.gone_back += 1,
        }
    }
}

impl Sender {
    /// Notices the beginning and the end of a drain.
    #[inline]
    pub(super) fn watch_drain(&mut self, now_ps: u64) {
        if self.offers.hold_back || self.paused || self.draining_since_ps.is_some() {
            self.note_drain(now_ps);
        }
    }

    /// Whether a switch's pause holds: it ends when nothing is open any more.
    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.paused && self.recovery.scoreboard.span() > 0
    }

    fn note_drain(&mut self, now_ps: u64) {
        let is_held_back = self.is_paused() && self.segmenter.unsent_bytes > 0;
        match (self.draining_since_ps, self.balancer.is_draining() || is_held_back) {
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
}
