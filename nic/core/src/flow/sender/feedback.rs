//! Arriving ACKs and NACKs. Packet path: R5 of `docs/architecture.md`.

use spray_wire::{Ack, Nack};

use super::{Balancer, CongestionControl, Publisher, Sender, Time};
use crate::feedback::{AckInfo, LossCause, LossInfo, PacketInfo};
use crate::loss::{Lost, Record, Repair, Settled};

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    payload_bytes: u64,
    messages: u64,
    /// Payload of the echoed packet, if it is among these.
    echoed: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Repairs {
    packets: u64,
    late: u64,
    /// Wire bytes of those not yet retransmitted, which were not in flight.
    late_bytes: u64,
    spurious: u64,
    gap_spurious: u64,
    gap_confirmed: u64,
}

impl Repairs {
    //= docs/specs/transport.md#TRN-38 reordering window
    #[cold]
    fn on_repaired(&mut self, now: Time, record: &Record, min_rtt_ps: u64, wire_bytes: u64) {
        self.packets += 1;
        let late = record.lost().is_some();
        if late {
            self.late_bytes += wire_bytes;
        }
        let spurious = record.resent().is_some() && now.since(record.sent_at) < min_rtt_ps;
        self.late += u64::from(late);
        self.spurious += u64::from(spurious);
        if record.lost().or(record.resent()) == Some(LossCause::SackGap) {
            let mistake = late || spurious;
            self.gap_spurious += u64::from(mistake);
            self.gap_confirmed += u64::from(!mistake);
        }
    }
}

