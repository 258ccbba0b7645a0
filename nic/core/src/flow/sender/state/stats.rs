use crate::counters::counters;
use crate::path::LossCause;

counters! {
    /// Counts of one sender since its construction.
    pub struct SenderStats {
        /// Data packets sent, retransmissions included.
        packets_sent,
        /// Packets of the ideal erasure code never sent, because the receiver had their messages.
        packets_spared,
        /// Payload bytes sent, retransmissions excluded.
        bytes_sent,
        /// Retransmissions.
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
        /// Those trimmed by the last port of the path: the receiver's own incast, not the fabric.
        nacks_last,
        /// Packets lost by a receiver's report of a later arrival, on the path or in go-back-N.
        missing,
        /// Packets retransmitted only because the sender went back to an earlier one (`go-back-n`).
        gone_back,
        /// NACKs for packets that had arrived, or were declared lost or retransmitted since.
        stale_nacks,
        /// Packets declared lost and acknowledged before their retransmission: not lost.
        late_acks,
        /// Retransmissions acknowledged sooner than a round trip takes: spurious.
        spurious_retransmits,
        /// ACKs received.
        acks,
        /// ACKs triggered by an ECN-marked packet.
        marked_acks,
        /// ACKs triggered by a late packet, on a network that does not mark.
        overdue_acks,
        /// ACKs received while losses governed in place of marks, because of cross traffic.
        contended_acks,
        /// ACKs refused because they acknowledge packets never sent.
        invalid_acks,
        /// ACKs with an entropy value outside the set.
        foreign_evs,
        /// Timestamp echoes from the future or from before the first packet.
        invalid_echoes,
        /// Probes sent for the balancer.
        probes_sent,
        /// Answers to no probe of the suspect at the time.
        stale_probe_acks,
        /// Trailers sent after the packets of a section.
        trailers_sent,
        /// Empty frames sent to request the peer's grant.
        grant_requests,
        /// Requests for credit sent.
        pull_requests,
        /// Pulls that granted credit.
        pulls,
        /// Drains: new packets were held until nothing was in flight, to change the path.
        drains,
        /// Time spent in completed drains, in picoseconds.
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
            LossCause::GoBackN => self.gone_back += 1,
        }
    }
}
