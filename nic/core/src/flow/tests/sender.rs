use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, Ev, EvPort, Nack, ProbeAck};

use super::*;
use crate::event::Event;
use crate::loss::SackRule;
use crate::path::{AnyBalancer, BalancerKind, LossCause, PathConfig};
use crate::rng::{self, Rng};

/// A sender with its random numbers and the events it published.
struct Rig {
    sender: Sender,
    rng: Rng,
    events: Vec<(u64, Event)>,
}

impl Rig {
    fn new(config: FlowConfig) -> Self {
        Self::with_peer(config, config.window_packets, config.max_data_bytes)
    }

    fn with_peer(config: FlowConfig, window_packets: u32, max_data: u64) -> Self {
        let mut rng = rng::stream(1, 1);
        Self { sender: Sender::new(&config, window_packets, max_data, &mut rng), rng, events: Vec::new() }
    }

    fn poll(&mut self, now_ps: u64) -> Option<Data> {
        match self.sender.poll_transmit(now_ps, &mut self.rng, &mut self.events)? {
            Transmit::Data { data, .. } => Some(data),
            Transmit::Probe { .. } | Transmit::PullRequest { .. } => panic!("neither probes nor credit are configured"),
        }
    }

    fn drain(&mut self, now_ps: u64) -> Vec<Data> {
        core::iter::from_fn(|| self.poll(now_ps)).collect()
    }

    fn psns(&mut self, now_ps: u64) -> Vec<u64> {
        self.drain(now_ps).iter().map(|data| data.psn).collect()
    }

    fn ack(&mut self, now_ps: u64, ack: Ack) {
        self.sender.on_ack(now_ps, &ack, &mut self.events);
    }

    /// Acknowledges single packets sent at `sent_ps`, each by its own ACK.
    fn ack_each(&mut self, now_ps: u64, sent_ps: u64, psns: impl IntoIterator<Item = u64>) {
        for psn in psns {
            self.ack(now_ps, selective(psn, sent_ps));
        }
    }

    fn timeout(&mut self, now_ps: u64) {
        self.sender.on_timeout(now_ps, &mut self.events);
    }

    fn events(&mut self) -> Vec<SenderEvent> {
        core::iter::from_fn(|| self.sender.poll_event()).collect()
    }

    fn lost(&self) -> (u64, u64, u64) {
        let stats = self.sender.stats();
        (stats.timeouts, stats.sack_gaps, stats.nacks)
    }
}

fn selective(psn: u64, sent_ps: u64) -> Ack {
    Ack {
        timestamp_echo_ps: sent_ps,
        sack_base: psn,
        bitmap: [1, 0, 0, 0],
        packets: 1,
        port: EvPort::new(7),
        ..Ack::default()
    }
}

fn cumulative(below: u64, sent_ps: u64) -> Ack {
    Ack {
        cumulative: below,
        sack_base: below,
        timestamp_echo_ps: sent_ps,
        packets: 1,
        port: EvPort::new(7),
        ..Ack::default()
    }
}

//= docs/specs/transport.md#TRN-1 packets of a message
#[test]
fn messages_become_packets_in_order() {
    let mut rig = Rig::new(open_config());
    for (message, bytes) in [(9, 2500), (4, 0), (5, 1000)] {
        rig.sender.send_message(message, bytes).unwrap();
    }
    let packets: Vec<_> = rig
        .drain(3)
        .iter()
        .map(|d| (d.psn, d.message, d.offset, d.payload_bytes, d.message_bytes, d.ack_now, d.timestamp_ps))
        .collect();
    assert_eq!(
        packets,
        [
            (0, 9, 0, 1000, 2500, false, 3),
            (1, 9, 1000, 1000, 2500, false, 3),
            (2, 9, 2000, 500, 2500, true, 3),
            (3, 4, 0, 0, 0, true, 3),
            (4, 5, 0, 1000, 1000, true, 3),
        ]
    );
    assert!(!rig.sender.is_idle());
    rig.ack(8, cumulative(5, 3));
    let delivered = |message| SenderEvent::MessageDelivered { message, at_ps: 8 };
    assert_eq!(rig.events(), [delivered(9), delivered(4), delivered(5)]);
    assert!(rig.sender.is_idle());
    assert_eq!(rig.sender.poll_timeout(), None);
}

