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
    /// What was counted from these counts to `later` ones of the same sender.
    #[must_use]
    pub fn until(&self, later: &Self) -> Self {
        Self {
            packets_sent: later.packets_sent - self.packets_sent,
            packets_spared: later.packets_spared - self.packets_spared,
            bytes_sent: later.bytes_sent - self.bytes_sent,
            retransmits: later.retransmits - self.retransmits,
            packets_acked: later.packets_acked - self.packets_acked,
            bytes_acked: later.bytes_acked - self.bytes_acked,
            messages_delivered: later.messages_delivered - self.messages_delivered,
            timeouts: later.timeouts - self.timeouts,
            sack_gaps: later.sack_gaps - self.sack_gaps,
            nacks: later.nacks - self.nacks,
            nacks_last: later.nacks_last - self.nacks_last,
            missing: later.missing - self.missing,
            gone_back: later.gone_back - self.gone_back,
            stale_nacks: later.stale_nacks - self.stale_nacks,
            late_acks: later.late_acks - self.late_acks,
            spurious_retransmits: later.spurious_retransmits - self.spurious_retransmits,
            acks: later.acks - self.acks,
            marked_acks: later.marked_acks - self.marked_acks,
            invalid_acks: later.invalid_acks - self.invalid_acks,
            foreign_evs: later.foreign_evs - self.foreign_evs,
            invalid_echoes: later.invalid_echoes - self.invalid_echoes,
            probes_sent: later.probes_sent - self.probes_sent,
            stale_probe_acks: later.stale_probe_acks - self.stale_probe_acks,
            trailers_sent: later.trailers_sent - self.trailers_sent,
            grant_requests: later.grant_requests - self.grant_requests,
            pull_requests: later.pull_requests - self.pull_requests,
            pulls: later.pulls - self.pulls,
            drains: later.drains - self.drains,
            drained_ps: later.drained_ps - self.drained_ps,
        }
    }

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
