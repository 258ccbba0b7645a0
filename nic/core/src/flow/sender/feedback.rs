//! What comes back: acknowledgements, NACKs, answers to probes.

use spray_wire::{Ack, Nack, ProbeAck, port_ev};

use super::{Failure, Persist, Sender};
use crate::cc::CongestionControl;
use crate::event::Publisher;
use crate::loss::{Record, Settled, trim};
use crate::path::{AckInfo, Balancer, LossCause, PacketInfo};

/// What one acknowledgement settled.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    payload_bytes: u64,
    wire_bytes: u64,
    /// The part of `wire_bytes` that was in flight; the rest had been declared lost.
    in_flight_bytes: u64,
    late: u64,
    spurious: u64,
    /// Packets declared lost for a gap that had arrived, and that had not.
    gap_mistakes: u64,
    gap_confirmations: u64,
    messages: u64,
    /// Wire bytes of the packet that the acknowledgement echoes, if it is among these.
    echoed_bytes: u32,
}

impl Tally {
    /// Takes note of a packet that was declared lost once: was it?
    //= docs/specs/transport.md#TRN-38
    #[cold]
    fn on_repaired(&mut self, now_ps: u64, record: &Record, min_rtt_ps: u64, wire_bytes: u64) {
        let late = record.lost().is_some();
        if late {
            self.in_flight_bytes -= wire_bytes;
        }
        let spurious = record.resent().is_some() && now_ps.saturating_sub(record.sent_ps) < min_rtt_ps;
        self.late += u64::from(late);
        self.spurious += u64::from(spurious);
        if record.lost().or(record.resent()) == Some(LossCause::SackGap) {
            let mistake = late || spurious;
            self.gap_mistakes += u64::from(mistake);
            self.gap_confirmations += u64::from(!mistake);
        }
    }
}

