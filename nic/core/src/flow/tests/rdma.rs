//! The receivers of RDMA NICs: literal models, and both ends over channels that lose and reorder.

mod go_back_n;
mod irn;

use std::vec::Vec;

use super::pair::{Channel, Pair};
use super::*;
use crate::loss::{IrnConfig, ReceiverConfig};

/// A channel without losses that reorders packets of one burst by up to this number of
/// microseconds.
fn reordering(jitter: u64) -> Channel {
    Channel { delay_ps: 5 * US, jitter_ps: jitter * US, gap_ps: US / 4, ..Channel::default() }
}

fn with(receiver: ReceiverConfig) -> FlowConfig {
    FlowConfig { receiver, ..config() }
}

/// Sends the messages until all are delivered. [`Pair`] compares every byte and checks that each
/// message arrives once.
fn run(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Pair {
    let mut pair = Pair::new(config, channel, messages, seed);
    pair.run().unwrap_or_else(|stuck| panic!("{stuck}"));
    assert_eq!((pair.gave_up, pair.completed.len(), pair.delivered.len()), (false, messages.len(), messages.len()));
    assert_eq!(pair.receiver.stats().bytes, messages.iter().sum::<u64>());
    pair
}

#[test]
fn reordering_costs_go_back_n_retransmissions_but_not_irn() {
    let patient = ReceiverConfig::Irn(IrnConfig { nacks: 64, ..IrnConfig::default() });
    for seed in 0..5 {
        let messages = [200_000; 5];
        let run = |receiver: ReceiverConfig| run(with(receiver), reordering(3), &messages, seed);
        let [back, irn, allowing] = [ReceiverKind::GoBackN.into(), ReceiverKind::Irn.into(), patient].map(run);
        let again = |pair: &Pair| pair.sender.stats().retransmits;
        assert!(back.receiver.stats().out_of_order > 500, "too little reordering");
        assert!(again(&back) > 500 && again(&back) > 2 * again(&irn), "{} and {}", again(&back), again(&irn));
        assert_eq!((again(&allowing), allowing.sender.stats().timeouts), (0, 0));
        assert!(allowing.receiver.stats().order.reordered > 200);
        // Every second packet arrives out of order for either receiver.
        assert!(allowing.receiver.stats().order.unexpected > allowing.receiver.stats().order.reordered);
    }
}

#[test]
fn on_one_path_both_retransmit_only_losses() {
    for (kind, seed) in [(ReceiverKind::GoBackN, 1), (ReceiverKind::Irn, 2)] {
        let channel = Channel { loss: 20, in_order: true, ..reordering(0) };
        let done = run(with(kind.into()), channel, &[500_000; 4], seed);
        let (sent, channel_counts) = (done.sender.stats(), done.channel_counts);
        assert!(channel_counts.packets_lost > 20 && done.receiver.stats().order.reordered == 0);
        match kind {
            ReceiverKind::Irn => {
                assert_eq!((sent.retransmits, sent.spurious_retransmits), (channel_counts.packets_lost, 0))
            }
            _ => assert!(sent.retransmits > 3 * channel_counts.packets_lost && sent.gone_back > 2 * sent.missing),
        }
    }
}

/// Lossy, reordering and duplicating channels, under every congestion control.
#[test]
fn every_byte_arrives_once_under_every_congestion_control() {
    for cc in CcKind::ALL {
        for (kind, seed) in RECEIVERS[1..].iter().flat_map(|kind| (0..4).map(move |seed| (*kind, seed))) {
            let mut config = with(kind.into());
            (config.cc, config.give_up_ps) = (cc.into(), 1_000_000 * US);
            let lossy = Channel { loss: 50, ack_loss: 50, duplicate: 20, trim: 20, mark: 50, ..reordering(seed % 2) };
            let messages: Vec<u64> = (0..40).map(|message| message * 509).collect();
            let done = run(config, lossy, &messages, seed);
            let order: Vec<u32> = done.completed.iter().map(|(message, _)| *message).collect();
            if kind == ReceiverKind::GoBackN {
                assert!(order.is_sorted(), "{cc}: the application gets messages in order");
            }
            assert!(done.sender.stats().retransmits > 0);
        }
    }
}