//= docs/specs/transport.md#TRN-24 delivered messages
#[test]
fn delivery_is_reported_once_and_in_order_of_completion() {
    let mut rig = Rig::new(open_config());
    (0..3).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(0);
    rig.ack_each(5, 0, [2, 2, 0]);
    rig.ack(6, cumulative(1, 0));
    let messages: Vec<_> = rig.events();
    assert_eq!(messages, [2, 0].map(|message| SenderEvent::MessageDelivered { message, at_ps: 5 }));
}

#[test]
fn the_message_queue_is_bounded_and_frees_on_events() {
    let mut rig = Rig::new(FlowConfig { window_packets: 1024, ..open_config() });
    (0..MESSAGE_SLOTS as u32).for_each(|message| rig.sender.send_message(message, 1).unwrap());
    assert_eq!(rig.sender.send_message(999, 1), Err(Full));
    rig.drain(0);
    rig.ack(5, cumulative(1, 0));
    assert_eq!(rig.sender.send_message(999, 1), Err(Full), "delivered, but not reported");
    assert_eq!(rig.events().len(), 1);
    assert_eq!(rig.sender.send_message(999, 1), Ok(()));
    assert_eq!(rig.drain(6)[0].message, 999);
}

//= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
#[test]
fn the_window_bounds_what_is_in_flight() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 1_000_000).unwrap();
    let window_packets = rig.sender.window_bytes() / 1100;
    assert_eq!(rig.drain(0).len() as u64, window_packets);
    assert_eq!(rig.sender.in_flight_bytes(), window_packets * 1100);
    // The initial window is the largest one rounded up to whole packets: the first ACK cuts it by one.
    rig.ack(10 * US, cumulative(3, 0));
    assert_eq!(rig.drain(10 * US).len(), 2);
    assert!(rig.sender.in_flight_bytes() <= rig.sender.window_bytes());
}

//= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
#[test]
fn one_packet_goes_whatever_the_window() {
    let mut config = config();
    config.cc = fixed(10, 1 << 40);
    config.cc.packet_bytes = 1;
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 5000).unwrap();
    assert_eq!(rig.psns(0), [0]);
    rig.ack(10, cumulative(1, 0));
    assert_eq!(rig.psns(US), [1]);
}

//= docs/specs/transport.md#TRN-4 the packet window
#[test]
fn numbers_stay_inside_the_lesser_window() {
    for (own, peer) in [(64, 8), (8, 64)] {
        let mut rig = Rig::with_peer(FlowConfig { window_packets: own, ..open_config() }, peer, u64::MAX);
        rig.sender.send_message(1, 100_000).unwrap();
        assert_eq!(rig.psns(0), (0..8).collect::<Vec<_>>());
        rig.ack_each(10, 0, [1, 2, 3]);
        assert_eq!(rig.psns(10), [0; 0], "0 is missing");
        rig.ack_each(10, 0, [0]);
        assert_eq!(rig.psns(10), [8, 9, 10, 11]);
    }
}

//= docs/specs/transport.md#TRN-5 the receiver's grant
//= docs/specs/transport.md#TRN-6 asking for a grant
#[test]
fn a_sender_without_grant_waits_and_asks() {
    let config = FlowConfig { give_up_ps: 2_000 * US, ..open_config() };
    let mut rig = Rig::with_peer(config, 64, 2000);
    rig.sender.send_message(1, 5000).unwrap();
    assert_eq!(rig.psns(0), [0, 1]);
    assert_eq!(rig.sender.poll_timeout(), Some(100 * US), "retransmission timeout");
    let stale = Ack { max_data: 100, ..cumulative(2, 0) };
    rig.ack(10 * US, stale);
    assert_eq!(rig.psns(10 * US), [0; 0]);
    let asked_ps = rig.sender.poll_timeout().unwrap();
    assert_eq!(asked_ps, 60 * US);
    rig.timeout(asked_ps);
    let asks = rig.drain(asked_ps);
    assert_eq!(asks.len(), 1);
    assert_eq!((asks[0].psn, asks[0].payload_bytes, asks[0].ack_now, asks[0].retransmit), (1, 0, true, true));
    let next_ps = rig.sender.poll_timeout().unwrap();
    assert_eq!(next_ps - asked_ps, 100 * US, "asks back off");
    rig.ack(asked_ps + 10 * US, Ack { max_data: 5000, ..cumulative(2, asked_ps) });
    assert_eq!(rig.psns(asked_ps + 10 * US), [2, 3, 4]);
    assert_eq!(rig.sender.stats().grant_requests, 1);
}

