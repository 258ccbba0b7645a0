mod losses;

use std::vec;
use std::vec::Vec;

use spray_wire::{Ack, Data, Ev, EvPort, Nack, ProbeAck};

use super::*;
use crate::event::Event;
use crate::loss::SackRule;
use crate::path::{AnyBalancer, LossCause};
use crate::rng::{self, Rng};

/// A sender, its random number generator, and the events that it published.
struct Rig {
    sender: Sender,
    rng: Rng,
    events: Vec<(Time, Event)>,
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
        match self.sender.poll_transmit(at(now_ps), &mut self.rng, &mut self.events)? {
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
        self.sender.on_ack(at(now_ps), &ack, &mut self.events);
    }

    /// Acknowledges single packets sent at `sent_ps`, each by a separate ACK.
    fn ack_each(&mut self, now_ps: u64, sent_ps: u64, psns: impl IntoIterator<Item = u64>) {
        for psn in psns {
            self.ack(now_ps, selective(psn, sent_ps));
        }
    }

    fn timeout(&mut self, now_ps: u64) {
        self.sender.on_timeout(at(now_ps), &mut self.events);
    }

    /// Returns its next wake-up.
    fn wakes_ps(&self) -> Option<u64> {
        self.sender.poll_timeout().map(Time::ps)
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
        timestamp_echo: at(sent_ps),
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
        timestamp_echo: at(sent_ps),
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
        .drain(3_000)
        .iter()
        .map(|d| (d.psn, d.message, d.offset, d.payload_bytes, d.message_bytes, d.ack_now, d.timestamp.ps()))
        .collect();
    assert_eq!(
        packets,
        [
            (0, 9, 0, 1000, 2500, false, 3_000),
            (1, 9, 1000, 1000, 2500, false, 3_000),
            (2, 9, 2000, 500, 2500, true, 3_000),
            (3, 4, 0, 0, 0, true, 3_000),
            (4, 5, 0, 1000, 1000, true, 3_000),
        ]
    );
    assert!(!rig.sender.is_idle());
    rig.ack(8_000, cumulative(5, 3_000));
    let delivered = |message| SenderEvent::MessageDelivered { message, at: at(8_000) };
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
    rig.ack_each(5_000, 0, [2, 2, 0]);
    rig.ack(6_000, cumulative(1, 0));
    let messages: Vec<_> = rig.events();
    assert_eq!(messages, [2, 0].map(|message| SenderEvent::MessageDelivered { message, at: at(5_000) }));
}

#[test]
fn the_message_queue_is_bounded_and_frees_on_events() {
    let mut rig = Rig::new(FlowConfig { window_packets: 1024, ..open_config() });
    (0..MESSAGE_SLOTS as u32).for_each(|message| rig.sender.send_message(message, 1).unwrap());
    assert_eq!(rig.sender.send_message(999, 1), Err(QueueFull));
    rig.drain(0);
    rig.ack(5, cumulative(1, 0));
    assert_eq!(rig.sender.send_message(999, 1), Err(QueueFull), "delivered, but not reported");
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
    // The initial window is the maximum rounded up to whole packets: the first ACK reduces it by
    // one.
    rig.ack(10 * US, cumulative(3, 0));
    assert_eq!(rig.drain(10 * US).len(), 2);
    assert!(rig.sender.in_flight_bytes() <= rig.sender.window_bytes());
}

//= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
#[test]
fn one_packet_is_sent_regardless_of_the_window() {
    let mut config = config();
    config = fixed(config, 10, 1 << 40);
    config.path.packet_bytes = 1;
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
//= docs/specs/transport.md#TRN-6 requesting a grant
#[test]
fn a_sender_without_grant_waits_and_requests_one() {
    let config = FlowConfig { give_up_ps: 2_000 * US, ..open_config() };
    let mut rig = Rig::with_peer(config, 64, 2000);
    rig.sender.send_message(1, 5000).unwrap();
    assert_eq!(rig.psns(0), [0, 1]);
    assert_eq!(rig.wakes_ps(), Some(100 * US), "retransmission timeout");
    let stale = Ack { max_data: 100, ..cumulative(2, 0) };
    rig.ack(10 * US, stale);
    assert_eq!(rig.psns(10 * US), [0; 0]);
    let requested_ps = rig.wakes_ps().unwrap();
    assert_eq!(requested_ps, 60 * US);
    rig.timeout(requested_ps);
    let requests = rig.drain(requested_ps);
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].psn, requests[0].payload_bytes, requests[0].ack_now, requests[0].retransmit),
        (1, 0, true, true)
    );
    let next_ps = rig.wakes_ps().unwrap();
    assert_eq!(next_ps - requested_ps, 100 * US, "requests back off");
    rig.ack(requested_ps + 10 * US, Ack { max_data: 5000, ..cumulative(2, requested_ps) });
    assert_eq!(rig.psns(requested_ps + 10 * US), [2, 3, 4]);
    assert_eq!(rig.sender.stats().grant_requests, 1);
}

