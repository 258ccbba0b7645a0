//! The ideal erasure code; clauses are those of `docs/specs/erasure.md`.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, Ev};

use super::pair::{Channel, Pair};
use super::*;
use crate::loss::{SackRule, Span};
use crate::rng;

/// A channel with a delay of 5 us; shares of lost data, lost ACKs and trimmed data packets in
/// thousandths.
fn channel([loss, ack_loss, trim]: [u32; 3], jitter_ps: u64) -> Channel {
    Channel { loss, ack_loss, trim, delay_ps: 5 * US, jitter_ps, ack_jitter_ps: jitter_ps, ..Channel::default() }
}

/// Sends `messages`; returns both ends, and the time at which the last message was delivered.
fn run(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> (Pair, u64) {
    finish(Pair::new(config, channel, messages, seed).erasure_coded())
}

fn finish(mut pair: Pair) -> (Pair, u64) {
    pair.run().unwrap_or_else(|stuck| panic!("{stuck}"));
    assert!(!pair.gave_up);
    let end_ps = pair.now.ps();
    pair.drain();
    (pair, end_ps)
}

/// Checks the invariants after everything has been delivered.
fn check(pair: &Pair, messages: &[u64]) {
    let needed: u64 = messages.iter().map(|bytes| bytes.div_ceil(u64::from(PAYLOAD)).max(1)).sum();
    let (sent, got) = (pair.sender.stats(), pair.receiver.stats());
    let mut completed: Vec<u64> = vec![0; messages.len()];
    pair.completed.iter().for_each(|(message, bytes)| completed[*message as usize] += bytes.max(&1));
    let once: Vec<u64> = messages.iter().map(|bytes| *bytes.max(&1)).collect();
    assert_eq!(completed, once, "each message once");
    // ERA-2: no message completes on fewer packets than it needs.
    assert!(got.packets >= needed && sent.packets_sent >= needed, "{needed}: {sent:?} {got:?}");
    assert_eq!(got.bytes, messages.iter().sum::<u64>(), "the grant counts a message once");
    assert_eq!(got.frames, got.packets + got.duplicates + got.trimmed + got.out_of_window + got.invalid);
    assert_eq!(got.invalid, 0);
    assert_eq!(sent.packets_sent, pair.channel_counts.lost + got.frames);
    assert_eq!(sent.invalid_acks, 0);
    assert!(pair.sender.is_idle() && pair.sender.in_flight_bytes() == 0);
    assert_eq!(sent.packets_sent - sent.retransmits + sent.packets_spared, needed);
}

/// One hundred packets per round trip at a constant rate.
fn coded(rule: SackRule) -> FlowConfig {
    FlowConfig { sack_rule: rule, window_packets: 512, ..fixed(config(), 1 << 30, 80_000_000_000) }
}

#[test]
fn random_loss_costs_packets_and_no_timeouts() {
    //= docs/specs/erasure.md#ERA-1 fresh coded packets
    //= docs/specs/erasure.md#ERA-4
    let messages = [2_000 * u64::from(PAYLOAD)];
    for (share, seed) in [(0, 1), (10, 2), (50, 3), (200, 4)] {
        let channel = channel([share, 0, 0], 0);
        let (pair, end_ps) = run(coded(SackRule::Patient), channel, &messages, seed);
        check(&pair, &messages);
        let (stats, end_us) = (*pair.sender.stats(), end_ps / US);
        assert_eq!(stats.timeouts, 0, "{share}: {stats:?}");
        // 2,000 packets of 1,100 bytes take 220 us at 80 Gb/s. Lost packets are replaced, the last
        // of them repeatedly, after two and a half round trips each.
        let ideal_us = 230 * 1000 / (1000 - u64::from(share));
        assert!(end_us <= ideal_us + 80 + u64::from(share) / 2, "{share}: {end_us} us, ideally {ideal_us}");
        let uncoded = FlowConfig { sack_gap_packets: None, ..coded(SackRule::Patient) };
        let (_, uncoded_ps) = finish(Pair::new(uncoded, channel, &messages, seed));
        let uncoded_us = uncoded_ps / US;
        assert!(end_us <= uncoded_us, "{share}: {end_us} us, without {uncoded_us}");
        let more = stats.packets_sent - 2_000;
        assert!(
            more <= 2_000 * u64::from(share) / (1000 - u64::from(share)) * 3 / 2 + 5,
            "{share}: {more} more packets"
        );
    }
}

#[test]
fn superfluous_packets_are_not_sent() {
    //= docs/specs/erasure.md#ERA-2 packets counted for a message
    //= docs/specs/erasure.md#ERA-5 settling numbers never sent
    // Frames that are up to 4 round trips late are declared lost by the plain rule; both copies
    // count, and the last packets need not be sent.
    let messages = [600_500, 0, 1, 1_999, 350_000, 1_000];
    let mut spared = 0;
    for seed in 0..40 {
        let config = FlowConfig { sack_gap_packets: Some(3), ..coded(SackRule::Plain) };
        let (pair, _) = run(config, channel([0; 3], 40 * US), &messages, seed);
        check(&pair, &messages);
        spared += pair.sender.stats().packets_spared;
    }
    assert!(spared > 0, "no message was decoded before all its packets were sent");
}

#[test]
fn a_span_is_the_range_of_packet_numbers_of_a_message() {
    //= docs/specs/erasure.md#ERA-3 A complete message
    let data = Data { psn: 107, offset: 2_000, message_bytes: 4_500, payload_bytes: 1_000, ..Data::default() };
    let span = Span::of(&data, 1_000);
    assert_eq!((span.first, span.end), (105, 110));
    assert_eq!([105, 108, 109].map(|psn| span.payload_bytes(psn)), [1_000, 1_000, 500]);
    assert_eq!([105, 109, 110].map(|psn| span.bytes_from(psn)), [4_500, 500, 0]);
    assert!(span.can_settle(105, 106) && span.can_settle(3, 110) && !span.can_settle(104, 109));
}

#[test]
fn an_acknowledgement_of_unsent_numbers_is_rejected() {
    //= docs/specs/erasure.md#ERA-5 settling numbers never sent
    for (is_coded, cumulative, taken) in [(false, 11, false), (true, 11, true), (true, 20, true), (true, 21, false)] {
        let mut rng = rng::stream(1, 1);
        let sender = Sender::new(&coded(SackRule::Patient), 512, u64::MAX, &mut rng);
        let mut sender = if is_coded { sender.erasure_coded() } else { sender };
        sender.send_message(7, 20 * u64::from(PAYLOAD)).unwrap();
        let mut now = Time::ZERO;
        while sender.next_psn() < 10 {
            sender.poll_transmit(now, &mut rng, &mut ());
            now = now.after(US);
        }
        sender.on_ack(now, &Ack { cumulative, packets: 1, ..Ack::default() }, &mut ());
        assert_eq!(sender.stats().invalid_acks, u64::from(!taken), "{is_coded} {cumulative}");
        assert_eq!(sender.next_psn(), if taken { cumulative } else { 10 });
        assert_eq!(sender.poll_event().is_some(), cumulative == 20);
    }
}

fn hostile() -> impl Strategy<Value = Data> {
    let numbers = (0..200u64, 0..6u32, 0..40u64, 0..5u64, any::<bool>());
    numbers.prop_map(|(psn, message, packet, short, retransmit)| Data {
        psn,
        message,
        offset: packet * 10 + short / 4,
        message_bytes: 95 + u64::from(message) * 50,
        payload_bytes: 10 - short as u16,
        retransmit,
        ..Data::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Any losses and message sizes: every message arrives once, none is decoded from too few
    /// packets, and the transfer ends.
    #[test]
    fn messages_complete_under_any_losses(
        messages in prop::collection::vec(prop_oneof![0..3_000u64, 0..200_000u64], 1..12),
        loss in [0..400u32, 0..300u32, 0..200u32],
        (jitter_us, gap, plain, seed) in (0..60u64, 0..12u32, any::<bool>(), any::<u64>()),
    ) {
        let rule = if plain { SackRule::Plain } else { SackRule::Patient };
        let gap = (gap > 0).then_some(gap);
        let config = FlowConfig { sack_gap_packets: gap, window_packets: 64, give_up_ps: 1 << 60, ..coded(rule) };
        let (pair, _) = run(config, channel(loss, jitter_us * US), &messages, seed);
        check(&pair, &messages);
    }

    /// No frame makes a receiver panic or misbehave.
    #[test]
    fn no_coded_frame_harms_a_receiver(frames in prop::collection::vec((hostile(), any::<bool>()), 1..400)) {
        let config = FlowConfig { window_packets: 64, max_data_bytes: 4_000, ..coded(SackRule::Plain) };
        let mut receiver = Receiver::new(&config).erasure_coded();
        for (data, trimmed) in frames {
            let arrival = Arrival { data, port: Ev::new(1).port(65_535), hops: 1, trimmed, ..Arrival::default() };
            receiver.on_data(at(US), &arrival);
            while let Some((_, bytes)) = receiver.message_completed() {
                receiver.consumed(bytes);
            }
            while receiver.poll_ack().is_some() {}
            while receiver.poll_nack().is_some() {}
            let stats = receiver.stats();
            let sum = stats.packets + stats.duplicates + stats.trimmed + stats.out_of_window + stats.invalid;
            prop_assert_eq!(stats.frames, sum);
        }
    }
}