//= docs/specs/transport.md#TRN-6 asking for a grant
#[test]
fn the_first_ask_of_all_has_no_settled_number() {
    let mut rig = Rig::with_peer(open_config(), 64, 0);
    rig.sender.send_message(1, 10).unwrap();
    assert_eq!(rig.psns(0), [0; 0]);
    rig.timeout(100 * US);
    assert_eq!(rig.psns(100 * US), [u64::MAX]);
}

//= docs/specs/transport.md#TRN-9 giving up
#[test]
fn a_silent_peer_fails_a_waiting_sender_and_an_answering_one_does_not() {
    for answers in [false, true] {
        let config = FlowConfig { give_up_ps: 5_000 * US, ..open_config() };
        let mut rig = Rig::with_peer(config, 64, 0);
        rig.sender.send_message(1, 10).unwrap();
        rig.drain(0);
        while let Some(at_ps) = rig.sender.poll_timeout().filter(|&at_ps| at_ps < 20_000 * US) {
            rig.timeout(at_ps);
            if !rig.drain(at_ps).is_empty() && answers {
                rig.ack(at_ps, cumulative(0, at_ps));
            }
        }
        assert_eq!(rig.sender.has_failed(), !answers);
    }
}

//= docs/specs/transport.md#TRN-9 giving up
#[test]
fn no_progress_ends_in_failure_at_a_known_time() {
    let config = FlowConfig { give_up_ps: 3_000 * US, ..config() };
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 100_000).unwrap();
    rig.drain(0);
    rig.ack(10 * US, cumulative(1, 0));
    let mut now_ps = 0;
    while let Some(at_ps) = rig.sender.poll_timeout() {
        now_ps = at_ps.max(now_ps);
        rig.timeout(now_ps);
        rig.drain(now_ps);
    }
    assert_eq!(now_ps, 3_010 * US);
    assert_eq!(rig.events(), [SenderEvent::Failed]);
    assert_eq!((rig.poll(now_ps), rig.events()), (None, vec![]));
    rig.ack(now_ps, cumulative(3, 0));
    assert_eq!(rig.sender.stats().acks, 1, "the dead take nothing");
}

//= docs/specs/transport.md#TRN-8 asking for an ACK
#[test]
fn a_stalling_packet_asks_for_its_ack() {
    let coalesced = FlowConfig { ack_every: 4, ..open_config() };
    let mut rig = Rig::with_peer(coalesced, 2, u64::MAX);
    rig.sender.send_message(1, 50_000).unwrap();
    let flags: Vec<_> = rig.drain(0).iter().map(|data| data.ack_now).collect();
    assert_eq!(flags, [false, true], "two packets never make an ACK of four");
    let mut rig = Rig::with_peer(coalesced, 16, u64::MAX);
    rig.sender.send_message(1, 50_000).unwrap();
    assert!(rig.drain(0).iter().all(|data| !data.ack_now), "sixteen make four");
}

//= docs/specs/transport.md#TRN-34 A timeout of its own
#[test]
fn only_what_timed_out_goes_again() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: None, ..open_config() });
    (0..4).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    let first = rig.drain(0);
    (4..6).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(40 * US);
    rig.ack_each(10 * US, 0, [1, 3]);
    assert_eq!(rig.sender.poll_timeout(), Some(50 * US));
    rig.timeout(50 * US - 1);
    assert_eq!(rig.lost(), (0, 0, 0));
    rig.timeout(50 * US);
    let again = rig.drain(50 * US);
    assert_eq!(again.iter().map(|data| data.psn).collect::<Vec<_>>(), [0, 2]);
    //= docs/specs/transport.md#TRN-2 retransmissions
    for data in again {
        let original = first[data.psn as usize];
        assert!(data.retransmit && data.ack_now);
        assert_eq!(data, Data { timestamp_ps: 50 * US, ack_now: true, retransmit: true, ..original });
    }
    assert_eq!(rig.events.iter().filter(|(_, e)| matches!(e, Event::Timeout { .. })).count(), 2);
    let retransmit = Event::Retransmit { psn: 2, cause: LossCause::Timeout };
    assert!(rig.events.contains(&(50 * US, retransmit)));
}