//= docs/specs/transport.md#TRN-6 requesting a grant
#[test]
fn the_first_request_has_no_settled_number() {
    let mut rig = Rig::with_peer(open_config(), 64, 0);
    rig.sender.send_message(1, 10).unwrap();
    assert_eq!(rig.psns(0), [0; 0]);
    rig.timeout(100 * US);
    assert_eq!(rig.psns(100 * US), [u64::MAX]);
}

//= docs/specs/transport.md#TRN-9 giving up
#[test]
fn a_waiting_sender_fails_only_if_its_peer_is_silent() {
    for answers in [false, true] {
        let config = FlowConfig { give_up_ps: 5_000 * US, ..open_config() };
        let mut rig = Rig::with_peer(config, 64, 0);
        rig.sender.send_message(1, 10).unwrap();
        rig.drain(0);
        while let Some(at_ps) = rig.wakes_ps().filter(|&at_ps| at_ps < 20_000 * US) {
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
    while let Some(at_ps) = rig.wakes_ps() {
        now_ps = at_ps.max(now_ps);
        rig.timeout(now_ps);
        rig.drain(now_ps);
    }
    assert_eq!(now_ps, 3_010 * US);
    assert_eq!(rig.events(), [SenderEvent::Failed]);
    assert_eq!((rig.poll(now_ps), rig.events()), (None, vec![]));
    rig.ack(now_ps, cumulative(3, 0));
    assert_eq!(rig.sender.stats().acks, 1, "a failed connection ignores feedback");
}

//= docs/specs/transport.md#TRN-8 requesting an ACK
#[test]
fn a_packet_that_stalls_the_sender_requests_its_ack() {
    let coalesced = FlowConfig { ack_every: 4, ..open_config() };
    let mut rig = Rig::with_peer(coalesced, 2, u64::MAX);
    rig.sender.send_message(1, 50_000).unwrap();
    let flags: Vec<_> = rig.drain(0).iter().map(|data| data.ack_now).collect();
    assert_eq!(flags, [false, true], "two packets do not trigger an ACK of four");
    let mut rig = Rig::with_peer(coalesced, 16, u64::MAX);
    rig.sender.send_message(1, 50_000).unwrap();
    assert!(rig.drain(0).iter().all(|data| !data.ack_now), "sixteen packets trigger four ACKs");
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
fn round_trips_are_measured_from_plausible_echoes_only() {
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
    rig.sender.on_probe_ack(at(10 * US), &ProbeAck { token: 1, ..ProbeAck::default() }, &mut rig.events);
    assert_eq!(rig.sender.stats().foreign_evs, 1, "an answer without a probe is ignored");
}

#[test]
fn pacing_sets_the_timer() {
    let mut config = config();
    config = fixed(config, 1 << 30, 8_800_000_000);
    let mut rig = Rig::new(config);
    rig.sender.send_message(1, 10_000).unwrap();
    let mut now_ps = 0;
    let mut sent = 0;
    while sent < 10 {
        sent += rig.drain(now_ps).len();
        now_ps = rig.wakes_ps().unwrap();
        rig.timeout(now_ps);
    }
    // 1100 bytes at 8.8 Gb/s take 1 us; the first packet may be sent at once.
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

/// Echoes reach the balancer, except for marked ones and those outside the set; the congestion
/// control sees one ACK.
//= docs/specs/transport.md#TRN-25 several echoes
#[test]
fn every_echo_of_an_ack_is_recycled() {
    let mut config = open_config();
    (config.path.evs, config.path.bdp_packets) = (16, 10);
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

//= docs/specs/flowcut-switch.md#FCS-5 draining
#[test]
fn a_pause_counts_as_drain_while_it_holds_packets_back() {
    let payload = u64::from(config().payload_bytes);
    let mut rig = Rig::new(FlowConfig { window_packets: 4, ..open_config() });
    rig.sender.send_message(0, 10 * payload).unwrap();
    assert_eq!(rig.psns(0).len(), 4);
    // From 10 us to 25 us.
    rig.sender.on_pause(true);
    rig.ack(10 * US, cumulative(1, 0));
    assert!(rig.psns(10 * US).is_empty());
    rig.sender.on_pause(false);
    rig.ack(25 * US, cumulative(4, 0));
    assert_eq!(rig.psns(25 * US).len(), 4);
    assert_eq!((rig.sender.stats().drains, rig.sender.stats().drained_ps), (1, 15 * US));
    // From 30 us to 40 us, and while nothing is left to send.
    rig.sender.on_pause(true);
    rig.ack(30 * US, cumulative(5, 25 * US));
    assert!(rig.psns(30 * US).is_empty());
    rig.sender.on_pause(false);
    rig.ack(40 * US, cumulative(6, 25 * US));
    assert_eq!(rig.psns(40 * US).len(), 2);
    assert_eq!((rig.sender.stats().drains, rig.sender.stats().drained_ps), (2, 25 * US));
    rig.sender.on_pause(true);
    rig.ack(45 * US, cumulative(8, 25 * US));
    assert!(rig.psns(45 * US).is_empty());
    rig.ack(60 * US, cumulative(10, 40 * US));
    assert_eq!((rig.sender.stats().drains, rig.sender.stats().drained_ps), (2, 25 * US));
}
