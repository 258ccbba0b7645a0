//! What a sender counts.

use crate::counters::counters;
use crate::path::LossCause;

counters! {
    /// Counts of one sender since its construction.
    pub struct SenderStats {
        /// Data packets sent, retransmissions included.
        packets_sent,
        /// With the ideal erasure code: packets never sent, because the receiver had their messages before.
        packets_spared,
        /// Payload bytes sent, retransmissions left out.
        bytes_sent,
        /// Data packets sent again.
        retransmits,
        /// Packets acknowledged, each once.
        packets_acked,
        /// Payload bytes acknowledged, each once.
        bytes_acked,
        /// Messages delivered.
        messages_delivered,
        /// Packets declared lost by timeout.
        timeouts,
        /// Packets declared lost because later ones arrived.
        sack_gaps,
        /// Packets declared lost because a switch trimmed them.
        nacks,
        /// Those of them that the last port of the path trimmed, and said so: the receiver's own incast, not the fabric.
        nacks_last,
        /// Packets declared lost because the receiver said that a later one had arrived, on the same path or, under `go-back-n`, on any.
        missing,
        /// Packets sent again only because the sender went back to an earlier one (`go-back-n`).
        gone_back,
        /// NACKs for packets that had arrived, or were declared lost or sent again since.
        stale_nacks,
        /// Packets acknowledged after they were declared lost and before they were sent again: they were not lost.
        late_acks,
        /// Retransmissions acknowledged sooner than a round trip takes: the earlier transmission had arrived.
        spurious_retransmits,
        /// ACKs taken.
        acks,
        /// ACKs whose triggering packet was ECN-marked.
        marked_acks,
        /// ACKs whose triggering packet took long, on a network that does not mark.
        overdue_acks,
        /// ACKs taken while others filled the queues, so that losses governed in place of marks.
        contended_acks,
        /// ACKs refused because they claim packets never sent.
        invalid_acks,
        /// ACKs whose entropy value is outside the set.
        foreign_evs,
        /// Timestamp echoes from the future or from before the first packet.
        invalid_echoes,
        /// Probes sent for the balancer.
        probes_sent,
        /// Answers to no probe of what the balancer suspected then.
        stale_probe_acks,
        /// Trailers sent behind the packets of a section.
        trailers_sent,
        /// Empty frames sent to learn the peer's grant.
        grant_requests,
        /// Requests for credit sent.
        pull_requests,
        /// Pulls that brought credit.
        pulls,
        /// Drains: times that the balancer, or a switch by a pause, held new packets back until nothing was in flight, to change the path then.
        drains,
        /// Time spent draining, in picoseconds, without a drain under way.
        drained_ps,
    }
}

impl SenderStats {
    pub(in crate::flow::sender) fn on_loss(&mut self, cause: LossCause) {
        match cause {
            LossCause::SackGap => self.sack_gaps += 1,
            LossCause::Timeout => self.timeouts += 1,
            LossCause::Trimmed | LossCause::TrimmedLast => self.nacks += 1,
            LossCause::Missing => self.missing += 1,
            LossCause::GoneBack => self.gone_back += 1,
        }
    }
}