//= docs/specs/transport.md#TRN-32 backoff
#[test]
fn timeouts_in_a_row_back_off_and_progress_resets_them() {
    let mut rig = Rig::new(open_config());
    rig.sender.send_message(1, 2000).unwrap();
    rig.drain(0);
    let mut gaps = vec![];
    let mut now_ps = 0;
    for _ in 0..5 {
        let at_ps = rig.sender.poll_timeout().unwrap();
        gaps.push((at_ps - now_ps) / US);
        now_ps = at_ps;
        rig.timeout(now_ps);
        assert_eq!(rig.psns(now_ps), [0, 1], "a flight that expires together counts once");
    }
    assert_eq!(gaps, [100, 200, 400, 800, 800]);
    rig.ack(now_ps + 10 * US, selective(1, now_ps));
    assert_eq!(rig.sender.poll_timeout(), Some(now_ps + 50 * US));
}

/// Sends `count` packets at 0, 1, 2, ... us.
fn spaced(count: u64, config: FlowConfig) -> Rig {
    let mut rig = Rig::new(config);
    for psn in 0..count {
        rig.sender.send_message(psn as u32, 1000).unwrap();
        assert_eq!(rig.psns(psn * US), [psn]);
    }
    rig
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn a_gap_is_a_loss_after_enough_arrivals_and_enough_time() {
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: Some(4), ..open_config() });
    for psn in 1..4 {
        rig.ack(psn * US + 10 * US, selective(psn, psn * US));
    }
    rig.timeout(30 * US);
    assert_eq!(rig.lost(), (0, 0, 0), "three arrivals");
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: Some(4), ..open_config() });
    (1..5).for_each(|psn| rig.ack(psn * US + 4 * US, selective(psn, psn * US)));
    assert_eq!(rig.lost(), (0, 0, 0), "8 us after it was sent, with round trips of 4");
    rig.ack(11 * US, selective(7, 7 * US));
    assert_eq!(rig.lost(), (0, 1, 0), "over 2 5/8 of them");
    assert_eq!(rig.psns(11 * US), [0]);
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn reordering_within_a_round_trip_is_no_loss() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: Some(2), ..open_config() });
    (0..10).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(0);
    (1..10).for_each(|psn| rig.ack(10 * US + psn, selective(psn, 0)));
    assert_eq!(rig.lost(), (0, 0, 0));
    let deadline_ps = rig.sender.poll_timeout().unwrap();
    let smoothed_ps = rig.sender.rtt().smoothed_ps();
    assert_eq!(deadline_ps, smoothed_ps + smoothed_ps / 8 + 6 * (smoothed_ps / 4));
    rig.timeout(deadline_ps);
    assert_eq!(rig.lost(), (0, 1, 0), "no further ACK is needed");
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn a_slow_path_seen_lately_is_waited_out() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: Some(2), ..open_config() });
    (0..6).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(0);
    rig.ack(10 * US, selective(1, 0));
    rig.ack(25 * US, selective(2, 0));
    (6..12).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(26 * US);
    rig.ack_each(36 * US, 26 * US, [0, 3, 4, 5]);
    rig.ack_each(36 * US, 26 * US, [7, 8, 9]);
    let extra_ps = 6 * (rig.sender.rtt().smoothed_ps() / 4);
    assert_eq!(rig.sender.poll_timeout(), Some((26 + 25) * US + extra_ps));
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn without_a_gap_rule_only_timeouts_and_trims_lose() {
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: None, ..open_config() });
    (1..12).for_each(|psn| rig.ack(psn * US + 10 * US, selective(psn, psn * US)));
    rig.timeout(49 * US);
    assert_eq!(rig.lost(), (0, 0, 0));
    rig.timeout(51 * US);
    assert_eq!(rig.lost(), (1, 0, 0));
}