impl Sender {
    /// Takes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, now_ps: u64, ack: &Ack, publisher: &mut impl Publisher) {
        if self.failure != Failure::None {
            return;
        }
        //= docs/specs/transport.md#TRN-20
        let scoreboard = &self.scoreboard;
        if !self.may_settle(ack.cumulative) || !scoreboard.covers(ack.sack_base, &ack.bitmap) {
            self.stats.invalid_acks += 1;
            return;
        }
        let tally = self.settle(now_ps, ack);
        self.stats.acks += 1;
        self.on_tally(now_ps, &tally);
        if ack.cumulative > self.scoreboard.next_psn() {
            self.pass_over(now_ps, ack);
        }
        self.on_grant(now_ps, ack.max_data);
        self.credit(now_ps, ack, &tally, publisher);
        self.detect_gaps(now_ps, publisher);
    }

    /// Takes the news that a packet was trimmed.
    pub fn on_nack(&mut self, now_ps: u64, nack: &Nack, publisher: &mut impl Publisher) {
        if self.failure != Failure::None {
            return;
        }
        if nack.missing {
            return self.on_missing(now_ps, nack, publisher);
        }
        //= docs/specs/transport.md#TRN-36
        if !trim::is_current(self.scoreboard.record(nack.psn), nack.timestamp_echo_ps) {
            self.stats.stale_nacks += 1;
            return;
        }
        self.lose(now_ps, nack.psn, LossCause::Trimmed, publisher);
    }

    /// Takes the answer to a probe; answers to probes never sent are ignored.
    pub fn on_probe_ack(&mut self, now_ps: u64, ack: &ProbeAck, publisher: &mut impl Publisher) {
        if self.failure != Failure::None || ack.token == 0 || ack.token > self.probe_token {
            return;
        }
        match port_ev(ack.ev, self.evs) {
            Some(ev) => self.balancer.on_probe_ack(now_ps, ev, ack.marked, publisher),
            None => self.stats.foreign_evs += 1,
        }
    }

    //= docs/specs/transport.md#TRN-21
    #[inline]
    fn settle(&mut self, now_ps: u64, ack: &Ack) -> Tally {
        let mut tally = Tally::default();
        let min_rtt_ps = self.rtt.min_ps();
        let Self { scoreboard, outbox, header_bytes, balancer, offers, .. } = self;
        let mut settled = |packet: Settled| {
            let payload_bytes = u64::from(packet.record.payload_bytes);
            let wire_bytes = payload_bytes + u64::from(*header_bytes);
            tally.packets += 1;
            tally.payload_bytes += payload_bytes;
            tally.wire_bytes += wire_bytes;
            tally.in_flight_bytes += wire_bytes;
            if packet.record.was_lost() {
                tally.on_repaired(now_ps, &packet.record, min_rtt_ps, wire_bytes);
            }
            if packet.record.sent_ps == ack.timestamp_echo_ps {
                tally.echoed_bytes = wire_bytes as u32;
            }
            if offers.packet_feedback {
                balancer.on_packet_acked(now_ps, &packet_info(&packet, wire_bytes as u32));
            }
            //= docs/specs/transport.md#TRN-24
            tally.messages += u64::from(outbox.settle(packet.record.message, now_ps));
        };
        scoreboard.on_cumulative(ack.cumulative, &mut settled);
        scoreboard.on_selective(ack.sack_base, &ack.bitmap, &mut settled);
        tally
    }

    #[inline]
    fn on_tally(&mut self, now_ps: u64, tally: &Tally) {
        if tally.packets == 0 {
            return;
        }
        self.in_flight_bytes -= tally.in_flight_bytes;
        self.progress_ps = now_ps;
        //= docs/specs/transport.md#TRN-32
        self.backoff = 0;
        self.stats.packets_acked += tally.packets;
        self.stats.bytes_acked += tally.payload_bytes;
        self.stats.messages_delivered += tally.messages;
        if tally.late + tally.spurious + tally.gap_confirmations > 0 {
            self.on_repairs(now_ps, tally);
        }
    }

    //= docs/specs/transport.md#TRN-38
    #[cold]
    fn on_repairs(&mut self, now_ps: u64, tally: &Tally) {
        self.stats.late_acks += tally.late;
        self.stats.spurious_retransmits += tally.spurious;
        if tally.gap_mistakes > 0 {
            self.patience.on_mistake(now_ps, &self.rtt);
        }
        (0..tally.gap_confirmations).for_each(|_| self.patience.on_confirmation());
    }

    /// Grants only grow: a reordered ACK brings an old one.
    //= docs/specs/transport.md#TRN-5
    #[inline]
    fn on_grant(&mut self, now_ps: u64, max_data: u64) {
        if self.persist.deadline_ps.is_some() {
            // A peer that answers is alive, however long it keeps its grant back.
            self.progress_ps = now_ps;
        }
        if max_data > self.max_data {
            self.max_data = max_data;
            self.persist = Persist::default();
        }
    }

    /// Tells balancer and congestion control what the ACK says of the path.
    #[inline]
    fn credit(&mut self, now_ps: u64, ack: &Ack, tally: &Tally, publisher: &mut impl Publisher) {
        let rtt_ps = self.sample_rtt(now_ps, ack);
        //= docs/specs/transport.md#TRN-23
        let reports = ack.packets > 0;
        if !reports && tally.packets == 0 {
            return;
        }
        let ev = port_ev(ack.ev, self.evs);
        let packets = u16::from(ack.packets.max(1));
        let marked = reports && ack.marked;
        let mut info = AckInfo {
            ev: ev.unwrap_or_default(),
            marked,
            packets,
            marked_packets: if reports { u16::from(ack.marked_packets).min(packets) } else { 0 },
            bytes: tally.wire_bytes,
            rtt_ps,
            hops: ack.hops,
            packet_bytes: match tally.echoed_bytes {
                0 => self.full_packet_bytes,
                bytes => bytes,
            },
            in_flight_bytes: self.in_flight_bytes,
            open_packets: self.scoreboard.span(),
            unsent_bytes: self.outbox.unsent_bytes(),
            window_bytes: 0,
        };
        self.cc.on_ack(now_ps, &info);
        info.window_bytes = self.cc.window_bytes();
        if !reports {
            return;
        }
        self.stats.marked_acks += u64::from(marked);
        //= docs/specs/transport.md#TRN-25
        for (port, marked) in ack.echoes.iter() {
            match port_ev(port, self.evs) {
                Some(ev) => self.balancer.on_echo(now_ps, ev, marked),
                None => self.stats.foreign_evs += 1,
            }
        }
        match ev {
            Some(_) => self.balancer.on_ack(now_ps, &info, publisher),
            None => self.stats.foreign_evs += 1,
        }
        self.watch_drain(now_ps);
    }

    /// Takes the ACK's round-trip time, and returns it or, where it is none, the best known value; never zero.
    //= docs/specs/transport.md#TRN-22
    #[inline]
    fn sample_rtt(&mut self, now_ps: u64, ack: &Ack) -> u64 {
        if ack.packets > 0 {
            let started_ps = self.started_ps.unwrap_or(u64::MAX);
            if (started_ps..=now_ps).contains(&ack.timestamp_echo_ps) {
                let rtt_ps = (now_ps - ack.timestamp_echo_ps).max(1);
                self.rtt.on_sample(now_ps, rtt_ps);
                return rtt_ps;
            }
            self.stats.invalid_echoes += 1;
        }
        match self.rtt.smoothed_ps() {
            0 => self.rto.initial_ps.max(1),
            smoothed_ps => smoothed_ps,
        }
    }
}

#[inline]
fn packet_info(packet: &Settled, bytes: u32) -> PacketInfo {
    let Settled { psn, record } = packet;
    PacketInfo { psn: *psn, ev: record.ev, bytes, sent_ps: record.sent_ps, was_lost: record.lost().is_some() }
}
