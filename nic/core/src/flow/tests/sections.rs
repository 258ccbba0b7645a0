//! Ordered Chaos end to end, over paths that keep their order and differ in delay: exactly the lost
//! packets are declared missing. Clauses are those of `docs/specs/ordered-chaos.md`.

use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Data, EvPort, Nack};

use super::pair::{Channel, Pair};
use super::*;
use crate::path::{Balancer, BalancerConfig, LossCause, OrderedChaosConfig};
use crate::rng;
use crate::units::Micros;

/// A FIFO path for each entropy value, with a delay that changes with each frame by up to
/// `spread_ps`.
fn paths(spread_ps: u64, gap_ps: u64) -> Channel {
    let (delay_ps, ack_jitter_ps) = (4 * US, US);
    Channel { delay_ps, jitter_ps: spread_ps, ack_jitter_ps, gap_ps, in_order: true, ..Channel::default() }
}

/// Sends `packets` packets.
fn run(config: FlowConfig, channel: Channel, packets: u64, seed: u64) -> Pair {
    let mut pair = Pair::new(config, channel, &[packets * u64::from(PAYLOAD)], seed);
    pair.run().unwrap_or_else(|stuck| panic!("{stuck}"));
    assert!(!pair.gave_up);
    pair
}

/// Returns settings under which only the receiver reports losses: the sender detects none for a
/// second.
fn chaos(ack_every: u32, subflows: u8, interval_us: u64) -> FlowConfig {
    let mut config = FlowConfig { ack_every, sack_gap_packets: None, ..config() };
    config.rto = RtoConfig { initial_ps: 1_000_000 * US, min_ps: 1_000_000 * US, max_ps: 1_000_000 * US };
    config.give_up_ps = 10_000_000 * US;
    let interval_us = Micros::new(interval_us);
    let chaos = OrderedChaosConfig { subflows, interval_us, ..OrderedChaosConfig::default() };
    config.balancer = BalancerConfig::OrderedChaos(chaos);
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    //= docs/specs/ordered-chaos.md#ORC-24 missing packets are lost
    #[test]
    fn overtaken_packets_are_not_retransmitted(
        seed in any::<u64>(), subflows in 0u32..=5, spread in 0u64..40, ack_every in 1u32..9,
        gap_ps in prop_oneof![Just(0), Just(100_000u64)],
        packets in 1u64..400,
    ) {
        let done = run(chaos(ack_every, 1 << subflows, seed), paths(spread * US, gap_ps), packets, seed);
        let stats = done.sender.stats();
        prop_assert_eq!((stats.retransmits, done.receiver.stats().nacks), (0, 0));
        if spread == 39 && packets > 300 && subflows > 2 {
            prop_assert!(done.receiver.stats().order.reordered > 0, "no reordering");
        }
    }

    //= docs/specs/ordered-chaos.md#ORC-24 missing packets are lost
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    //= docs/specs/ordered-chaos.md#ORC-26 ACKs of trailers
    #[test]
    fn exactly_the_lost_packets_are_resent_without_timeouts(
        seed in any::<u64>(), subflows in 0u32..=5, spread in 0u64..40, ack_every in 1u32..9,
        gap_ps in prop_oneof![Just(0), Just(100_000u64)],
        packets in 1u64..400, loss in 1u32..200, ack_loss in prop_oneof![Just(0), 1u32..100], trim in prop_oneof![Just(0), 1u32..50],
    ) {
        let channel = Channel { loss, ack_loss, trim, ..paths(spread * US, gap_ps) };
        let done = run(chaos(ack_every, 1 << subflows, seed), channel, packets, seed);
        let stats = done.sender.stats();
        prop_assert_eq!((stats.timeouts, stats.sack_gaps, stats.late_acks), (0, 0, 0));
        prop_assert!(stats.missing <= done.channel_counts.packets_lost + done.receiver.stats().trimmed, "{stats:?}");
        if trim == 0 {
            prop_assert_eq!(stats.retransmits, done.channel_counts.packets_lost);
        }
        // Retransmitted packets had not arrived.
        prop_assert_eq!(done.receiver.stats().duplicates, 0);
    }
}

/// When the first packets are sent.
const FIRST: Time = at(1_000);