//= docs/specs/transport.md#TRN-36 trimmed packets
#[test]
fn a_trimmed_packet_goes_again_first_and_once() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    rig.drain(0);
    let before = (rig.sender.window_bytes(), rig.sender.in_flight_bytes());
    let nack = Nack { psn: 3, ..Nack::default() };
    for _ in 0..2 {
        rig.sender.on_nack(5 * US, &nack, &mut rig.events);
    }
    //= docs/specs/transport.md#TRN-37 reports of losses
    assert_eq!((rig.sender.window_bytes(), rig.sender.in_flight_bytes()), (before.0 - 1100, before.1 - 1100));
    assert_eq!((rig.lost(), rig.sender.stats().stale_nacks), ((0, 0, 1), 1));
    // Window and flight shrank by the same: the next ACK makes room, and the trimmed packet takes it.
    assert_eq!(rig.psns(5 * US), [0; 0]);
    rig.ack(5 * US, selective(0, 0));
    assert_eq!(rig.psns(5 * US), [3]);
    rig.sender.on_nack(6 * US, &nack, &mut rig.events);
    assert_eq!(rig.sender.stats().stale_nacks, 2, "of the first transmission, not the second");
    rig.sender.on_nack(6 * US, &Nack { timestamp_echo_ps: 5 * US, ..nack }, &mut rig.events);
    assert_eq!(rig.sender.stats().nacks, 2);
}

//= docs/specs/transport.md#TRN-37 reports of losses
#[test]
fn every_lost_packet_cuts_the_window_by_its_bytes() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    let packets = rig.drain(0).len() as u64;
    let window_bytes = rig.sender.window_bytes();
    rig.timeout(100 * US);
    assert_eq!(rig.lost().0, packets);
    assert_eq!(rig.sender.in_flight_bytes(), 0);
    assert_eq!(rig.sender.window_bytes(), (window_bytes - packets * 1100).max(1100));
    //= docs/specs/transport.md#TRN-2 retransmissions
    let again = rig.poll(100 * US).unwrap();
    assert!(again.psn == 0 && again.ack_now && again.retransmit, "in the middle of a message too");
}

#[test]
fn an_ack_in_time_saves_a_packet_declared_lost() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    rig.drain(0);
    rig.sender.on_nack(5 * US, &Nack { psn: 3, ..Nack::default() }, &mut rig.events);
    rig.ack(6 * US, selective(3, 0));
    assert_eq!(rig.sender.stats().late_acks, 1);
    assert!(rig.drain(6 * US).iter().all(|data| !data.retransmit));
}

//= docs/specs/transport.md#TRN-20 refused ACKs
#[test]
fn claims_of_packets_never_sent_change_nothing() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 3000).unwrap();
    rig.drain(0);
    let base = Ack { packets: 1, max_data: u64::MAX, ..Ack::default() };
    for ack in [
        Ack { cumulative: 4, ..base },
        Ack { cumulative: u64::MAX, ..base },
        Ack { sack_base: 2, bitmap: [2, 0, 0, 0], ..base },
        Ack { sack_base: u64::MAX - 3, bitmap: [u64::MAX; 4], ..base },
    ] {
        rig.ack(10 * US, ack);
    }
    assert_eq!((rig.sender.stats().invalid_acks, rig.sender.stats().packets_acked), (4, 0));
    assert_eq!(rig.sender.rtt().smoothed_ps(), 0);
}

//= docs/specs/transport.md#TRN-22 round-trip times
#[test]
fn round_trips_come_from_believable_echoes_only() {
    let mut rig = Rig::new(open_config());
    rig.sender.send_message(1, 30_000).unwrap();
    rig.drain(5 * US);
    rig.ack(10 * US, cumulative(1, 11 * US));
    rig.ack(10 * US, cumulative(1, 4 * US));
    assert_eq!((rig.sender.rtt().smoothed_ps(), rig.sender.stats().invalid_echoes), (0, 2));
    rig.ack(10 * US, Ack { packets: 0, ..cumulative(1, 5 * US) });
    assert_eq!(rig.sender.rtt().smoothed_ps(), 0, "nothing arrived to measure");
    rig.ack(10 * US, cumulative(1, 10 * US));
    assert_eq!(rig.sender.rtt().smoothed_ps(), 1, "never zero");
}