impl Sender {
    /// Takes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() {
            return;
        }
        //= docs/specs/transport.md#TRN-20 refused ACKs
        let is_beyond = ack.cumulative > self.next_psn();
        #[cfg(any(test, feature = "lab"))]
        let is_beyond = is_beyond && !self.accepts_cumulative(ack.cumulative);
        if is_beyond || !self.recovery.scoreboard.covers(ack.sack_base, &ack.bitmap) {
            self.stats.invalid_acks += 1;
            return;
        }
        let mut repairs = Repairs::default();
        let tally = self.settle(now, ack, &mut repairs);
        self.stats.acks += 1;
        let wire_bytes = self.on_tally(now, &tally, &repairs);
        #[cfg(any(test, feature = "lab"))]
        if ack.cumulative > self.next_psn() {
            self.skip_delivered(now, ack);
        }
        self.on_grant(now, ack.max_data);
        if let Some(irn) = &mut self.recovery.irn {
            irn.on_ack(ack, &self.recovery.scoreboard);
        }
        self.credit(now, ack, &tally, wire_bytes, publisher);
        self.detect_gaps(now, publisher);
    }

    /// Takes a NACK for a trimmed or missing packet.
    pub fn on_nack(&mut self, now: Time, nack: &Nack, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() {
            return;
        }
        if nack.go_back {
            return self.on_go_back(now, nack, publisher);
        }
        if nack.missing {
            return self.on_missing(now, nack, publisher);
        }
        //= docs/specs/transport.md#TRN-36 trimmed packets
        if !self.recovery.scoreboard.record(nack.psn).is_some_and(|record| record.is_current(nack.timestamp_echo)) {
            self.stats.stale_nacks += 1;
            return;
        }
        self.stats.nacks_last += u64::from(nack.last_port);
        let cause = if nack.last_port { LossCause::TrimmedLast } else { LossCause::Trimmed };
        self.declare_lost(now, nack.psn, cause, publisher);
    }

    //= docs/specs/transport.md#TRN-21 settling packets
    #[inline]
    fn settle(&mut self, now: Time, ack: &Ack, repairs: &mut Repairs) -> Tally {
        let mut tally = Tally::default();
        let min_rtt_ps = self.rtt().min_ps();
        let Self { recovery, segmenter, frames, balancer, features, path, .. } = self;
        let now = path.at(now);
        let header_bytes = frames.header_bytes;
        let reported = ack.packets > 0 && ack.port.ev(path.evs.into()).is_some();
        let mut settled = |packet: Settled| {
            let Settled { psn, record } = packet;
            let bytes = u32::from(record.payload_bytes) + header_bytes;
            tally.packets += 1;
            tally.payload_bytes += u64::from(record.payload_bytes);
            if record.was_lost() {
                repairs.on_repaired(now.time, &record, min_rtt_ps, bytes.into());
            }
            if record.sent_at == ack.timestamp_echo {
                tally.echoed = Some(record.payload_bytes);
            }
            if features.packet_feedback {
                let was_lost = record.lost().is_some();
                let info = PacketInfo { psn, ev: record.ev, bytes, sent_at: record.sent_at, was_lost, reported };
                balancer.on_packet_acked(now, &info);
            }
            //= docs/specs/transport.md#TRN-24 delivered messages
            tally.messages += u64::from(segmenter.settle(record.message, now.time));
        };
        recovery.scoreboard.settle(ack.cumulative, ack.sack_base, &ack.bitmap, &mut settled);
        tally
    }

    /// Accounts for newly acknowledged packets. Returns their wire bytes.
    #[inline]
    fn on_tally(&mut self, now: Time, tally: &Tally, repairs: &Repairs) -> u64 {
        if tally.packets == 0 {
            return 0;
        }
        let wire_bytes = tally.payload_bytes + tally.packets * u64::from(self.frames.header_bytes);
        self.recovery.in_flight_bytes -= wire_bytes - repairs.late_bytes;
        self.liveness.progress_at = now;
        self.recovery.on_progress();
        self.stats.packets_acked += tally.packets;
        self.stats.bytes_acked += tally.payload_bytes;
        self.stats.messages_delivered += tally.messages;
        if repairs.packets > 0 {
            self.on_repairs(now, repairs);
        }
        wire_bytes
    }

    //= docs/specs/transport.md#TRN-38 reordering window
    #[cold]
    fn on_repairs(&mut self, now: Time, repairs: &Repairs) {
        self.stats.late_acks += repairs.late;
        self.stats.spurious_retransmits += repairs.spurious;
        self.recovery.learn(now, repairs.gap_spurious > 0, repairs.gap_confirmed);
    }

    #[inline]
    fn credit(&mut self, now: Time, ack: &Ack, tally: &Tally, wire_bytes: u64, publisher: &mut impl Publisher) {
        let rtt_ps = self.sample_rtt(now, ack);
        //= docs/specs/transport.md#TRN-23 feedback of an ACK
        let reports = ack.packets > 0;
        if !reports && tally.packets == 0 {
            return;
        }
        let ev = ack.port.ev(self.path.evs.into());
        let packets = u16::from(ack.packets.max(1));
        let mut info = AckInfo {
            ev: ev.unwrap_or_default(),
            marked: reports && ack.marked,
            packets,
            marked_packets: if reports { u16::from(ack.marked_packets).min(packets) } else { 0 },
            bytes: wire_bytes,
            rtt_ps,
            hops: ack.hops,
            packet_bytes: tally.echoed.map_or(self.path.packet_bytes, |payload| self.wire_bytes(payload)),
            in_flight_bytes: self.recovery.in_flight_bytes,
            unacked_packets: self.recovery.scoreboard.span(),
            unsent_bytes: self.segmenter.unsent_bytes,
            window_bytes: 0,
        };
        self.stats.marked_acks += u64::from(info.marked);
        match self.calibration {
            Some(_) => self.learn(now, &mut info, reports),
            None => self.cc.on_ack(self.path.at(now), &info),
        }
        if !reports {
            return;
        }
        if (ack.misrouted || self.rss_queue.is_some()) && self.features.sprays {
            self.learn_rss_queue(ack);
        }
        info.window_bytes = self.cc.window_bytes(&self.path);
        //= docs/specs/transport.md#TRN-64 as if it had been marked
        info.marked |= ack.misrouted;
        if !ack.echoes.is_empty() {
            self.on_echoes(now, ack, info.rtt_ps);
        }
        match ev {
            Some(_) => self.balancer.on_ack(self.path.at(now), &info, publisher),
            None => self.stats.foreign_evs += 1,
        }
        self.watch_drain(now);
    }

    /// Learns which queue the packets arrived on, except from marked echoes.
    #[inline(never)]
    fn learn_rss_queue(&mut self, ack: &Ack) {
        let right = self.rss_queue.get_or_insert_default();
        let evs = self.path.evs.into();
        right.learn(ack.port, evs, ack.misrouted);
        ack.echoes.iter().filter(|(_, marked)| !marked).for_each(|(port, _)| right.learn(port, evs, false));
    }

    //= docs/specs/transport.md#TRN-25 several echoes
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    #[inline(never)]
    fn on_echoes(&mut self, now: Time, ack: &Ack, rtt_ps: u64) {
        // With misrouted packets a mark may mean one.
        let shows_all = self.rss_queue.is_some();
        for (port, marked) in ack.echoes.iter() {
            let marked = marked && (shows_all || self.shows_mark(rtt_ps));
            match port.ev(self.path.evs.into()) {
                Some(ev) => self.balancer.on_echo(self.path.at(now), ev, marked),
                None => self.stats.foreign_evs += 1,
            }
        }
    }

    /// Returns the ACK's round-trip time, recorded as a sample, or else the estimate; never zero.
    //= docs/specs/transport.md#TRN-22 round-trip times
    #[inline]
    fn sample_rtt(&mut self, now: Time, ack: &Ack) -> u64 {
        if ack.packets > 0 {
            if (self.liveness.started_at..=now).contains(&ack.timestamp_echo) {
                let rtt_ps = now.since(ack.timestamp_echo).max(1);
                self.recovery.on_rtt_sample(now, rtt_ps);
                return rtt_ps;
            }
            self.stats.invalid_echoes += 1;
        }
        self.recovery.expected_rtt_ps()
    }

    //= docs/specs/transport.md#TRN-37 reports of losses
    #[inline(never)]
    pub(super) fn declare_lost(&mut self, now: Time, psn: u64, cause: LossCause, publisher: &mut impl Publisher) {
        let Some(&record) = self.recovery.scoreboard.record(psn) else { return };
        //= docs/specs/transport.md#TRN-36 trimmed packets
        let first = cause.is_trim() || self.recovery.repair == Repair::GoBackN;
        let place = if first { Lost::First } else { Lost::Last };
        if !self.recovery.scoreboard.on_lost(psn, cause, place) {
            return;
        }
        let bytes = self.wire_bytes(record.payload_bytes);
        self.recovery.in_flight_bytes -= u64::from(bytes);
        if cause.is_trim() && record.resent().is_some() {
            self.recovery.on_trimmed_again(record.sent_at, self.path.base_rtt_ps);
        }
        self.stats.on_loss(cause);
        let counts = self.learn_loss(now, cause);
        match cause {
            LossCause::GoBackN => self.cc.on_go_back(bytes),
            // Credit is counted in packets, and a lost one has used some.
            _ if !counts && !self.cc.uses_credit() => {}
            _ => self.cc.on_loss(self.path.at(now), bytes, cause),
        }
        let loss = LossInfo {
            psn,
            ev: record.ev,
            bytes,
            cause,
            max_rtt_ps: self.rtt().recent_max_ps(),
            max_before_timeout_ps: self.rtt().max_before_timeout_ps(),
            in_flight_bytes: self.recovery.in_flight_bytes,
            sent_at: record.sent_at,
            expires_at: self.recovery.expiry(&record),
            is_early: self.recovery.has_gap_rule(),
        };
        //= docs/specs/go-back-n.md#GBN-5 reported losses
        if cause != LossCause::GoBackN || self.features.packet_feedback {
            self.balancer.on_loss(self.path.at(now), &loss, publisher);
        }
        self.watch_drain(now);
    }
}
