//! Hostile peers send any values in any order. No panic, no unbounded memory, and no delivery of
//! data that was never sent.

use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, Echoes, EvPort, MAX_ECHOES, Nack, ProbeAck, Pull};

use super::*;
use crate::rng;
use crate::tests::at_step;

/// Generates numbers that are small, near limits, or random.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0u64..100, 2 => 0u64..5000, 1 => Just(u64::MAX), 1 => u64::MAX - 300.., 1 => any::<u64>()]
}

/// Generates times at such numbers of steps.
fn time() -> impl Strategy<Value = Time> {
    number().prop_map(at_step)
}

fn ack() -> impl Strategy<Value = Ack> {
    let bitmap = prop::array::uniform4(prop_oneof![Just(0), Just(1), any::<u64>()]);
    let rest = (any::<u16>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>());
    let others = prop::collection::vec(any::<(u16, bool)>(), 0..=MAX_ECHOES);
    (number(), time(), number(), bitmap, number(), rest, others).prop_map(
        |(cumulative, timestamp_echo, sack_base, bitmap, max_data, rest, others)| {
            let (port, hops, packets, marked_packets, marked) = rest;
            let mut echoes = Echoes::default();
            others.into_iter().for_each(|(port, marked)| echoes.push(EvPort::new(port), marked, MAX_ECHOES));
            Ack {
                cumulative,
                timestamp_echo,
                sack_base,
                bitmap,
                port: EvPort::new(port),
                hops,
                packets,
                marked_packets,
                marked,
                trimmed: marked,
                misrouted: marked,
                max_data,
                echoes,
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Op {
    Send(u64),
    Transmit,
    Ack(Ack),
    Nack(Nack),
    ProbeAck(ProbeAck),
    Pull(u64),
    Timeout(u64),
    Poll,
}

fn op() -> impl Strategy<Value = Op> {
    let nack = (number(), time(), any::<u16>());
    let probe_ack = (number(), time(), any::<u16>());
    prop_oneof![
        2 => number().prop_map(Op::Send),
        4 => Just(Op::Transmit),
        4 => ack().prop_map(Op::Ack),
        2 => nack.prop_map(|(psn, timestamp_echo, port)| {
            Op::Nack(Nack { psn, timestamp_echo, port: EvPort::new(port), ..Nack::default() })
        }),
        1 => probe_ack.prop_map(|(token, timestamp, port)| {
            Op::ProbeAck(ProbeAck { token, timestamp, port: EvPort::new(port), ..ProbeAck::default() })
        }),
        2 => number().prop_map(Op::Pull),
        2 => (0u64..200_000_000).prop_map(Op::Timeout),
        1 => Just(Op::Poll),
    ]
}

fn data() -> impl Strategy<Value = Arrival> {
    let place = (0u32..6, number(), number(), prop_oneof![Just(0u16), Just(1000), 0u16..10, any::<u16>()]);
    (number(), time(), place, any::<bool>(), any::<bool>(), any::<u16>()).prop_map(
        |(psn, timestamp, (message, offset, message_bytes, payload_bytes), ack_now, trimmed, port)| {
            let data =
                Data { psn, timestamp, message, offset, message_bytes, payload_bytes, ack_now, ..Data::default() };
            let trimmed = trimmed && port % 4 == 0;
            Arrival { data, port: EvPort::new(port), marked: ack_now, hops: 1, trimmed, ..Arrival::default() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    //= docs/specs/transport.md#TRN-20 refused ACKs
    #[test]
    fn no_feedback_harms_a_sender(ops in prop::collection::vec(op(), 1..300), window in 0u32..9, on_credit: bool) {
        let mut config = FlowConfig { window_packets: 1 << window, give_up_ps: u64::MAX, ..config() };
        if on_credit {
            config.cc = CcKind::Eqds.into();
        }
        let mut rng = rng::stream(1, 2);
        let mut sender = Sender::new(&config, 1 << window, 1_000_000, &mut rng);
        let mut now = Time::ZERO;
        let (mut queued, mut events) = (0u32, Vec::new());
        for op in ops {
            match op {
                Op::Send(bytes) => queued += u32::from(sender.send_message(queued, bytes).is_ok()),
                Op::Transmit => {
                    for _ in 0..20 {
                        let _ = sender.poll_transmit(now, &mut rng, &mut ());
                    }
                }
                Op::Ack(ack) => sender.on_ack(now, &ack, &mut ()),
                Op::Nack(nack) => sender.on_nack(now, &nack, &mut ()),
                Op::ProbeAck(ack) => sender.on_probe_ack(now, &ack, &mut ()),
                Op::Pull(credit_bytes) => sender.on_pull(now, &Pull { credit_bytes }),
                Op::Timeout(by_ps) => {
                    now = now.after(by_ps);
                    sender.on_timeout(now, &mut ());
                }
                Op::Poll => events.extend(core::iter::from_fn(|| sender.poll_event())),
            }
            let stats = sender.stats();
            prop_assert!(stats.packets_acked <= stats.packets_sent - stats.retransmits);
            prop_assert!(stats.bytes_acked <= stats.bytes_sent);
            prop_assert!(stats.messages_delivered <= u64::from(queued));
            prop_assert!(sender.window_bytes() >= u64::from(PAYLOAD + HEADER));
            prop_assert!(sender.poll_timeout().is_some() || sender.in_flight_bytes() == 0);
        }
        let mut messages: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                SenderEvent::MessageDelivered { message, .. } => Some(*message),
                _ => None,
            })
            .collect();
        let count = messages.len();
        messages.sort_unstable();
        messages.dedup();
        prop_assert_eq!(messages.len(), count, "delivered twice");
    }

    //= docs/specs/transport.md#TRN-53 refused packets
    #[test]
    fn no_frame_harms_a_receiver(arrivals in prop::collection::vec(data(), 1..400), window in 0u32..9) {
        let config = FlowConfig { window_packets: 1 << window, max_data_bytes: 100_000, ..config() };
        let mut receiver = Receiver::new(&config);
        let mut completed_bytes = 0;
        for (i, arrival) in arrivals.iter().enumerate() {
            let _ = receiver.on_data(at_step(i as u64), arrival);
            for _ in 0..2 + 512 / 256 {
                if let Some(ack) = receiver.poll_ack() {
                    prop_assert!(ack.cumulative <= receiver.cumulative());
                    prop_assert!(ack.sack_base >= ack.cumulative);
                    prop_assert!(ack.marked_packets <= ack.packets);
                }
            }
            prop_assert_eq!(receiver.poll_ack(), None, "a bounded number of ACKs");
            if i % 3 == 0 {
                let _ = receiver.poll_nack();
            }
            if i % 2 == 0 {
                while let Some((_, bytes)) = receiver.message_completed() {
                    completed_bytes += bytes;
                    receiver.consumed(bytes);
                }
            }
        }
        let stats = receiver.stats();
        let counted = stats.packets + stats.duplicates + stats.trimmed + stats.out_of_window + stats.invalid;
        prop_assert_eq!(stats.frames, counted);
        prop_assert!(completed_bytes <= stats.bytes);
        prop_assert!(stats.bytes <= receiver.max_data());
    }
}