//= docs/specs/transport.md#TRN-23 feedback of an ACK
#[test]
fn echoes_outside_the_set_are_counted_and_ignored() {
    let mut config = open_config();
    config.path.evs = 16;
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 30_000).unwrap();
    rig.drain(0);
    rig.ack(10 * US, Ack { port: Ev::new(15).port(16), ..cumulative(1, 0) });
    assert_eq!(rig.sender.stats().foreign_evs, 0);
    rig.ack(10 * US, Ack { port: Ev::new(16).port(16), ..cumulative(2, 0) });
    assert_eq!((rig.sender.stats().foreign_evs, rig.sender.stats().packets_acked), (1, 2));
    rig.sender.on_probe_ack(10 * US, &ProbeAck { token: 1, ..ProbeAck::default() }, &mut rig.events);
    assert_eq!(rig.sender.stats().foreign_evs, 1, "answers to no probe are not even looked at");
}

#[test]
fn pacing_sets_the_timer() {
    let mut config = config();
    config.cc = fixed(1 << 30, 8_800_000_000);
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 10_000).unwrap();
    let mut now_ps = 0;
    let mut sent = 0;
    while sent < 10 {
        sent += rig.drain(now_ps).len();
        now_ps = rig.sender.poll_timeout().unwrap();
        rig.timeout(now_ps);
    }
    // 1100 bytes at 8.8 Gb/s take 1 us; the first may go at once.
    assert!((9 * US..=11 * US).contains(&now_ps) || now_ps == 100 * US, "{now_ps}");
}

#[test]
fn all_ev_ports_are_accepted_at_the_largest_set() {
    let mut rig = Rig::new(open_config());
    rig.sender.send_message(1, 30_000).unwrap();
    rig.drain(0);
    for port in [1, 49_152, 65_535] {
        rig.ack(10 * US, Ack { port: EvPort::new(port), ..cumulative(1, 0) });
    }
    assert_eq!(rig.sender.stats().foreign_evs, 0);
}

//= docs/specs/transport.md#TRN-38 patience
#[test]
fn a_packet_mistaken_for_lost_teaches_patience() {
    let config = FlowConfig { sack_gap_packets: Some(2), ..open_config() };
    let mut rig = Rig::new(config);
    let mut start_ps = 0;
    let mut waits = vec![];
    for round in 0..3u64 {
        let first = 6 * round;
        (0..6).for_each(|i| rig.sender.send_message((first + i) as u32, 1000).unwrap());
        rig.drain(start_ps);
        rig.ack_each(start_ps + 8 * US, start_ps, first + 1..first + 6);
        let lost_ps = rig.sender.poll_timeout().unwrap();
        waits.push((lost_ps - start_ps) / 1000);
        rig.timeout(lost_ps);
        // Even rounds: the first transmission's ACK comes just before, odd ones: just after it is sent again.
        if round == 1 {
            assert_eq!(rig.psns(lost_ps), [first]);
        }
        rig.ack(lost_ps + US, selective(first, start_ps));
        start_ps += 1000 * US;
    }
    assert!(waits[1] > waits[0] + 1_900 && waits[2] > waits[1] + 1_900, "two quarters of 8 us in ns: {waits:?}");
    assert_eq!((rig.sender.stats().late_acks, rig.sender.stats().spurious_retransmits), (2, 1));
}

#[test]
fn the_plain_rule_takes_all_that_is_missing_for_lost_and_waits_for_nothing() {
    //= docs/specs/transport.md#TRN-39 plain gap rule
    for gap in [6, 32] {
        let mut rig = Rig::new(plain(gap));
        rig.sender.send_message(1, 60 * u64::from(PAYLOAD)).unwrap();
        assert_eq!(rig.drain(0).len(), 60);
        let (now_ps, gap) = (10 * US, u64::from(gap));
        rig.ack_each(now_ps, 0, [1, gap - 3, gap - 1]);
        assert_eq!(rig.lost().1, 0, "one short of {gap}");
        rig.ack_each(now_ps, 0, [gap]);
        let missing: Vec<_> = (0..gap).filter(|psn| ![1, gap - 3, gap - 1].contains(psn)).collect();
        assert_eq!(rig.psns(now_ps), missing, "one that only two overtook too");
        // Sent again, they must be overtaken again, and one that arrives overtakes nothing.
        rig.ack_each(now_ps, 0, [gap + 1, gap + 2, 0]);
        assert_eq!(rig.lost().1, missing.len() as u64);
    }
}