#[test]
fn a_nack_reports_packets_sent_before_its_frame() {
    //= docs/specs/ordered-chaos.md#ORC-25 stale NACKs
    let mut rng = rng::stream(1, 0);
    let config = chaos(1, 4, 1_000);
    let mut sender = Sender::new(&config, 64, u64::MAX, &mut rng);
    sender.send_message(1, 10_000).unwrap();
    let mut data = Vec::new();
    let mut evs = Vec::new();
    while let Some(Transmit::Data { data: sent, ev }) = sender.poll_transmit(FIRST, &mut rng, &mut ()) {
        data.push(sent);
        evs.push(ev);
    }
    assert_eq!(sender.stats().trailers_sent, data.iter().filter(|data| data.trailer).count() as u64);
    assert!(data.iter().filter(|data| data.trailer).count() > 1);
    let stamps: Vec<Time> = data.iter().map(|data| data.timestamp).collect();
    assert!(stamps.is_sorted_by(|a, b| a < b) && stamps[0] == FIRST, "each later than the one before: {stamps:?}");
    let first = |psn| stamps[data.iter().position(|data| data.psn == psn && !data.trailer).unwrap()];
    let port = evs[data.iter().position(|data| data.psn == 1).unwrap()].port(config.path.evs.into());
    let nack = |psn, timestamp_echo| Nack { psn, timestamp_echo, port, missing: true, ..Nack::default() };
    for stale in
        [nack(1, first(1)), nack(1, Time::ZERO), nack(1, Time::NEVER), nack(1 << 60, first(5)), nack(10, first(5))]
    {
        sender.on_nack(at(US), &stale, &mut ());
    }
    assert_eq!((sender.stats().stale_nacks, sender.stats().missing), (5, 0));
    sender.on_nack(at(US), &nack(1, first(5)), &mut ());
    assert_eq!(sender.stats().missing, 1);
    // A frame sent before the retransmission of a packet reports it missing: stale.
    let Some(Transmit::Data { data: again, .. }) = sender.poll_transmit(at(US), &mut rng, &mut ()) else { panic!() };
    assert!(again.retransmit && again.psn == 1);
    sender.on_nack(at(2 * US), &nack(1, *stamps.last().unwrap()), &mut ());
    assert_eq!((sender.stats().missing, sender.stats().stale_nacks), (1, 6));
    // The trailer after it is not stale.
    let Some(Transmit::Data { data: trailer, .. }) = sender.poll_transmit(at(US), &mut rng, &mut ()) else { panic!() };
    assert!(trailer.trailer && trailer.psn == 1 && trailer.payload_bytes == 0);
    sender.on_nack(at(2 * US), &nack(1, trailer.timestamp), &mut ());
    assert_eq!(sender.stats().missing, 2);
    // A frame with another EV has overtaken it.
    let mut behind = None;
    while let Some(Transmit::Data { data, .. }) = sender.poll_transmit(at(2 * US), &mut rng, &mut ()) {
        behind = Some(data.timestamp);
    }
    let overtaken = Nack { port: EvPort::default(), ..nack(1, behind.unwrap()) };
    sender.on_nack(at(3 * US), &overtaken, &mut ());
    assert_eq!((sender.stats().missing, sender.stats().sack_gaps), (2, 1));
    // A sender without sections ignores such reports.
    let mut sender = Sender::new(&super::config(), 64, u64::MAX, &mut rng);
    sender.send_message(1, 10_000).unwrap();
    while sender.poll_transmit(FIRST, &mut rng, &mut ()).is_some() {}
    sender.on_nack(at(US), &nack(1, FIRST.next()), &mut ());
    assert_eq!((sender.stats().missing, sender.stats().stale_nacks), (0, 1));
    assert!(!sender.balancer().features().sections && LossCause::Missing != LossCause::Trimmed);
}

//= docs/specs/ordered-chaos.md#ORC-20 trailers on the wire
//= docs/specs/ordered-chaos.md#ORC-21 never from trimmed ones
#[test]
fn a_trailer_is_not_a_packet() {
    //= docs/specs/ordered-chaos.md#ORC-23 repeated reports
    //= docs/specs/ordered-chaos.md#ORC-26 ACKs of trailers
    let mut receiver = Receiver::new(&FlowConfig { window_packets: 64, ..config() });
    let section = spray_wire::Section::new(2, 2);
    let trailer = |psn| Data { psn, timestamp: at(US), trailer: true, section, ..Data::default() };
    let mut take = |data: Data, trimmed| {
        let arrival = Arrival { data, port: EvPort::new(9), marked: true, hops: 2, trimmed, ..Arrival::default() };
        assert_eq!(receiver.on_data(Time::ZERO, &arrival), DataOutcome::Trailer);
        let nacks: Vec<Nack> = core::iter::from_fn(|| receiver.poll_nack()).collect();
        (nacks, receiver.poll_ack())
    };
    let (nacks, ack) = take(trailer(9), false);
    let report = |psn| Nack {
        psn,
        timestamp_echo: at(US),
        port: EvPort::new(9),
        hops: 2,
        marked: true,
        payload_bytes: 0,
        missing: true,
        last_port: false,
        go_back: false,
    };
    assert_eq!((nacks, ack), ([1, 5, 9].map(report).to_vec(), None));
    assert_eq!(take(trailer(9), false).0.len(), 3, "again");
    assert!(take(trailer(9), true).0.is_empty(), "a trailer that arrives ahead of the data reports nothing");
    for outside in [64, u64::MAX, 1 << 40] {
        assert_eq!(take(trailer(outside), false), (Vec::new(), None));
    }
    let (_, ack) = take(Data { ack_now: true, ..trailer(1) }, false);
    let ack = ack.unwrap();
    assert_eq!((ack.packets, ack.cumulative, ack.bitmap, ack.port), (0, 0, [0; 4], EvPort::new(9)));
    let stats = receiver.stats();
    assert_eq!((stats.trailers, stats.frames, stats.packets, stats.missing), (7, 0, 0, 7));
}

/// A peer forges trailers, each of which reports many packets missing.
#[test]
fn forged_trailers_trigger_few_nacks() {
    //= docs/specs/ordered-chaos.md#ORC-23 three for each frame
    let mut receiver = Receiver::new(&FlowConfig { window_packets: 4096, ..config() });
    let section = spray_wire::Section::new(2, 100);
    let mut brought = 0;
    for sent in 1..1000u64 {
        let data = Data { psn: 1000 + sent, timestamp: at(US), trailer: true, section, ..Data::default() };
        receiver.on_data(Time::ZERO, &arrival_of(data));
        brought += core::iter::from_fn(|| receiver.poll_nack()).count() as u64;
        assert!(brought <= 256 + 3 * sent, "{brought} for {sent}");
    }
    // The allowance of the first frame is lost, because the initial budget is unused.
    assert_eq!((brought, receiver.stats().missing), (256 + 3 * 998, brought), "the maximum is reached");
}

fn arrival_of(data: Data) -> Arrival {
    Arrival { data, port: EvPort::new(9), hops: 2, ..Arrival::default() }
}