fn plain(gap: u32) -> FlowConfig {
    FlowConfig { sack_gap_packets: Some(gap), sack_rule: SackRule::Plain, ..open_config() }
}

proptest! {
    /// OFAN §4: "retransmits all missing packets when the gap between the lowest and highest acknowledged sequence
    /// numbers crosses a configured threshold", read from one end of the numbers to the other.
    #[test]
    fn the_plain_rule_is_the_papers(gap in 1..12u32, acks in prop::collection::vec(0..64u64, 1..200)) {
        //= docs/specs/transport.md#TRN-39 plain gap rule
        let mut rig = Rig::new(plain(gap));
        rig.sender.send_message(1, 64 * u64::from(PAYLOAD)).unwrap();
        // Transmissions, as the paper numbers packets: the packet of each, and what is known of it.
        let mut sent: Vec<_> = rig.psns(0).iter().map(|&psn| (psn, Is::Missing)).collect();
        for (i, &psn) in acks.iter().enumerate() {
            let now_ps = 10 * US + i as u64;
            rig.ack(now_ps, selective(psn, 0));
            // Of a packet that was sent again nobody knows which transmission arrived.
            let is_one = sent.iter().filter(|(of, _)| *of == psn).count() == 1;
            for (_, is) in sent.iter_mut().filter(|sent| **sent == (psn, Is::Missing)) {
                *is = if is_one { Is::Acknowledged } else { Is::Settled };
            }
            let highest = sent.iter().rposition(|(_, is)| *is == Is::Acknowledged);
            let lowest = sent.iter().position(|(_, is)| *is == Is::Missing);
            let mut again = vec![];
            if let (Some(highest), Some(lowest)) = (highest, lowest) && highest >= lowest + gap as usize {
                for (psn, is) in sent[..highest].iter_mut().filter(|(_, is)| *is == Is::Missing) {
                    *is = Is::Settled;
                    again.push(*psn);
                }
            }
            sent.extend(again.iter().map(|&psn| (psn, Is::Missing)));
            prop_assert_eq!(rig.psns(now_ps), again, "after {:?}", &acks[..=i]);
        }
    }
}

/// What is known of a transmission: nothing, that it arrived, or that it no longer matters.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Missing,
    Acknowledged,
    Settled,
}

/// Echoes reach the balancer, marked and foreign ones do not count; the congestion control sees one ACK.
//= docs/specs/transport.md#TRN-25 several echoes
#[test]
fn every_echo_of_an_ack_is_recycled() {
    let mut config = open_config();
    config.path = PathConfig { evs: 16, ..PathConfig::new(BalancerKind::Reps, 10 * US, 10) };
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 30_000).unwrap();
    rig.drain(0);
    let mut echoes = spray_wire::Echoes::default();
    for (ev, marked) in [(3, false), (4, true), (5, false)] {
        echoes.push(Ev::new(ev).port(16), marked, 15);
    }
    echoes.push(Ev::new(16).port(16), false, 15);
    let window = rig.sender.window_bytes();
    rig.ack(10 * US, Ack { port: Ev::new(6).port(16), packets: 5, marked_packets: 1, echoes, ..cumulative(1, 0) });
    let AnyBalancer::Reps(reps) = rig.sender.balancer() else { panic!("not REPS") };
    assert_eq!(reps.cached_evs(), [3, 5, 6].map(Ev::new));
    assert_eq!((rig.sender.stats().foreign_evs, rig.sender.stats().acks), (1, 1));
    let mut plain = Rig::new(config);
    plain.sender.send_message(1, 30_000).unwrap();
    plain.drain(0);
    plain.ack(10 * US, Ack { port: Ev::new(6).port(16), packets: 5, marked_packets: 1, ..cumulative(1, 0) });
    assert_eq!(rig.sender.window_bytes(), plain.sender.window_bytes(), "from {window}");
}
